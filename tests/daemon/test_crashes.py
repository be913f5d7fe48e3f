"""What follows from how speakd ended: nothing, a pause, a safer engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daemon.crashes import ENDS, Crashes
from engines.backends import Wanted


def ended(folder: Path, *results: str) -> None:
    """Do what the unit does."""
    with (folder / ENDS).open("a", encoding="ascii") as file:
        file.writelines(f"{result}\n" for result in results)


def start(folder: Path, engine: str = "", version: str = "1") -> Crashes:
    crashes = Crashes(folder, version)
    if engine:
        crashes.speaks_with(engine)
    return crashes


def test_two_crashes_change_nothing(tmp_path: Path) -> None:
    start(tmp_path, "tensorrt int8")
    ended(tmp_path, "signal", "core-dump")
    crashes = start(tmp_path)
    assert crashes.put_aside == ""
    assert crashes.problem is None
    assert crashes.pause_s == 0


@pytest.mark.parametrize("end", ["signal", "core-dump", "watchdog"])
def test_three_crashes_put_int8_aside_and_three_more_all_of_tensorrt(tmp_path: Path, end: str) -> None:
    start(tmp_path, "tensorrt int8")
    ended(tmp_path, end, end, end)
    crashes = start(tmp_path, "tensorrt fp16")
    assert crashes.put_aside == "int8"
    assert crashes.problem is not None
    assert "INT8 crashed 3 times" in crashes.problem
    ended(tmp_path, end, end)
    assert start(tmp_path, "tensorrt fp16").put_aside == "int8", "it starts from nothing with each engine"
    ended(tmp_path, end)
    assert start(tmp_path, "onnxruntime-cpu fp32").put_aside == "trt"
    ended(tmp_path, *[end] * 20)
    assert start(tmp_path).put_aside == "trt", "there is nothing safer than that"


def test_what_was_not_in_use_is_not_put_aside_first(tmp_path: Path) -> None:
    start(tmp_path, "tensorrt fp16")
    ended(tmp_path, "signal", "signal", "signal")
    assert start(tmp_path).put_aside == "trt"


@pytest.mark.parametrize(
    ("engine", "end", "left_out"),
    [
        ("onnxruntime-cpu fp32", "signal", ""),
        ("onnxruntime-cpu int8", "signal", "int8"),
        ("onnxruntime-cpu int8", "oom-kill", ""),
        ("tensorrt 10.3 int8", "oom-kill", "trt"),
        ("tensorrt 10.3 fp16", "oom-kill", "trt"),
        ("", "oom-kill", "trt"),
    ],
)
def test_only_what_may_be_to_blame_is_put_aside(tmp_path: Path, engine: str, end: str, left_out: str) -> None:
    """Not what is the safest there is, nor numbers for wider ones where memory was short."""
    start(tmp_path, engine)
    ended(tmp_path, end, end, end)
    crashes = start(tmp_path)
    assert crashes.put_aside == left_out
    assert (crashes.problem is None) == (not left_out)


def test_an_engine_that_never_got_ready_loses_its_narrowest_first(tmp_path: Path) -> None:
    ended(tmp_path, "signal", "signal", "signal")
    assert start(tmp_path).put_aside == "int8"


@pytest.mark.parametrize("between", ["success", "exit-code"])
def test_only_crashes_in_a_row_count(tmp_path: Path, between: str) -> None:
    start(tmp_path, "tensorrt int8")
    ended(tmp_path, "signal", "signal", between, "signal", "signal")
    assert start(tmp_path).put_aside == ""


def test_a_long_run_ends_the_row(tmp_path: Path) -> None:
    ended(tmp_path, "signal", "signal")
    start(tmp_path, "tensorrt int8").steady()
    ended(tmp_path, "signal")
    crashes = start(tmp_path)
    assert crashes.in_a_row == 1
    assert crashes.put_aside == ""


def test_another_version_tries_everything_again(tmp_path: Path) -> None:
    start(tmp_path, "tensorrt int8")
    ended(tmp_path, "signal", "signal", "signal")
    assert start(tmp_path).put_aside == "int8"
    assert start(tmp_path, version="2").put_aside == ""


def test_it_waits_longer_and_longer_but_never_long(tmp_path: Path) -> None:
    pauses = []
    for _ in range(15):
        pauses.append(start(tmp_path).pause_s)
        ended(tmp_path, "exit-code")
    assert pauses[:8] == [0, 0, 0, 0, 1, 2, 4, 8]
    assert pauses[-1] == 60


@given(st.binary(max_size=300), st.binary(max_size=300))
@example(b"", b'{"version": "1", "step": Infinity, "engine": ""}')
def test_damaged_records_harm_nobody(tmp_path_factory: pytest.TempPathFactory, ends: bytes, facts: bytes) -> None:
    folder = tmp_path_factory.mktemp("state")
    (folder / ENDS).write_bytes(ends)
    (folder / "engine-put-aside.json").write_bytes(facts)
    crashes = start(folder, "onnxruntime-cpu fp32")
    assert 0 <= crashes.pause_s <= 60
    assert start(folder).put_aside == crashes.put_aside or ends


def test_a_line_that_a_power_cut_left_unfinished_is_none(tmp_path: Path) -> None:
    (tmp_path / ENDS).write_text("signal\nsignal\nsig")
    assert start(tmp_path).in_a_row == 2


def test_a_folder_that_cannot_be_written_is_no_reason_to_be_silent(tmp_path: Path) -> None:
    start(tmp_path / "missing", "onnxruntime-cpu fp32").steady()


@pytest.mark.parametrize(
    ("wanted", "put_aside", "left"),
    [
        (Wanted("auto", "auto"), "int8", Wanted("auto", "auto", int8=False)),
        (Wanted("trt", "int8"), "int8", Wanted("trt", "auto", int8=False)),
        (Wanted("trt", "fp16"), "trt", Wanted("ort", "fp16", int8=False)),
        (Wanted("auto", "int8", 3), "trt", Wanted("ort", "auto", 3, int8=False)),
        (Wanted("trt", "fp16"), "", Wanted("trt", "fp16")),
    ],
)
def test_what_is_left_to_speak_with(wanted: Wanted, put_aside: str, left: Wanted) -> None:
    assert wanted.without(put_aside) == left


def test_the_record_of_a_service_that_never_starts_stays_short(tmp_path: Path) -> None:
    start(tmp_path, "tensorrt int8")
    ended(tmp_path, *["exit-code"] * 10_000, "signal", "signal")
    crashes = start(tmp_path)
    assert (tmp_path / ENDS).stat().st_size <= 4096
    assert crashes.pause_s == 60
    ended(tmp_path, "signal")
    assert start(tmp_path).put_aside == "int8", "the last ones count as before"
