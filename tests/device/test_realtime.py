from __future__ import annotations

import gc
import os
import re
import resource
import subprocess
import sys
import threading

from device import realtime

AS_NOBODY = """
import ctypes, os, resource
from device import realtime
os.setgroups([]); os.setgid(65534); os.setuid(65534)
resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
print(realtime.raise_priority()); print(realtime.lock_memory()); print(realtime.take_precedence())
"""


def in_a_process_of_its_own(code: str) -> list[str]:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    return result.stdout.splitlines()


def test_frozen_objects_are_not_looked_through_again() -> None:
    before = gc.get_freeze_count()
    try:
        assert realtime.freeze_garbage() == "done"
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()


def test_priority_is_the_calling_threads_alone() -> None:
    found: list[tuple[str, int]] = []

    before = os.sched_getscheduler(0)

    def run() -> None:
        found.append((realtime.raise_priority(), os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    answer, policy = found[0]
    assert (answer == "done") == (policy == os.SCHED_FIFO)
    assert os.sched_getscheduler(0) == before


def test_locking_takes_only_what_is_used() -> None:
    code = (
        "from device import realtime; import mmap\n"
        "print(realtime.lock_memory())\n"
        "m = mmap.mmap(-1, 200 * 2**20)\n"
        "print(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')))"
    )
    answer, memory, *_ = in_a_process_of_its_own(code)
    assert answer == "done" or answer.startswith("refused: ")
    kilobytes = int(re.findall(r"\d+", memory)[0])
    assert kilobytes < 150 * 1024, "a large mapping that nobody touched is not filled"


def test_precedence_is_inherited() -> None:
    code = """
import os, threading
from device import realtime
print(realtime.take_precedence())
thread = threading.Thread(target=lambda: print(os.getpriority(os.PRIO_PROCESS, 0)))
thread.start()
thread.join()
"""
    answer, nice = in_a_process_of_its_own(code)
    assert (answer == "done") == (int(nice) == realtime.NICE)


def test_a_refusal_says_what_would_help() -> None:
    if os.geteuid() != 0:
        assert resource.getrlimit(resource.RLIMIT_RTPRIO)[0] >= 0
        return
    priority, memory, precedence = in_a_process_of_its_own(AS_NOBODY)
    assert re.fullmatch(r"refused: .* \(Nice=-10 would allow it\)", precedence)
    assert re.fullmatch(r"refused: .* \(LimitRTPRIO=10 or more would allow it\)", priority)
    assert re.fullmatch(r"refused: .* \(LimitMEMLOCK=infinity would allow it\)", memory)


def test_a_thread_gives_way_alone_and_never_further_than_the_system_goes() -> None:
    found: list[int] = []

    def run() -> None:
        for _ in range(3):
            realtime.give_way()
            found.append(os.getpriority(os.PRIO_PROCESS, 0))

    before = os.getpriority(os.PRIO_PROCESS, 0)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [min(19, before + 10), min(19, before + 20), 19]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
