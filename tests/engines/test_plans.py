from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import EngineError
from engines.runtime.plans import Machine, PlanCache, PlanKey

ORIN = Machine("10.3.0.30", (8, 7), 16)
KEY = PlanKey("ab" * 32, "int8", 96, ORIN)
PLAN = b"plan " * 1000


@pytest.fixture
def cache(tmp_path: Path) -> PlanCache:
    return PlanCache(tmp_path / "plans")


def files(cache: PlanCache) -> list[str]:
    return sorted(path.suffix for path in cache.folder.iterdir())


def file_of(cache: PlanCache) -> Path:
    return next(cache.folder.glob("*.plan"))


class TestKeeping:
    def test_what_was_put_is_got(self, cache: PlanCache) -> None:
        assert cache.get(KEY) is None
        cache.put(KEY, PLAN)
        assert cache.get(KEY) == PLAN
        cache.put(KEY, b"newer")
        assert PlanCache(cache.folder).get(KEY) == b"newer"
        assert files(cache) == [".plan"]

    @pytest.mark.parametrize(
        "other",
        [
            replace(KEY, graph="cd" * 32),
            replace(KEY, precision="fp16"),
            replace(KEY, window=48),
            replace(KEY, machine=replace(ORIN, tensorrt="10.7.0")),
            replace(KEY, machine=replace(ORIN, compute_capability=(11, 0))),
            replace(KEY, machine=replace(ORIN, multiprocessors=8)),
        ],
        ids=["graph", "precision", "window", "TensorRT", "GPU", "multiprocessors"],
    )
    def test_whatever_differs_is_another_plan(self, other: PlanKey, cache: PlanCache) -> None:
        cache.put(KEY, PLAN)
        assert cache.get(other) is None
        cache.put(other, b"other")
        assert (cache.get(KEY), cache.get(other)) == (PLAN, b"other")

    def test_a_full_disk_leaves_the_older_plan(self, cache: PlanCache, monkeypatch: pytest.MonkeyPatch) -> None:
        cache.put(KEY, PLAN)

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(EngineError, match="cannot be written: No space left"):
            cache.put(KEY, b"newer")
        assert cache.get(KEY) == PLAN
        assert files(cache) == [".plan"]

    def test_a_folder_in_the_way(self, cache: PlanCache) -> None:
        cache.put(KEY, PLAN)
        path = file_of(cache)
        path.unlink()
        path.mkdir()
        with pytest.raises(EngineError, match="cannot be read"):
            cache.get(KEY)


class TestDamage:
    @given(place=st.integers(min_value=0), bit=st.integers(min_value=0, max_value=7))
    def test_any_flipped_bit_sets_it_aside(
        self, place: int, bit: int, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        cache = PlanCache(tmp_path_factory.mktemp("plans"))
        cache.put(KEY, PLAN)
        path = file_of(cache)
        content = bytearray(path.read_bytes())
        content[place % len(content)] ^= 1 << bit
        path.write_bytes(content)
        found = cache.get(KEY)
        assert found is None
        assert files(cache) == [".aside"]

    @given(kept=st.floats(min_value=0, max_value=1, exclude_max=True))
    def test_truncation_sets_it_aside(self, kept: float, tmp_path_factory: pytest.TempPathFactory) -> None:
        cache = PlanCache(tmp_path_factory.mktemp("plans"))
        cache.put(KEY, PLAN)
        path = file_of(cache)
        os.truncate(path, int(path.stat().st_size * kept))
        assert cache.get(KEY) is None
        assert files(cache) == [".aside"]

    def test_it_is_told_and_can_be_built_again(self, cache: PlanCache, caplog: pytest.LogCaptureFixture) -> None:
        cache.put(KEY, PLAN)
        file_of(cache).write_bytes(b"\0" * 100)
        assert cache.get(KEY) is None
        assert "is set aside: its beginning is damaged" in caplog.text
        assert cache.get(KEY) is None, "absent by now"
        cache.put(KEY, PLAN)
        assert cache.get(KEY) == PLAN

    def test_a_foreign_plan_under_this_name(self, cache: PlanCache, caplog: pytest.LogCaptureFixture) -> None:
        """Copied from another board, or left by a version that named its files otherwise."""
        thor = replace(KEY, machine=Machine("11.4.1", (11, 0), 20))
        cache.put(thor, PLAN)
        file_of(cache).rename(cache.folder / f"{KEY.name}.plan")
        assert cache.get(KEY) is None
        assert "another machine" in caplog.text
        cache.put(replace(KEY, graph="cd" * 32), PLAN)
        file_of(cache).rename(cache.folder / f"{KEY.name}.plan")
        assert cache.get(KEY) is None
        assert "another graph" in caplog.text


class TestCrashes:
    def test_a_load_that_ends_the_process_is_tried_twice_only(self, cache: PlanCache) -> None:
        cache.put(KEY, PLAN)
        script = f"""
            import os, signal
            from pathlib import Path
            from engines.runtime.plans import Machine, PlanCache, PlanKey
            cache = PlanCache(Path({str(cache.folder)!r}))
            with cache.loading({KEY!r}):
                os.kill(os.getpid(), signal.SIGKILL)
        """
        codes = [_run(script) for _ in range(3)]
        assert codes == [-signal.SIGKILL, -signal.SIGKILL, 1]
        assert cache.get(KEY) is None
        assert files(cache) == [".aside"]

    def test_loads_that_end_well_or_by_an_error_leave_nothing(self, cache: PlanCache) -> None:
        cache.put(KEY, PLAN)
        for _ in range(5):
            with cache.loading(KEY):
                pass
            with pytest.raises(EngineError, match="cannot be loaded"), cache.loading(KEY):
                raise EngineError("voice", "cannot be loaded")
        assert files(cache) == [".plan"]

    def test_a_newly_built_plan_starts_afresh(self, cache: PlanCache) -> None:
        cache.put(KEY, PLAN)
        (cache.folder / f"{KEY.name}.loading").write_bytes(b"xx")
        cache.put(KEY, PLAN)
        with cache.loading(KEY):
            pass
        assert cache.get(KEY) == PLAN

    def test_killed_while_writing(self, cache: PlanCache) -> None:
        """The older plan stays, and what was half written goes with the next tidying, but not while it is written."""
        cache.put(KEY, PLAN)
        script = f"""
            import os, signal
            from pathlib import Path
            from engines.runtime.plans import Machine, PlanCache, PlanKey
            cache = PlanCache(Path({str(cache.folder)!r}))
            def die(descriptor):
                assert cache.prune({ORIN!r}) == [], "somebody else tidies meanwhile"
                os.kill(os.getpid(), signal.SIGKILL)
            os.fsync = die
            cache.put({KEY!r}, b"newer")
        """
        assert _run(script) == -signal.SIGKILL
        assert files(cache) == [".part", ".plan"]
        assert cache.get(KEY) == PLAN
        assert len(cache.prune(ORIN)) == 1
        assert files(cache) == [".plan"]

    def test_a_failed_build_is_remembered_until_one_succeeds(self, cache: PlanCache) -> None:
        assert cache.failure(KEY) == ""
        cache.fail(KEY, "is refused by TensorRT")
        assert cache.failure(KEY) == "is refused by TensorRT"
        assert cache.failure(replace(KEY, window=48)) == ""
        cache.put(KEY, PLAN)
        assert cache.failure(KEY) == ""


class TestPruning:
    def test_what_no_longer_serves_goes(self, cache: PlanCache) -> None:
        newer = replace(ORIN, tensorrt="10.16.2")
        for key in (KEY, replace(KEY, graph="cd" * 32)):
            cache.put(key, PLAN)
            cache.put(replace(key, machine=newer), PLAN)
        cache.keep_timing(ORIN, b"old")
        cache.keep_timing(newer, b"new")
        cache.fail(replace(KEY, window=1), "old")
        (cache.folder / "notes.txt").write_text("somebody's")
        gone = cache.prune(newer, lambda graph: graph == KEY.graph)
        assert len(gone) == 5
        assert cache.get(replace(KEY, machine=newer)) == PLAN
        assert (cache.timing(ORIN), cache.timing(newer)) == (b"", b"new")
        assert files(cache) == [".plan", ".timing", ".txt"]

    def test_a_damaged_one_goes_too(self, cache: PlanCache) -> None:
        cache.put(KEY, PLAN)
        file_of(cache).write_bytes(b"\xff\n")
        assert len(cache.prune(ORIN)) == 1

    def test_nothing_there(self, cache: PlanCache) -> None:
        assert cache.prune(ORIN) == []


def _run(script: str) -> int:
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, check=False, timeout=60, capture_output=True).returncode
