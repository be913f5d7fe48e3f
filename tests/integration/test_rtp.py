"""Speech over RTP from a real daemon to a real receiver: GStreamer."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from integration.conftest import MakeDaemon
from numpy.typing import NDArray
from simulators.controller import Controller

from device.format import RATE

TEXT = "The train to Berlin will depart from platform seven."
FIRST_PACKETS_S = 10.0


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def receiver(sdp: str, address: str, into: Path) -> Iterator[None]:
    """Play what the description promises into a file of 16 bit PCM, until the block is left."""
    port, payload = re.search(r"m=audio (\d+) RTP/AVP (\d+)", sdp).groups()  # type: ignore[union-attr]
    clock = re.search(rf"a=rtpmap:{payload} opus/(\d+)/2", sdp).group(1)  # type: ignore[union-attr]
    caps = f"application/x-rtp,media=audio,encoding-name=OPUS,clock-rate={clock},payload={payload}"
    pipeline = (
        f"udpsrc address={address} port={port} caps={caps} multicast-iface=lo ! rtpjitterbuffer latency=1000 ! "
        f"rtpopusdepay ! opusdec plc=true ! audioconvert ! audio/x-raw,format=S16LE,channels=1,rate={RATE} ! "
        f"filesink buffer-mode=unbuffered location={into}"
    )
    process = subprocess.Popen(["gst-launch-1.0", "-e", *pipeline.split()], stdout=subprocess.PIPE, text=True)  # noqa: S607
    assert process.stdout is not None
    for line in process.stdout:
        if "PLAYING" in line or "New clock" in line:
            break
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def envelope(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Level of each 10 ms."""
    whole = samples[: samples.size // 480 * 480].reshape(-1, 480)
    levels: NDArray[np.float64] = np.sqrt((whole**2).mean(axis=1))
    return levels


def likeness(heard: NDArray[np.float64], wanted: NDArray[np.float64]) -> float:
    """Correlate levels over time, wherever the speech begins in what was heard."""
    other = envelope(wanted)
    padded = np.pad(heard, (0, max(0, wanted.size - heard.size) + RATE))
    places = (np.lib.stride_tricks.sliding_window_view(envelope(padded[o:]), other.size) for o in range(0, 480, 60))
    return max(float(np.corrcoef(place, other)[0, 1]) for rows in places for place in rows if place.any())


@pytest.mark.parametrize("address", ["127.0.0.1", "239.255.77.7"])
def test_a_receiver_that_knows_the_description_plays_what_a_file_holds(
    address: str, make_daemon: MakeDaemon, controller: Controller, tmp_path: Path
) -> None:
    target = f"{address}:{free_port()}"
    with make_daemon(rtp={"targets": (target,), "interface": "lo"}):
        controller.wait_for_status("online")
        controller.speak({"id": "file", "text": TEXT, "output": "file"})
        with wave.open(str(tmp_path / "renders" / "file.wav")) as file:
            wanted = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float64) / 32768

        accepted = controller.speak({"id": "ask", "text": ".", "output": "rtp"})[0]
        heard_file = tmp_path / "heard.raw"
        with receiver(accepted["sdp"], address, heard_file):
            begun = time.monotonic()
            events = controller.speak({"id": "rtp", "text": TEXT, "output": "rtp"})
            took = time.monotonic() - begun
        assert [event["event"] for event in events] == ["accepted", "started", "finished"]
        assert events[-1]["location"] == f"rtp://{target}"
        assert "fallback" not in events[-1]
        assert took >= wanted.size / RATE, "told as finished when the last packet was sent"
        heard = np.fromfile(heard_file, "<i2").astype(np.float64) / 32768
    assert heard.size >= wanted.size
    assert likeness(heard, wanted) > 0.98


def test_a_target_that_the_owner_has_not_named_is_refused(make_daemon: MakeDaemon, controller: Controller) -> None:
    with make_daemon(rtp={"targets": ("127.0.0.1:5004",)}):
        controller.wait_for_status("online")
        (rejected,) = controller.speak({"id": "a", "text": TEXT, "output": "rtp", "target": "127.0.0.1:5005"})
    assert (rejected["event"], rejected["code"]) == ("rejected", "target")
