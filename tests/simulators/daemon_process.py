"""The daemon as systemd would run it: a process of its own, a configuration file, its log on standard error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from simulators.controller import DEVICE

from daemon.config import Config
from daemon.config_text import show

STOP_TIMEOUT_S: Final = 30.0


class DaemonProcess:
    """`speakd run` from entering the block to leaving it; whoever needs it online waits for its status.

    The log is printed where the block is left by an exception.
    """

    def __init__(
        self,
        folder: Path,
        port: int,
        *,
        packs: Path,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`settings` are sections and keys of the configuration beyond device, broker and voice."""
        tables: dict[str, dict[str, Any]] = {
            "device": {"name": DEVICE},
            "mqtt": {"host": "127.0.0.1", "port": port, "reconnect_max_s": 2},
            "audio": {"output": "null"},
            "voice": {"packs": str(packs), "default": "en_US-joe-medium", "seed": 7},
            "cache": {"folder": str(folder / "phrases")},
            "journal": {"file": str(folder / "journal.db")},
            "render": {"folder": str(folder / "renders")},
        }
        for section, keys in (settings or {}).items():
            tables.setdefault(section, {}).update(keys)
        self.file: Final = folder / "speakd.toml"
        self.file.write_text(show(Config.model_validate(tables)), encoding="utf-8")
        self._log = folder / "speakd.log"
        self._environment = {**os.environ, "STATE_DIRECTORY": str(folder), **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> DaemonProcess:  # noqa: PYI034  typing.Self is of Python 3.11
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "daemon", "--config", str(self.file), "run"],
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            sys.stderr.write(f"--- the daemon said:\n{self.log}")
        if self.running:
            self.terminate()
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            self.wait()
            raise

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self._log.read_text(errors="replace")

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._started.poll() is None

    @property
    def threads(self) -> int:
        """How many threads it has."""
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    @property
    def resident_mb(self) -> float:
        """How much memory it takes; MiB."""
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (line,) = [line for line in status if line.startswith("VmRSS:")]
        return int(line.split()[1]) / 1024

    def terminate(self) -> None:
        """Ask it to end, as systemd does."""
        self._started.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it without a goodbye."""
        self._started.kill()

    def wait(self) -> int:
        """Wait for its end; gives its exit status. subprocess.TimeoutExpired where it does not end."""
        return self._started.wait(STOP_TIMEOUT_S)

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("not started")
        return self._process
