"""Plans that were there once and are no longer any good, built again without anybody asking.

That is so after an update of TensorRT, or where a plan was damaged. In a process of its own, as a build takes minutes
and may be killed for the memory that it needs. Where nothing was ever built, or a build has failed, nothing is built
here: that takes `speakd voice build`.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from daemon.config import Config
from engines.backends import Gpu, Wanted
from engines.pack import Pack
from engines.voice_plans import available_precisions, missing_plans, plans_of

_LOG = logging.getLogger(__name__)

_LONGEST_S: Final = 2 * 3600.0
"""One plan has been seen to take 10 minutes on an Orin, and there are a dozen at most: beyond this it hangs."""

_STEP_S: Final = 30.0
"""Between two requests for more time to start: systemd gives 15 minutes, and would call a longer build a failure."""

_END_S: Final = 5.0

_STDERR: Final = 2
"""Where the child's output goes, too: ours is for nobody's logs."""


class Rebuild:
    """A build in a process of its own. For one thread."""

    def __init__(self, config: Config, voice: str, precision: str, interrupted: Callable[[], None]) -> None:
        """`interrupted` is told where `close` has ended a build that went on."""
        self._interrupted = interrupted
        command = [sys.executable, "-m", "daemon.voice_build", voice, precision]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=_STDERR)
        assert self._child.stdin is not None  # noqa: S101  it is a pipe
        with suppress(BrokenPipeError), self._child.stdin as pipe:  # a child that dies at once says so by its status
            pipe.write(config.model_dump_json().encode())

    def wait(self, extend: Callable[[float], None]) -> int:
        """Wait for the end; gives its exit status, 0 where all plans are there.

        `extend(seconds)` asks whoever waits for us for more time, as long as it goes on.
        """
        until = time.monotonic() + _LONGEST_S
        while time.monotonic() < until:
            extend(2 * _STEP_S)
            with suppress(subprocess.TimeoutExpired):
                return self._child.wait(_STEP_S)
        self._end()
        return self._child.wait()

    def close(self) -> None:
        """End it, if it goes on: what it has finished stays, and the next start builds the rest. Idempotent."""
        # systemd ends all processes of a service at once, so it may be gone already.
        if self._child.poll() in {None, -signal.SIGTERM}:
            self._end()
            self._interrupted()

    def _end(self) -> None:
        self._child.terminate()
        try:
            self._child.wait(_END_S)
        except subprocess.TimeoutExpired:  # TensorRT lets nobody interrupt a step
            self._child.kill()
            self._child.wait()


def rebuild_if_stale(config: Config, pack: Pack, wanted: Wanted, gpu: Gpu) -> Rebuild | None:
    """Begin to build what a voice has lost of its plans; None where there is nothing to do, or no hope."""
    if not gpu.cache.was_used():
        return None
    precisions = [one for one in available_precisions(pack) if wanted.precision in {"auto", one}]
    plans = (plans_of(pack, precision, gpu.machine, capacity=gpu.capacity) for precision in precisions)
    missing = [key for one in plans for key in missing_plans(one.every, gpu.cache)]
    if not missing or any(map(gpu.cache.failure, missing)):
        return None
    _LOG.warning("%d plans of voice %s are lost, or of another TensorRT: building them", len(missing), pack.info.name)
    return Rebuild(config, pack.info.name, wanted.precision, lambda: gpu.cache.excuse(missing))
