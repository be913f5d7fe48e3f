from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from device.alsa import HALF_PERIOD, PERIODS
from device.format import PERIOD, RATE, Samples, seconds
from device.null import BUFFER, NullSink

LATE_S = 0.1
"""How much later than the clock a sink may be at its best of several times: a busy machine wakes threads up late."""


def silence(duration_s: float) -> Samples:
    return np.zeros(int(RATE * duration_s), np.float32)


@pytest.fixture
def sink() -> NullSink:
    sink = NullSink()
    sink.open()
    return sink


def at_its_best(attempt: Callable[[], bool]) -> bool:
    return any(attempt() for _ in range(20))


def test_buffers_as_much_as_the_card() -> None:
    assert BUFFER == PERIODS * HALF_PERIOD


def test_takes_a_buffer_at_once_and_the_rest_at_the_pace_of_a_card() -> None:
    def attempt() -> bool:
        sink = NullSink()
        sink.open()
        began = time.monotonic()
        sink.write(silence(seconds(BUFFER)))
        buffered = time.monotonic() - began
        sink.write(silence(0.2))
        written = time.monotonic() - began
        sink.drain()
        drained = time.monotonic() - began
        assert written >= 0.2
        assert drained >= 0.2 + seconds(BUFFER)
        assert sink.frames == BUFFER + 9600
        in_time = buffered < LATE_S / 2 and written < 0.2 + LATE_S and drained < 0.2 + seconds(BUFFER) + LATE_S
        return in_time and sink.underruns == 0

    assert at_its_best(attempt)


def test_small_writes_add_up_to_real_time() -> None:
    def attempt() -> bool:
        sink = NullSink()
        sink.open()
        began = time.monotonic()
        for _ in range(25):
            sink.write(np.zeros(PERIOD, np.float32))
        sink.drain()
        took = time.monotonic() - began
        assert took >= 0.5
        return took < 0.5 + LATE_S and sink.underruns == 0

    assert at_its_best(attempt)


def test_a_writer_that_is_late_is_an_underrun(sink: NullSink) -> None:
    for _ in range(3):
        sink.write(silence(0.02))
        threading.Event().wait(0.06)
    assert sink.underruns == 2


@pytest.mark.parametrize("pause", ["drain", "drop", "reopen"])
def test_a_pause_between_utterances_is_none(sink: NullSink, pause: str) -> None:
    sink.write(silence(0.02))
    if pause == "reopen":
        sink.close()
        sink.open()
    else:
        getattr(sink, pause)()
    threading.Event().wait(0.06)
    sink.write(silence(0.02))
    assert sink.underruns == 0


def test_a_drop_leaves_nothing_to_wait_for(sink: NullSink) -> None:
    def attempt() -> bool:
        sink.write(silence(seconds(BUFFER)))
        began = time.monotonic()
        sink.drop()
        sink.drain()
        return time.monotonic() - began < seconds(BUFFER) / 2

    assert at_its_best(attempt)


def test_without_pace_an_hour_takes_no_time() -> None:
    sink = NullSink(paced=False)
    sink.open()
    second = silence(1)
    began = time.monotonic()
    for _ in range(3600):
        sink.write(second)
    sink.drain()
    assert time.monotonic() - began < 60
    assert (sink.frames, sink.underruns) == (3600 * RATE, 0)
