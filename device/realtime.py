"""What a thread that feeds a loudspeaker asks of the system: to be run in time, to stay in memory, to be left alone.

Each request may be refused, mostly for want of rights, and speakd goes on without it; so each gives an answer that
can be shown.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LOG = logging.getLogger(__name__)

AUDIO_PRIORITY: Final = 10
"""Of SCHED_FIFO's 1 to 99. Above every ordinary process, below the kernel's own interrupt threads at 50."""

NICE: Final = -10
"""Nine tenths of a core that an ordinary process wants too. Speech is short; half a core made it stutter."""

GIVEN_WAY: Final = 10
"""Steps of niceness below the rest of the process: a tenth of a core that speech wants too.

Still lower, a thread that other processes displace while it holds the interpreter's lock keeps speech waiting: with
nice 19, once for 1.5 s.
"""

_MCL_CURRENT: Final = 1
_MCL_FUTURE: Final = 2
_MCL_ONFAULT: Final = 4
"""Lock a page when it is first used: otherwise every thread's whole stack and the whole buffer pool would be filled."""

_NICEST: Final = 19

_STATUS: Final = Path("/proc/self/status")
_LOCKED: Final = re.compile(r"^VmLck:\s*(\d+)", re.MULTILINE)

DONE: Final = "done"


def freeze_garbage() -> str:
    """Exempt all that exists from garbage collection, for this process; gives 'done'.

    What is loaded once stays for ever: looking through it again and again takes 15 ms at a time, in any thread.
    """
    gc.collect()
    gc.freeze()
    return DONE


def take_precedence() -> str:
    """Give the calling thread, and all that it starts from now on, more of the processor; gives 'done' or why not."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except OSError as error:
        return f"refused: {error.strerror} (Nice={NICE} would allow it)"
    return DONE


def give_way() -> None:
    """Give the calling thread less of the processor than the rest of the process has. Never refused."""
    os.setpriority(os.PRIO_PROCESS, 0, min(_NICEST, os.getpriority(os.PRIO_PROCESS, 0) + GIVEN_WAY))


def raise_priority(*, inherited: bool = False) -> str:
    """Let the calling thread run as soon as it can (SCHED_FIFO); gives 'done' or why not.

    Children and threads that it starts from now on do so only where `inherited`.
    """
    policy = os.SCHED_FIFO if inherited else os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    try:
        os.sched_setscheduler(0, policy, os.sched_param(AUDIO_PRIORITY))
    except OSError as error:
        return f"refused: {error.strerror} (LimitRTPRIO={AUDIO_PRIORITY} or more would allow it)"
    return DONE


def lock_memory() -> str:
    """Keep this process's memory from being swapped out; gives 'done' or why not."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit != resource.RLIM_INFINITY and os.geteuid() != 0:
        # It would be granted now, and a thread or a voice that needs memory later would be refused it.
        return f"refused: locked memory is limited to {limit // 1024} KiB (LimitMEMLOCK=infinity would allow it)"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT) != 0:
        return f"refused: {os.strerror(ctypes.get_errno())} (LimitMEMLOCK=infinity would allow it)"
    return DONE


@contextlib.contextmanager
def memory_unlocked() -> Iterator[None]:
    """Leave memory unlocked meanwhile, if it is locked: pages in use that are locked cannot be given back.

    The kernel refuses the advice (MADV_DONTNEED) by which the C library does that, silently to us.
    """
    locked = _LOCKED.search(_STATUS.read_text(encoding="ascii", errors="replace"))
    if locked is None or int(locked[1]) == 0:
        yield
        return
    ctypes.CDLL(None).munlockall()
    try:
        yield
    finally:
        answer = lock_memory()
        if answer != DONE:
            _LOG.warning("the memory stays unlocked from now on: %s", answer)
