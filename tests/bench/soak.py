"""Whether the voice lasts: memory over many utterances, and gaps in long speech beside a busy neighbour.

    python tests/bench/soak.py memory [--utterances 2000]
    python tests/bench/soak.py underruns [--minutes 10]
    python tests/bench/soak.py service [--utterances 10000]

The engine thread, the player and the pool as in the daemon, the default voice, the null sink: at once for `memory`,
at the pace of a sound card for `underruns`, where another process keeps one core busy. `service` is the whole daemon
with a real broker, as fast as it can.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:1] = [str(TESTS.parent), str(TESTS)]  # not this folder, where a file would be taken for our package daemon

from simulators.long_run import long_run

from daemon.engine_room import BUFFER_FRAMES
from daemon.inbox import Inbox, PlaybackEnded
from daemon.job import Job
from daemon.player import Player
from daemon.synthesis import Engines, Order, SynthesisThread
from device.heap import map_large_blocks
from device.memory import HostBufferPool
from device.null import NullSink
from device.realtime import DONE, NICE, take_precedence
from engines.pack_store import PackStore
from engines.shelf import Preferences, VoiceShelf
from engines.synthesizer import Synthesizer
from engines.text.phonemes import Phonemizer

WORDS = tuple(
    "the train to Berlin will depart from platform seven please keep your bags with you at all times welcome museum "  # noqa: SIM905
    "opens nine closes six door left right caution wet floor thank you for your patience today".split()
)
WARM_UP = 100
WORDS_PER_MINUTE = 150

IMPORT = f"""
import sys
sys.path[:0] = [{str(TESTS.parent)!r}, {str(TESTS)!r}]
from conftest import import_default_voice
print(import_default_voice())
"""


class Bench:
    def __init__(self, packs: Path, *, paced: bool) -> None:
        self.posted: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        self.sink = NullSink(paced=paced)
        self.pool = HostBufferPool(buffers=100, capacity=BUFFER_FRAMES, limit_bytes=2**30)
        self.player = Player(self.sink, self.posted.put)
        shelf = VoiceShelf(PackStore(packs), Preferences())
        synthesizer = Synthesizer(Phonemizer(30), self.pool)
        synthesizer.warm_up(shelf.get())
        engines = Engines(synthesizer, shelf, shelf.close)
        self.engine = SynthesisThread(lambda: engines, self.player, None, self.posted.put)
        self.player.start()
        self.engine.start()

    def say(self, text: str) -> float:
        self.engine.say(Order(Job("x"), text, cache=False))
        while not isinstance(message := self.posted.get(timeout=900), PlaybackEnded):
            pass
        if message.error is not None:
            raise message.error
        return message.audio_s


def resident_mb() -> float:
    return int(re.findall(r"VmRSS:\s*(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))[0]) / 1024


def text_of(words: int, rng: random.Random) -> str:
    sentences, left = [], words
    while left > 0:
        count = min(left, rng.randint(3, 20))
        sentences.append(" ".join(rng.choices(WORDS, k=count)) + ".")
        left -= count
    return " ".join(sentences)


def memory(packs: Path, utterances: int) -> dict[str, float]:
    rng = random.Random(1)
    map_large_blocks()  # as the daemon does
    bench = Bench(packs, paced=False)
    after_warm_up = 0.0
    audio_s = 0.0
    for number in range(utterances):
        if number == WARM_UP:
            after_warm_up = resident_mb()
        audio_s += bench.say(text_of(int(rng.lognormvariate(2, 1)) + 1, rng))
    return {
        "utterances": utterances,
        "speech_s": round(audio_s),
        "resident_mb": round(resident_mb(), 1),
        "growth_mb": round(resident_mb() - after_warm_up, 1),
        "buffers_missing": bench.pool.size - bench.pool.free,
    }


def underruns(packs: Path, minutes: float) -> dict[str, float | str]:
    rng = random.Random(1)
    longest_text = max(20, min(400, round(minutes * WORDS_PER_MINUTE)))
    precedence = take_precedence()  # as the daemon does, and before there are threads
    bench = Bench(packs, paced=True)
    bench.say("Ready.")
    # Its own nice value, 0 as others have: it would inherit ours.
    back = -NICE if precedence == DONE else 0
    neighbour = subprocess.Popen([sys.executable, "-c", f"import os; os.nice({back})\nwhile True: pass"])
    try:
        begun = time.monotonic()
        audio_s, longest = 0.0, 0.0
        while time.monotonic() - begun < minutes * 60:
            said = bench.say(text_of(rng.randint(20, longest_text), rng))
            audio_s, longest = audio_s + said, max(longest, said)
    finally:
        neighbour.kill()
        neighbour.wait()
    return {
        "speech_s": round(audio_s),
        "longest_s": round(longest),
        "underruns": bench.sink.underruns,
        "precedence": precedence,
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=["memory", "underruns", "service"])
    arguments.add_argument("--utterances", type=int)
    arguments.add_argument("--minutes", type=float, default=10)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own: what an import takes would hide what speaking takes.
        imported = subprocess.run([sys.executable, "-c", IMPORT], check=True, stdout=subprocess.PIPE, text=True)
        packs = Path(imported.stdout.strip())
        match options.what:
            case "memory":
                found: Mapping[str, float | str] = memory(packs, options.utterances or 2000)
            case "underruns":
                found = underruns(packs, options.minutes)
            case _:
                found = long_run(Path(folder), packs, options.utterances or 10_000).to_dict()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
