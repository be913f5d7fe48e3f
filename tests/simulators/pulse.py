"""A real PulseAudio with a null sink: paced like a sound card, and its monitor hears what was played.

    with PulseServer() as server:
        with server.record() as recording:
            subprocess.run(["aplay", "x.wav"], env={**os.environ, **server.environment})
        heard = recording.samples

Everything it touches lies in a temporary directory of its own. It needs Debian's pulseaudio, pulseaudio-utils and
libasound2-plugins; it does not need D-Bus or a user session, and runs as root too.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

RATE: Final = 48_000
START_TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.02

SETTLE_FRAMES: Final = RATE // 2
"""What a recording goes on for once it is told to stop. The monitor lags the sink by its latency of 50 ms, and what
parec asked for comes in fragments of `RECORD_LATENCY_MS`; half a second is ample, and silence costs a test nothing."""

RECORD_LATENCY_MS: Final = 20

ALSA_CONFIGURATION: Final = """\
</usr/share/alsa/alsa.conf>
pcm.!default {{ type pulse server "unix:{socket}" }}
ctl.!default {{ type pulse server "unix:{socket}" }}
"""


class PulseUnavailableError(Exception):
    """PulseAudio is not installed or did not start. A test that needs it fails with this; it does not skip."""


class Recording:
    """What the null sink plays, from before the `with` block to after it."""

    def __init__(self, server: PulseServer) -> None:
        self._server = server
        self._path = server.directory / f"heard-{time.monotonic_ns()}.f32"
        self._process: subprocess.Popen[bytes] | None = None
        self.samples: NDArray[np.float32] = np.zeros(0, np.float32)
        """Shape [frames], 48 kHz mono; complete once the block is left."""

    def __enter__(self) -> Recording:  # noqa: PYI034  typing.Self is of Python 3.11
        with self._path.open("wb") as file:
            self._process = subprocess.Popen(
                [
                    self._server.find("parec"),
                    f"--device={self._server.SINK}.monitor",
                    "--raw",
                    "--format=float32le",
                    f"--rate={RATE}",
                    "--channels=1",
                    f"--latency-msec={RECORD_LATENCY_MS}",
                ],
                stdout=file,
                env={**os.environ, **self._server.environment},
            )
        self._wait_for_more(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        try:
            if kind is None:
                self._wait_for_more(SETTLE_FRAMES)
        finally:
            process.terminate()
            process.wait(START_TIMEOUT_S)
        self.samples = np.fromfile(self._path, np.float32)

    def _wait_for_more(self, frames: int) -> None:
        wanted = self._path.stat().st_size + 4 * frames
        wait_until(lambda: self._has_ended() or self._path.stat().st_size >= wanted, "the recorder hears nothing")

    def _has_ended(self) -> bool:
        """Tell whether the recorder went with the sink that it listened to."""
        return self._process is not None and self._process.poll() is not None


class PulseServer:
    """A PulseAudio of our own with one null sink at 48 kHz mono, which is the default."""

    SINK: Final = "speaker"

    def __init__(self, sample_format: Literal["float32le", "s16le"] = "float32le") -> None:
        self._format = sample_format
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.directory = Path()

    @property
    def environment(self) -> dict[str, str]:
        """What a process adds to its environment to play here, through ALSA's `default` or as a Pulse client.

        alsa-lib and libpulse look at every opening, so a process may also put it into `os.environ` later.
        """
        directory = str(self.directory)
        return {
            "ALSA_CONFIG_PATH": str(self.directory / "asound.conf"),
            "PULSE_SERVER": f"unix:{self._socket}",
            "PULSE_CLIENTCONFIG": str(self.directory / "client.conf"),
            "PULSE_COOKIE": str(self.directory / "cookie"),
            "PULSE_RUNTIME_PATH": directory,
            "PULSE_STATE_PATH": directory,
            "HOME": directory,
            "XDG_RUNTIME_DIR": directory,
            "XDG_CONFIG_HOME": directory,
        }

    def __enter__(self) -> PulseServer:  # noqa: PYI034  typing.Self is of Python 3.11
        self._temporary = tempfile.TemporaryDirectory(prefix="speakd-pulse-")
        self.directory = Path(self._temporary.name)
        # norewinds brings the null sink's own latency from 2 s down to 50 ms, which is what a card has.
        (self.directory / "start.pa").write_text(
            f"load-module module-null-sink {' '.join(self._sink)}\n"
            f"set-default-sink {self.SINK}\n"
            f"load-module module-native-protocol-unix socket={self._socket} auth-anonymous=1\n"
        )
        (self.directory / "client.conf").write_text("autospawn = no\nenable-shm = no\n")
        (self.directory / "asound.conf").write_text(ALSA_CONFIGURATION.format(socket=self._socket))
        (self.directory / "cookie").write_bytes(bytes(256))
        try:
            self.start()
        except PulseUnavailableError:
            self._temporary.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def start(self) -> None:
        """Start the server where it does not run: at the same place, so that whoever lost it can find it again."""
        if self._process is not None:
            return
        log = self.directory / "pulseaudio.log"
        script = str(self.directory / "start.pa")
        # As a sound system runs wherever it may, so that a busy machine does not stop its clock.
        urgent = ["--high-priority=yes", "--realtime=yes"]
        options = ["--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--disable-shm=yes", *urgent]
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [self.find("pulseaudio"), "-n", "-F", script, *options],
                stdout=file,
                stderr=file,
                env={**os.environ, **self.environment},
            )
        try:
            wait_until(self._answers, "pulseaudio does not answer")
        except PulseUnavailableError as error:
            self.stop()
            raise PulseUnavailableError(f"{error}; it said:\n{log.read_text(errors='replace')}") from error

    def stop(self) -> None:
        """End the server, as if the sound system had died. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.wait(START_TIMEOUT_S)

    def freeze(self) -> None:
        """Make the server neither play nor answer, as if its device were stuck. `thaw` and `stop` end that."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    @property
    def is_played_to(self) -> bool:
        """Tell whether anybody has a stream open."""
        return bool(self._control("list", "short", "sink-inputs"))

    def unplug(self) -> None:
        """Take the sink away, and go on without one."""
        self._control("unload-module", "module-null-sink")

    def plug(self) -> None:
        """Bring the sink back."""
        self._control("load-module", "module-null-sink", *self._sink)
        self._control("set-default-sink", self.SINK)

    def record(self) -> Recording:
        """Give a context manager that records what is played inside its block."""
        return Recording(self)

    @staticmethod
    def find(program: str) -> str:
        """Give the path of a program of PulseAudio."""
        path = shutil.which(program)
        if path is None:
            raise PulseUnavailableError(f"{program} is not installed: apt-get install pulseaudio pulseaudio-utils")
        return path

    @property
    def _sink(self) -> list[str]:
        return [f"sink_name={self.SINK}", f"format={self._format}", f"rate={RATE}", "channels=1", "norewinds=1"]

    def _control(self, *arguments: str) -> bytes:
        done = subprocess.run(
            [self.find("pactl"), *arguments],
            check=True,
            capture_output=True,
            env={**os.environ, **self.environment},
            timeout=START_TIMEOUT_S,
        )
        return done.stdout

    @property
    def _socket(self) -> Path:
        return self.directory / "native"

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise PulseUnavailableError("pulseaudio ended at once")
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self._socket)) == 0


def wait_until(condition: Callable[[], bool], complaint: str) -> None:
    """Poll `condition`; PulseUnavailableError with `complaint` where it does not come true in time."""
    deadline = time.monotonic() + START_TIMEOUT_S
    never = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise PulseUnavailableError(f"{complaint} within {START_TIMEOUT_S:g} s")
        never.wait(POLL_S)
