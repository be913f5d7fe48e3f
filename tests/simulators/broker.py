"""Real brokers on a loopback port of their own: mosquitto, and amqtt, which speaks MQTT 3.1.1 only.

    with Mosquitto() as broker:
        ... broker.port ...
        broker.kill()
        broker.start()      # on the same port, with nothing remembered

They need Debian's mosquitto and PyPI's amqtt.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final

START_TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.02


class BrokerUnavailableError(Exception):
    """The broker is not installed or did not start. A test that needs it fails with this; it does not skip."""


class Broker:
    """A process that listens on `port` of the loopback, from entering the block to leaving it."""

    def __init__(self) -> None:
        self.port: Final = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.folder = Path()

    def __enter__(self) -> Broker:  # noqa: PYI034  typing.Self is of Python 3.11
        self._temporary = tempfile.TemporaryDirectory(prefix="speakd-broker-")
        self.folder = Path(self._temporary.name)
        try:
            self.start()
        except BrokerUnavailableError:
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
        """Start the broker where it does not run."""
        if self._process is not None:
            return
        log = self.folder / "broker.log"
        with log.open("ab") as file:
            self._process = subprocess.Popen(self._command(), stdout=file, stderr=file)
        deadline = time.monotonic() + START_TIMEOUT_S
        never = threading.Event()
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise BrokerUnavailableError(f"{self._command()} does not listen; it said:\n{log.read_text()}")
            never.wait(POLL_S)

    def stop(self) -> None:
        """End the broker in order. Idempotent."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the broker as a power cut would."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Have the broker neither answer nor hang up, as if its network were gone. `stop` and `kill` still work."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.send_signal(signal.SIGCONT)
            process.wait(START_TIMEOUT_S)

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class Mosquitto(Broker):
    """Debian's broker, which speaks MQTT 5 and 3.1.1. It keeps nothing when it ends."""

    def __init__(self, *settings: str) -> None:
        """`settings` are further lines of its configuration."""
        super().__init__()
        self.settings = list(settings)

    def _command(self) -> list[str]:
        # Ordinary users' PATH lacks the folder that Debian keeps daemons in.
        program = shutil.which("mosquitto", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"]))
        if program is None:
            raise BrokerUnavailableError("mosquitto is not installed: apt-get install mosquitto")
        configuration = self.folder / "mosquitto.conf"
        # Started by root it would otherwise become another user, who cannot read a test's files.
        own = [f"listener {self.port} 127.0.0.1", "allow_anonymous true", "persistence false", "user root"]
        lines = own + self.settings
        configuration.write_text("\n".join(lines) + "\n")
        return [program, "-c", str(configuration)]


class Amqtt(Broker):
    """A broker that speaks MQTT 3.1.1 only."""

    def _command(self) -> list[str]:
        return [sys.executable, __file__, str(self.port)]


def free_port() -> int:
    """Give a port of the loopback on which nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


async def _serve_amqtt(port: int) -> None:
    from amqtt.broker import Broker as AmqttBroker  # noqa: PLC0415  for the process that is the broker only

    configuration: dict[str, Any] = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    await AmqttBroker(configuration).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve_amqtt(int(sys.argv[1])))
