"""Kokoro's styles beside the default voice: words understood, loudness, quality, speed, the first sound.

    python tests/bench/kokoro.py [--json] [--sentences 20] [--styles af_heart,...] [--cost]

The first run downloads the model, 90 MB. A recogniser that knows all of English errs often: what counts is the
difference to the default voice. Times mean something on a quiet machine only.

--cost: nothing but what each precision costs, each in a process of its own: processor seconds of one thread per second
of speech, which other programs disturb little, with the silence that is left out in front; seconds to load it; MiB.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from conftest import KOKORO_STYLES, import_default_voice, import_kokoro_voices
from simulators.kiosk import SENTENCES, said, word_errors, words

from device.format import RATE, Samples
from device.heap import map_large_blocks
from device.memory import HostBufferPool
from engines.backends import Wanted
from engines.families import load
from engines.kokoro_backends import PRECISIONS
from engines.loudness import measure_loudness
from engines.pack_store import PackStore
from engines.rating import Rater
from engines.shelf import Preferences
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.voice import Voice

THREE = "The exhibition is on the second floor. Take the lift behind you. Thank you for your visit."


def say(synthesizer: Synthesizer, voice: Voice, text: str, speaker: str | None) -> tuple[Samples, Tally]:
    tally, parts = Tally(), []
    delivery = Preferences().delivery(voice.info, speaker=speaker)
    for chunk in synthesizer.chunks(Utterance(text, delivery, seed=1), voice, tally):
        parts.append(chunk.samples.copy())
        chunk.release()
    return np.concatenate(parts), tally


def judge(synthesizer: Synthesizer, voice: Voice, texts: list[str], speaker: str | None) -> dict[str, Any]:
    synthesizer.warm_up(voice)
    spoken = [say(synthesizer, voice, text, speaker) for text in texts]
    sounds = [sound for sound, _ in spoken]
    three = say(synthesizer, voice, THREE, speaker)[1]
    alone = say(synthesizer, voice, THREE.split(". ", maxsplit=1)[0] + ".", speaker)[1]
    expected = said()[: len(texts)]
    errors = sum(map(word_errors, expected, words(sounds)))
    with closing(Rater()) as rater:
        quality = float(np.mean([rater.overall(sound) for sound in sounds]))
    return {
        "word_errors_percent": round(100 * errors / sum(len(text.split()) for text in expected), 1),
        "loudness_lufs": round(measure_loudness(np.concatenate(sounds)) or -70, 2),
        "dnsmos": round(quality, 2),
        "rtf": round(sum(tally.compute_s for _, tally in spoken) / (sum(sound.size for sound in sounds) / RATE), 3),
        "first_sound_of_three_sentences_s": round(three.first_s or 0, 3),
        "first_sentence_alone_s": round(alone.compute_s, 3),
        "precision": voice.precision,
    }


def cost(packs: Path, precision: str, texts: list[str]) -> dict[str, Any]:
    map_large_blocks()  # as the daemon does: what loading needs for a moment goes back
    before, begun = resident_mib(), time.process_time()
    with (
        closing(load(PackStore(packs).open("kokoro-en-us"), Wanted(precision=precision, threads=1))) as voice,
        closing(Phonemizer(timeout_s=60)) as phonemizer,
    ):
        loaded, loaded_mib = time.process_time() - begun, resident_mib() - before
        synthesizer = Synthesizer(phonemizer, HostBufferPool(buffers=8, capacity=4 * RATE, limit_bytes=2**25))
        synthesizer.warm_up(voice)
        begun = time.process_time()
        frames = sum(say(synthesizer, voice, text, "af_heart")[0].size for text in texts)
        spent = time.process_time() - begun
        return {
            "cpu_s_per_s": round(spent / (frames / RATE), 3),
            "load_cpu_s": round(loaded, 2),
            "loaded_mib": round(loaded_mib),
            "spoken_mib": round(resident_mib() - before),
        }


def resident_mib() -> float:
    return int(re.findall(r"VmRSS:\s*(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))[0]) / 1024


def costs(packs: Path, texts: list[str]) -> dict[str, dict[str, Any]]:
    found = {}
    for precision in PRECISIONS:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            found[precision] = process.submit(cost, packs, precision, texts).result()
    return found


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--json", action="store_true")
    options.add_argument("--sentences", type=int, default=20)
    options.add_argument("--cost", action="store_true")
    options.add_argument("--styles", default=",".join(KOKORO_STYLES))
    given = options.parse_args()
    texts = list(SENTENCES[: given.sentences])
    if given.cost:
        tell(costs(import_kokoro_voices(), texts), len(texts), as_json=given.json)
        return
    ours, theirs = PackStore(import_default_voice()), PackStore(import_kokoro_voices())
    found: dict[str, dict[str, Any]] = {}
    with closing(Phonemizer(timeout_s=30)) as phonemizer:
        synthesizer = Synthesizer(phonemizer, HostBufferPool(buffers=8, capacity=4 * RATE, limit_bytes=2**25))
        with closing(load(ours.open("en_US-joe-medium"), Wanted())) as voice:
            found["en_US-joe-medium"] = judge(synthesizer, voice, texts, None)
        for style in given.styles.split(","):
            pack = theirs.open("kokoro-en-gb" if style.startswith("b") else "kokoro-en-us")
            with closing(load(pack, Wanted())) as voice:
                found[style] = judge(synthesizer, voice, texts, style)
    tell(found, len(texts), as_json=given.json)


def tell(found: dict[str, dict[str, Any]], sentences: int, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"sentences": sentences, "voices": found}))
        return
    for name, figures in found.items():
        print(name, *(f"{key}={value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
