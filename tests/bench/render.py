"""Several utterances rendered at once: how much more comes out, and what that costs the one that is being spoken.

    python tests/bench/render.py [--rounds 7] [--batches 2 4 8] [--spoken 40] [--json]

The default voice, real threads. `throughput`: four sentences of 4 s (eight in batches of eight), one after another as
they would be spoken, and through render threads with and without batches; seconds of speech per second, and the median
ratio of each round's to the first. `first_sound`: of a spoken sentence, from the command to the first buffer that the
player hands on, alone and beside renderers that never run dry; and how long the windows took that were computed then.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import numpy as np
import onnx

TESTS = Path(__file__).resolve().parents[1]
# Not this folder, where daemon.py would be taken for our package.
sys.path[:1] = [str(TESTS.parent), str(TESTS)]

from conftest import import_default_voice

from daemon.inbox import Inbox, PlaybackEnded, PlaybackStarted, RenderEnded
from daemon.job import Job
from daemon.player import Player
from daemon.render_orders import RenderOrder
from daemon.rendering import Renderers
from daemon.synthesis import Engines, Order, SynthesisThread
from device.format import Samples, seconds
from device.heap import map_large_blocks
from device.memory import HostBufferPool
from device.null import NullSink
from device.realtime import take_precedence
from engines.backends import Wanted, load_voice
from engines.batching import Batcher
from engines.fixed_windows import WindowShape, default_shapes
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.runtime.engine import Feeds
from engines.runtime.ort import OrtEngine
from engines.runtime.patient import PatientEngine
from engines.shared_voices import BatchedVoice, ConcurrentVoice, SharedVoice, SharedVoices
from engines.shelf import Preferences, VoiceShelf
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.vits import Delivery
from engines.vits_fixed import fixed_vocoder
from engines.voice_plans import RENDER_FRAMES

TEXT = "The train to Berlin will depart from platform seven in about five minutes from now."
COUNT = 4
IN_A_ROW = 10
WINDOW_S = 0.2
CORES = len(os.sched_getaffinity(0))
TIMEOUT_S = 60.0


class Rendering:
    """Render threads over the default voice."""

    def __init__(self, store: PackStore, load: Callable[[Pack], SharedVoice], threads: int) -> None:
        self.posted: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        voices = SharedVoices(store, load)
        phonemizer = Phonemizer(TIMEOUT_S)
        self.renderers = Renderers(
            voices, phonemizer, Preferences(seed=0), self.posted.put, threads=threads, capacity=100
        )
        self.renderers.start()
        self.run()

    def submit(self) -> None:
        self.renderers.submit(RenderOrder(Job("x"), TEXT, lambda _: None))

    def wait(self) -> float:
        ended = self.posted.get(timeout=TIMEOUT_S)
        assert isinstance(ended, RenderEnded), ended
        assert ended.error is None, ended.error
        return ended.audio_s

    def run(self) -> float:
        """Render four sentences, or as many as fill a batch; gives their duration."""
        count = max(COUNT, len(self.renderers.threads))
        for _ in range(count):
            self.submit()
        return sum(self.wait() for _ in range(count))

    def close(self) -> None:
        self.renderers.stop()
        for thread in self.renderers.threads:
            thread.join(TIMEOUT_S)
        self.renderers.free()


def batched(rows: int, precedence: Precedence) -> Callable[[Pack], SharedVoice]:
    def load(pack: Pack) -> SharedVoice:
        model = onnx.load(pack.vocoder)

        def make(shape: WindowShape, batch: int) -> OrtEngine:
            return OrtEngine(fixed_vocoder(model, shape, batch=batch).SerializeToString())

        info = pack.info
        shapes = default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=RENDER_FRAMES)
        batcher = Batcher(
            lambda: nullcontext(make), precedence, backend="onnxruntime-cpu", precision="fp32", sizes=[1, rows]
        )
        return BatchedVoice(pack, precedence, batcher, shapes[-1:])

    return load


@contextmanager
def in_turn(store: PackStore) -> Iterator[Callable[[], float]]:
    """Speak as the daemon does today, to nobody."""
    voice = load_voice(store.get("en_US-joe-medium"), Wanted())
    pool = HostBufferPool(buffers=8, capacity=RENDER_FRAMES, limit_bytes=2**26)
    with closing(Phonemizer(TIMEOUT_S)) as phonemizer, closing(voice):
        synthesizer = Synthesizer(phonemizer, pool)

        def run() -> float:
            frames = 0
            for _ in range(COUNT):
                tally = Tally()
                for chunk in synthesizer.chunks(Utterance(TEXT, Delivery(), 0), voice, tally):
                    chunk.release()
                frames += tally.frames
            return seconds(frames)

        run()
        yield run


def throughput(store: PackStore, rounds: int, batches: list[int]) -> dict[str, dict[str, float]]:
    precedence = Precedence()

    def alone(pack: Pack) -> SharedVoice:
        return ConcurrentVoice(pack, precedence)

    cases = {
        **{f"{n} threads": (alone, n) for n in (2, 4)},
        **{f"batches of {rows}": (batched(rows, precedence), rows) for rows in batches},
    }
    rates: dict[str, list[float]] = {}
    with in_turn(store) as one_after_another:
        rendering = {name: Rendering(store, load, threads) for name, (load, threads) in cases.items()}
        runs = {"one after another": one_after_another, **{name: r.run for name, r in rendering.items()}}
        for _ in range(rounds):
            for name, run in runs.items():
                begun = time.perf_counter()
                audio_s = run()
                rates.setdefault(name, []).append(audio_s / (time.perf_counter() - begun))
        for one in rendering.values():
            one.close()
    base = rates["one after another"]
    return {
        name: {
            "speech_s_per_s": round(statistics.median(found), 1),
            "ratio": round(statistics.median(a / b for a, b in zip(found, base, strict=True)), 2),
        }
        for name, found in rates.items()
    }


class Speaking:
    """Engine thread and player as in the daemon, at a sink that takes all at once."""

    def __init__(self, store: PackStore, precedence: Precedence) -> None:
        self.posted: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        pool = HostBufferPool(buffers=8, capacity=RENDER_FRAMES, limit_bytes=2**26)
        self.phonemizer = Phonemizer(TIMEOUT_S)
        self.player = Player(NullSink(paced=False), self.posted.put)
        shelf = VoiceShelf(store, Preferences(seed=0))
        self.engine = SynthesisThread(
            lambda: Engines(Synthesizer(self.phonemizer, pool, precedence), shelf, shelf.close),
            self.player,
            None,
            self.posted.put,
            precedence,
        )
        self.player.start()
        self.engine.start()
        self.say()

    def say(self) -> float:
        """Give the milliseconds to the first sound."""
        begun, first = time.monotonic(), 0.0
        self.engine.say(Order(Job("x"), TEXT, cache=False))
        while True:
            match self.posted.get(timeout=TIMEOUT_S):
                case PlaybackStarted(at=at):
                    first = at
                case PlaybackEnded(error=error):
                    assert error is None, error
                    return (first - begun) * 1000

    def close(self) -> None:
        self.engine.stop()
        self.player.stop()
        self.engine.join(TIMEOUT_S)
        self.player.join(TIMEOUT_S)
        self.phonemizer.close()


class Timed(OrtEngine):
    """Remembers how long its windows took, in milliseconds."""

    def __init__(self, path: Path, taken: list[float]) -> None:
        super().__init__(path, threads=1)
        self._taken = taken

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        begun = time.perf_counter()
        super().run_into(feeds, output)
        self._taken.append((time.perf_counter() - begun) * 1000)


def first_sound(store: PackStore, spoken: int) -> dict[str, float]:
    precedence = Precedence()
    windows: list[float] = []

    def load(pack: Pack) -> SharedVoice:
        voice = ConcurrentVoice(pack, precedence)
        voice._vocoder = PatientEngine(Timed(pack.vocoder, windows), precedence)
        return voice

    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {"alone": [], "beside": []}
    speaking, rendering = Speaking(store, precedence), Rendering(store, load, CORES)
    with closing(speaking), closing(rendering):
        for begun in range(0, spoken, IN_A_ROW):
            count = min(IN_A_ROW, spoken - begun)
            found["alone"] += [speaking.say() for _ in range(count)]
            windows.clear()
            for _ in range(2 * CORES):
                rendering.submit()
            for _ in range(count):
                time.sleep(rng.uniform(0, WINDOW_S))  # anywhere in somebody's window
                found["beside"].append(speaking.say())
                rendering.submit()
                rendering.wait()
            for _ in range(2 * CORES):
                rendering.wait()
    alone, beside = (statistics.median(times) for times in found.values())
    return {
        "alone_ms": round(alone, 1),
        "beside_ms": round(beside, 1),
        "delay_ms": round(beside - alone, 1),
        "worst_delay_ms": round(max(found["beside"]) - alone, 1),
        "one_window_ms": round(statistics.median(windows), 1),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--batches", type=int, nargs="*", default=[2, 4, 8])
    arguments.add_argument("--spoken", type=int, default=40)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    take_precedence()
    map_large_blocks()
    store = PackStore(import_default_voice())
    found = {
        "cores": CORES,
        "throughput": throughput(store, options.rounds, options.batches),
        "first_sound": first_sound(store, options.spoken),
    }
    if options.json:
        print(json.dumps(found))
        return
    for name, rate in found["throughput"].items():
        print(f"{name}: {rate['speech_s_per_s']} s of speech per second, ratio {rate['ratio']}")
    print("first sound: " + ", ".join(f"{key} {value}" for key, value in found["first_sound"].items()))


if __name__ == "__main__":
    main()
