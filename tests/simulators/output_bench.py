"""Where speech goes that is not for the loudspeaker, with sound that is made here."""

from __future__ import annotations

import queue
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from daemon.commands import Speak
from daemon.config import Config, EncoderConfig, RenderConfig, RtpConfig
from daemon.inbox import AudioPage, Inbox, RenderEnded, RenderStarted
from daemon.outputs import Outputs
from device.format import RATE, Samples

TIMEOUT_S = 30


def tone(frames: int) -> Samples:
    return (0.3 * np.sin(2 * np.pi * 440 * np.arange(frames) / RATE)).astype(np.float32)


class Rig:
    """Outputs that write into a folder, and what they have told."""

    def __init__(
        self,
        folder: Path,
        targets: tuple[str, ...] = (),
        *,
        file_format: Literal["wav", "opus"] = "opus",
        **encoder: Any,  # noqa: ANN401
    ) -> None:
        self.posted: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        config = Config(
            render=RenderConfig(folder=str(folder), file_format=file_format),
            encoder=EncoderConfig(**encoder),
            rtp=RtpConfig(targets=targets),
        )
        self.outputs = Outputs(config, topic_of=lambda name: f"audio/{name}", post=self.posted.put)
        self.pages: list[AudioPage] = []
        self.started: list[RenderStarted] = []

    def begin(self, **fields: Any) -> Callable[[Samples], None]:  # noqa: ANN401
        self.stopped = threading.Event()
        return self.outputs.begin(Speak(text="", **fields), stopped=self.stopped)[0]

    def end(self, command_id: str, error: Exception | None = None) -> RenderEnded:
        """Say that all is rendered, or what went wrong; gives the end that is told."""
        return self.until_told(
            command_id, self.outputs.end(RenderEnded(command_id, time.monotonic(), 1.0, error=error))
        )

    def until_told(self, command_id: str, done: RenderEnded | None = None) -> RenderEnded:
        """Wait for the end of a command that has not been told."""
        deadline = time.monotonic() + TIMEOUT_S
        while done is None or not self.posted.empty():
            message = self.posted.get(timeout=deadline - time.monotonic())
            if isinstance(message, AudioPage):
                self.pages.append(message)
            elif isinstance(message, RenderStarted):
                self.started.append(message)
            else:
                assert isinstance(message, RenderEnded), message
                assert message.id == command_id
                done = self.outputs.end(message)
        return done


def opusinfo(path: Path) -> str:
    done = subprocess.run(["opusinfo", path], capture_output=True, text=True, check=True)  # noqa: S607
    assert "WARNING" not in done.stdout + done.stderr
    return done.stdout


class Receiver:
    """A UDP socket, and when what came."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(TIMEOUT_S)
        self.target = f"127.0.0.1:{self.socket.getsockname()[1]}"

    def close(self) -> None:
        self.socket.close()

    def receive(self, packets: int) -> list[tuple[float, bytes]]:
        return [(time.monotonic(), self.socket.recv(2000)) for _ in range(packets)]
