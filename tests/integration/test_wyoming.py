"""Home Assistant's voice pipeline asks for speech over the Wyoming protocol."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from simulators import wyoming_client
from simulators.broker import Broker, Mosquitto, free_port
from simulators.daemon_process import DaemonProcess
from simulators.ear import Ear
from wyoming.client import AsyncTcpClient
from wyoming.ping import Ping, Pong
from wyoming.tts import Synthesize, SynthesizeVoice

TEXT = "One, two, three."
EVENTS = "speakd/bench/event"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Mosquitto() as broker:
        yield broker


@pytest.fixture(scope="module")
def ear(broker: Broker) -> Iterator[Ear]:
    with Ear(broker.port, "speakd/bench/#") as ear:
        yield ear


@pytest.fixture(scope="module")
def daemon(
    broker: Broker, ear: Ear, tmp_path_factory: pytest.TempPathFactory, voice_packs: Path
) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("wyoming")
    settings = {"wyoming": {"enabled": True, "port": free_port()}}
    with DaemonProcess(folder, broker.port, packs=voice_packs, settings=settings) as daemon:
        ear.wait_for("speakd/bench/status", lambda payload: b'"online"' in payload)
        daemon.wyoming_port = settings["wyoming"]["port"]  # type: ignore[attr-defined]
        yield daemon
        assert daemon.running


@pytest.fixture
def port(daemon: DaemonProcess) -> int:
    return daemon.wyoming_port  # type: ignore[attr-defined, no-any-return]


def finals(ear: Ear) -> list[dict[str, object]]:
    events = [json.loads(one.payload) for one in ear.on(EVENTS)]
    return [e for e in events if e["event"] in {"finished", "failed", "cancelled", "rejected"}]


def loudness(pcm: bytes) -> float:
    return float(np.sqrt(np.mean((np.frombuffer(pcm, "<i2") / 32768) ** 2)))


def test_it_describes_its_voices(port: int) -> None:
    (program,) = wyoming_client.describe(port).tts
    assert program.supports_synthesize_streaming
    assert program.installed
    joe = next(voice for voice in program.voices if voice.name == "en_US-joe-medium")
    assert joe.languages == ["en_US"]
    assert joe.installed


@pytest.mark.parametrize(
    "voice", [None, SynthesizeVoice(name="en_US-joe-medium"), SynthesizeVoice(language="en_US")], ids=str
)
def test_a_text_is_spoken(port: int, ear: Ear, voice: SynthesizeVoice | None) -> None:
    spoken = wyoming_client.synthesize(port, TEXT, voice)
    assert [(s.rate, s.width, s.channels) for s in spoken.starts] == [(48_000, 2, 1)]
    assert spoken.stopped
    assert spoken.error is None
    assert 0.7 < spoken.seconds < 3
    assert loudness(spoken.pcm) > 0.01
    finished = {"event": "finished", "audio_s": round(spoken.seconds, 3)}
    ear.wait_for(EVENTS, lambda _: any(finished.items() <= end.items() for end in finals(ear)))


def test_a_text_that_is_still_being_written_is_heard_already(port: int) -> None:
    parts = ["The first sentence is complete", " now. ", "The second", " one follows.", " And a third"]
    spoken = wyoming_client.stream(port, parts, wait_after=2)
    assert spoken.early > 0
    assert len(spoken.starts) == 1
    assert spoken.stopped
    assert spoken.ended
    whole = wyoming_client.synthesize(port, "".join(parts))
    assert spoken.seconds == pytest.approx(whole.seconds, rel=0.35)  # spoken once, in pieces


@pytest.mark.parametrize("parts", [[], ["   "], ["..."]])
def test_a_stream_of_nothing_is_an_empty_sound(port: int, parts: list[str]) -> None:
    spoken = wyoming_client.stream(port, parts)
    assert (len(spoken.starts), spoken.pcm, spoken.stopped, spoken.ended) == (1, b"", True, True)
    assert wyoming_client.synthesize(port, "".join(parts)).pcm == b""


@pytest.mark.parametrize(
    ("text", "voice", "code", "complaint"),
    [
        (TEXT, SynthesizeVoice(name="nobody"), "voice", "nobody"),
        (TEXT, SynthesizeVoice(language="it_IT"), "voice", "it-it"),
        (TEXT, SynthesizeVoice(name="en_US-joe-medium", speaker="bob"), "speaker", "bob"),
        ("x" * 4001, None, "too_long", "4001 characters"),
    ],
)
def test_what_cannot_be_spoken_is_an_error_and_the_end(
    port: int, text: str, voice: SynthesizeVoice | None, code: str, complaint: str
) -> None:
    for spoken in (wyoming_client.synthesize(port, text, voice), wyoming_client.stream(port, [text], voice)):
        assert spoken.error is not None
        assert spoken.error.code == code
        assert complaint in spoken.error.text
        assert not spoken.pcm
    assert wyoming_client.synthesize(port, TEXT).stopped


def test_an_error_is_read_even_by_who_is_still_sending(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b'{"type": "synthesize", "data": {"text": 42}}\n' + b"x" * 100_000)
        closed = select.poll()
        closed.register(client, select.POLLRDHUP)
        assert closed.poll(10_000)
        reset = select.poll()
        reset.register(client, select.POLLERR)
        for _ in range(30):
            client.sendall(b"x" * 100)
            assert not reset.poll(10)
        assert json.loads(client.recv(65536).splitlines()[0])["type"] == "error"


def test_many_at_once_are_all_served(port: int) -> None:
    found: list[wyoming_client.Spoken] = []
    threads = [threading.Thread(target=lambda: found.append(wyoming_client.synthesize(port, TEXT))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(one.stopped and one.pcm for one in found)


def test_a_client_that_goes_has_its_command_cancelled(port: int, ear: Ear) -> None:
    def cut() -> int:
        return sum(end["event"] == "cancelled" for end in finals(ear))

    before = cut()
    event = Synthesize(text="This is a sentence of a book that has many of them. " * 60).event()
    data = json.dumps(event.data).encode()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(json.dumps({"type": event.type, "data_length": len(data)}).encode() + b"\n" + data)
        assert client.recv(100)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # hang up at once
    ear.wait_for(EVENTS, lambda _: cut() > before)
    assert wyoming_client.synthesize(port, TEXT).stopped


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xfe\n",
        b"[]\n",
        b'"synthesize"\n',
        b"{}\n",
        b'{"type": "synthesize"}\n',
        b'{"type": "synthesize", "data": []}\n',
        b'{"type": "synthesize", "data": {"text": 42}}\n',
        b'{"type": "synthesize", "data": {"text": "x", "voice": 7}}\n',
        b'{"type": "synthesize", "data": {"text": "x", "voice": {"name": 7}}}\n',
        b'{"type": "synthesize", "data": {"text": "x", "text_format": "ssml"}}\n',
        b'{"type": "synthesize-start", "data": {"voice": "joe"}}\n{"type": "synthesize-chunk", "data": {}}\n',
        b'{"type": "synthesize", "data_length": 999999999}\n',
        b'{"type": "synthesize", "data_length": "x"}\n',
        b'{"type": "audio-chunk", "payload_length": 99999999999}\n',
        b'{"type": ' + b"[" * 100_000 + b"\n",
        b"x" * (2**20 + 10),
    ],
    ids=lambda noise: repr(noise[:40]),
)
def test_noise_ends_only_its_own_conversation(port: int, daemon: DaemonProcess, noise: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(noise)
        client.shutdown(socket.SHUT_WR)
        try:
            while client.recv(65536):
                pass
        except ConnectionResetError:
            pass  # it was not even read
    assert daemon.running
    assert "Traceback" not in daemon.log
    assert wyoming_client.describe(port).tts


def test_ping_and_what_other_services_are_asked(port: int) -> None:
    async def ask() -> str | None:
        async with AsyncTcpClient("127.0.0.1", port) as client:
            await client.write_event(Ping(text="hello").event())
            event = await client.read_event()
            assert event is not None
            return Pong.from_event(event).text

    assert asyncio.run(ask()) == "hello"


def test_an_address_that_is_taken_is_told_at_start(tmp_path: Path, voice_packs: Path, broker: Broker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = {
            "device": {"name": "second"},
            "wyoming": {"enabled": True, "port": taken.getsockname()[1]},
        }
        with DaemonProcess(tmp_path, broker.port, packs=voice_packs, settings=settings) as daemon:
            assert daemon.wait() == 1
            assert "cannot be listened on" in daemon.log
            assert "Traceback" not in daemon.log
