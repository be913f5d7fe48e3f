from __future__ import annotations

import json
from pathlib import Path

import pytest
from simulators import graphs
from simulators.tensorrt import World

from engines.errors import EngineError
from engines.runtime import trt_build
from engines.runtime.trt_build import Progress, available_memory, build


class TestPlan:
    def test_it_keeps_float32_at_full_precision_and_tells_of_its_layers(self, world: World) -> None:
        plan, _ = build(graphs.double(8), name="double")
        header = json.loads(plan.split(b"\n")[0])
        assert not header["tf32"]
        assert header["verbosity"] == 2, "detailed"

    def test_a_graph_that_is_none(self, world: World) -> None:
        with pytest.raises(EngineError, match=r"voice is refused by TensorRT 10\.3\.0: graph : ModelImporter"):
            build(b"not a graph", name="voice")

    def test_an_operator_that_is_refused_is_named(self, world: World) -> None:
        with pytest.raises(EngineError, match="NonZero NonZero_0: data-dependent shape"):
            build(graphs.non_zero(), name="voice")

    def test_a_shape_that_is_not_fixed(self, world: World) -> None:
        with pytest.raises(EngineError, match="its input x has no fixed shape"):
            build(graphs.double("n"), name="voice")
        assert world.builds == 0

    def test_a_build_that_gives_nothing_says_why(self, world: World) -> None:
        world.faults.building = "Could not find any implementation for node {ForeignNode}."
        with pytest.raises(EngineError, match=r"voice cannot be built by TensorRT.*ForeignNode"):
            build(graphs.double(8), name="voice")


class TestTimingCache:
    def test_it_goes_from_build_to_build(self, world: World) -> None:
        _, timing = build(graphs.double(8), name="voice")
        build(graphs.double(9), name="voice", timing=timing)
        assert world.faults.timings_used == [b"", b"timing of sm87"]

    def test_one_that_does_not_fit_counts_as_none(self, world: World) -> None:
        build(graphs.double(8), name="voice", timing=b"of another machine")
        assert world.faults.timings_used == [b""]


class TestMemory:
    def test_the_workspace_is_a_share_of_what_is_available(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        for available, workspace in ((2**30, 2**28), (2**40, 2**30)):
            monkeypatch.setattr(trt_build, "available_memory", lambda available=available: available)
            build(graphs.double(8), name="voice")
            assert world.faults.workspace[-1] == workspace

    def test_too_little_is_an_error_before_the_kernel_kills_somebody(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(trt_build, "available_memory", lambda: 100 * 2**20)
        with pytest.raises(EngineError, match=r"takes 700 MiB of memory and 100 are available; stop other programs"):
            build(graphs.double(8), name="voice")

    def test_it_is_read_from_the_kernel(self, tmp_path: Path) -> None:
        meminfo = tmp_path / "meminfo"
        meminfo.write_text("MemTotal:  8000000 kB\nMemFree:  100 kB\nMemAvailable:  2048 kB\n")
        assert available_memory(meminfo) == 2**21
        assert available_memory() > 2**20
        meminfo.write_text("MemTotal:  8000000 kB\n")
        with pytest.raises(EngineError, match="does not tell"):
            available_memory(meminfo)


class TestProgress:
    def test_it_rises_to_the_end_and_tells_the_time_left(self, world: World) -> None:
        told: list[Progress] = []
        build(graphs.double(8), name="voice", progress=told.append)
        shares = [progress.share for progress in told]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0.0, 1.0)
        assert len(set(shares)) > 8, "inner phases move it too"
        assert all(progress.left_s is None for progress in told if progress.share == 0)
        assert all(progress.left_s is not None and progress.left_s >= 0 for progress in told if progress.share > 0.1)
        assert told[-1].left_s == pytest.approx(0, abs=1e-6)
        assert {progress.phase for progress in told} == {"Building engine", "Preparing graph", "Timing tactics"}

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), EngineError("voice", "is not wanted any more")])
    def test_what_it_raises_cancels_the_build(self, error: BaseException, world: World) -> None:
        told: list[Progress] = []

        def stop(progress: Progress) -> None:
            told.append(progress)
            raise error

        with pytest.raises(type(error)):
            build(graphs.double(8), name="voice", progress=stop)
        assert len(told) == 1

    def test_phases_whose_names_are_used_again(self) -> None:
        told: list[Progress] = []
        watch = trt_build._Watch(told.append)
        watch.start("root", None, 2)
        for _ in range(2):
            watch.start("inner", "root", 2)
            watch.step("inner", 0)
            watch.finish("inner")  # before its last step, as when TensorRT cuts a phase short
            watch.step("root", 0)
        watch.step("unknown", 3)
        watch.finish("root")
        assert [round(progress.share, 2) for progress in told] == [0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 0.75, 1]
