from __future__ import annotations

import itertools
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators.broker import Mosquitto

from daemon.config import MqttConfig
from daemon.errors import BrokerConfigError
from daemon.mqtt import Connection
from daemon.mqtt_types import Handlers, Received

TIMEOUT_S = 60.0
REFUSED_VERSION = b"\x20\x02\x00\x01"
"""As a broker says it that knows no other version than 3.1.1."""

REFUSED_PASSWORD_5 = b"\x20\x03\x00\x86\x00"
ACCEPTED_5 = b"\x20\x03\x00\x00\x00"


class Listener:
    """Something that listens where a broker should, and answers each CONNECT with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self.attempts: queue.SimpleQueue[tuple[float, int]] = queue.SimpleQueue()
        """When it was asked to connect, and in which protocol level: 5, 4 for 3.1.1, 3 for 3.1."""
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                packet = connection.recv(4096)
                # Fixed header of two bytes, then the protocol's name with its length, then the level.
                level = packet[4 + packet[3]]
                self.attempts.put((time.monotonic(), level))
                connection.sendall(self._answer)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(TIMEOUT_S)


@pytest.fixture
def listen() -> Iterator[Callable[[bytes], Listener]]:
    listeners: list[Listener] = []

    def start(answer: bytes) -> Listener:
        listeners.append(Listener(answer))
        return listeners[-1]

    yield start
    for listener in listeners:
        listener.close()


def attempts(listener: Listener, count: int) -> list[tuple[float, int]]:
    """Give the first `count` attempts of a connection whose owner tries the other version when told to."""
    refusals: queue.SimpleQueue[str] = queue.SimpleQueue()
    handlers = Handlers(
        connected=lambda _version: None,
        subscribed=lambda _problem: None,
        disconnected=lambda _problem: None,
        protocol_refused=lambda: refusals.put("again"),
        received=lambda _message: None,
        died=lambda _error: None,
    )
    config = MqttConfig(host="127.0.0.1", port=listener.port, reconnect_max_s=2)
    connection = Connection(config, "test", handlers)
    done = threading.Event()

    def own() -> None:
        while refusals.get() and not done.is_set():
            connection.try_other_protocol()

    owner = threading.Thread(target=own)
    connection.start()
    owner.start()
    try:
        return [listener.attempts.get(timeout=TIMEOUT_S) for _ in range(count)]
    finally:
        done.set()
        refusals.put("")
        owner.join(TIMEOUT_S)
        connection.stop(None, 1.0)


@pytest.mark.parametrize(
    ("answer", "levels"),
    # To be refused 3.1.1 is for paho itself a reason to try 3.1 at once.
    [(REFUSED_VERSION, [5, 4, 3, 3]), (b"", [5, 4, 4, 5])],
    ids=["refusal", "hang-up"],
)
def test_the_older_version_is_tried_soon_and_nobody_is_pestered(
    listen: Callable[[bytes], Listener], answer: bytes, levels: list[int]
) -> None:
    moments = attempts(listen(answer), 4)
    assert [level for _, level in moments] == levels
    assert moments[1][0] - moments[0][0] < 15  # to end paho's thread takes up to a second
    assert moments[3][0] - moments[1][0] >= 0.9  # the first wait


def test_a_wrong_password_is_no_matter_of_versions(listen: Callable[[bytes], Listener]) -> None:
    moments = attempts(listen(REFUSED_PASSWORD_5), 3)
    assert [level for _, level in moments] == [5, 5, 5]


def test_a_connection_that_was_once_good_keeps_its_version(listen: Callable[[bytes], Listener]) -> None:
    moments = attempts(listen(ACCEPTED_5), 3)
    assert [level for _, level in moments] == [5, 5, 5]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"username": "u", "password_file": "no"}, "password_file .*no has nothing usable"),
        ({"username": "u", "password_file": "empty"}, "password_file .*empty has nothing usable"),
        ({"username_file": "no"}, "username_file .*no has nothing usable"),
        ({"tls": True, "tls_cert_file": "empty"}, "tls_cert_file.*empty"),
        ({"tls": True, "tls_ca_file": "no"}, "tls_ca_file .*no"),
        ({"tls": True, "tls_ca_file": "empty"}, "tls_ca_file .*empty"),
    ],
)
def test_files_that_are_of_no_use_are_told_before_anything_is_connected(
    tmp_path: Path, settings: dict[str, object], complaint: str
) -> None:
    (tmp_path / "empty").touch()
    files = {key: str(tmp_path / str(value)) for key, value in settings.items() if key.endswith("_file")}
    nothing: Callable[..., None] = lambda *_: None  # noqa: E731
    with pytest.raises(BrokerConfigError, match=complaint):
        Connection(MqttConfig.model_validate(settings | files), "test", Handlers(*[nothing] * 6))


class Heard:
    """What a connection tells its owner."""

    def __init__(self) -> None:
        self.told: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.handlers = Handlers(
            connected=self.told.put,
            subscribed=self.told.put,
            disconnected=lambda _problem: None,
            protocol_refused=lambda: None,
            received=self.told.put,
            died=self.told.put,
        )

    def next(self) -> object:
        return self.told.get(timeout=TIMEOUT_S)


def test_a_name_that_nobody_knows_yet_is_asked_for_again(
    listen: Callable[[bytes], Listener], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = itertools.count()
    real = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **more: Any) -> Any:  # noqa: ANN401
        if next(asked) < 2:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real(host, *rest, **more)

    heard, listener = Heard(), listen(ACCEPTED_5)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    connection = Connection(MqttConfig(port=listener.port, reconnect_max_s=2), "test", heard.handlers)
    connection.start()
    try:
        assert heard.next() == "MQTT 5"
    finally:
        connection.stop(None, 1.0)
    assert caplog.text.count("cannot be reached") == 1
    assert "name resolution" in caplog.text


def test_a_topic_that_is_no_text_ends_nothing(listen: Callable[[bytes], Listener]) -> None:
    topics = (b"\xff\xfe", b"a/speak")
    # PUBLISH with QoS 0: its length, the topic's, no properties, two bytes of payload.
    messages = b"".join(bytes([0x30, 5 + len(topic), 0, len(topic)]) + topic + b"\0hi" for topic in topics)
    heard, listener = Heard(), listen(ACCEPTED_5 + messages)
    connection = Connection(MqttConfig(port=listener.port), "test", heard.handlers)
    connection.start()
    try:
        assert heard.next() == "MQTT 5"
        received = [heard.next(), heard.next()]
    finally:
        connection.stop(None, 1.0)
    assert [(m.topic, m.payload) for m in received if isinstance(m, Received)] == [("", b"hi"), ("a/speak", b"hi")]


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x30\x08\x00\x01a\x02\x7f\x00hi",  # a property that there is not
        b"\x30\x0a\x00\x01a\x04\x08\x00\x01\xffhi",  # a response topic that is no text
        b"\xf0\x00",  # what only we may not send either
    ],
)
def test_a_broker_that_talks_nonsense_is_left_and_asked_again(
    listen: Callable[[bytes], Listener], nonsense: bytes
) -> None:
    heard, listener = Heard(), listen(ACCEPTED_5 + nonsense)
    connection = Connection(MqttConfig(port=listener.port), "test", heard.handlers)
    connection.start()
    try:
        assert [heard.next(), heard.next()] == ["MQTT 5", "MQTT 5"]
    finally:
        connection.stop(None, 1.0)


def test_a_broker_that_says_why_it_hangs_up_again_and_again_is_quoted() -> None:
    problems: queue.SimpleQueue[str] = queue.SimpleQueue()
    handlers = Handlers(
        connected=lambda _version: None,
        subscribed=lambda _problem: None,
        disconnected=problems.put,
        protocol_refused=lambda: None,
        received=lambda _message: None,
        died=lambda _error: None,
    )
    with Mosquitto() as broker:
        connection = Connection(MqttConfig(host="127.0.0.1", port=broker.port, reconnect_max_s=1), "test", handlers)
        connection.start()
        connection.publish("a\ufdd0", "x")  # for which mosquitto hangs up; it comes again each time
        try:
            assert [problems.get(timeout=TIMEOUT_S) for _ in range(2)] == ["", ""]
            # Three in a row count; the first time the connection may have gone before the broker said why.
            told = next(problem for _ in range(3) if (problem := problems.get(timeout=TIMEOUT_S)))
        finally:
            connection.stop(None, 1.0)
    assert told.startswith("the broker hangs up again and again: ")
