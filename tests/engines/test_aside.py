"""Work that hangs costs whoever asks a moment, once, and one thread."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
from pathlib import Path

import pytest

from engines.aside import Aside

TIMEOUT_S = 60


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_it_gives_what_the_work_gives_or_raises() -> None:
    aside = Aside("plain")
    assert aside.do(lambda: 7, TIMEOUT_S) == 7
    assert aside.do(lambda: None, TIMEOUT_S) is None
    with pytest.raises(FileNotFoundError):
        aside.do(Path("/not/there").stat, TIMEOUT_S)
    assert aside.do(threading.current_thread, TIMEOUT_S) is threads("plain")[0]


def test_what_hangs_is_waited_for_once_and_by_one_thread_and_used_again_when_it_lets_go() -> None:
    aside, go, done = Aside("hung"), threading.Event(), []

    def hang() -> None:
        assert go.wait(TIMEOUT_S)
        done.append(True)

    with pytest.raises(TimeoutError):
        aside.do(hang, 0.01)
    begun = time.monotonic()
    for _ in range(10):
        with pytest.raises(TimeoutError):
            aside.do(lambda: done.append(False), TIMEOUT_S)
    assert time.monotonic() - begun < TIMEOUT_S / 2, "nobody waits a second time"
    assert len(threads("hung")) == 1
    go.set()
    while True:
        try:
            assert aside.do(lambda: list(done), TIMEOUT_S) == [True], "what was refused is not made up for"
        except TimeoutError:
            continue
        break
    assert len(threads("hung")) == 1


def test_its_thread_ends_with_it() -> None:
    aside = Aside("short")
    aside.do(lambda: None, TIMEOUT_S)
    (thread,) = threads("short")
    del aside
    gc.collect()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()


def test_a_result_is_not_kept() -> None:
    class Large:
        pass

    aside = Aside("large")
    aside.do(Large, TIMEOUT_S)
    aside.do(lambda: None, TIMEOUT_S)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, Large)]


def test_it_works_in_a_process_that_was_forked() -> None:
    aside = Aside("forked")
    assert aside.do(lambda: 1) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if aside.do(lambda: 2, 5.0) == 2 else 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
