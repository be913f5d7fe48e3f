"""What the doctor learns at the broker: whether it is there, takes us, and whether the daemon answers through it."""

from __future__ import annotations

import json
import logging
import queue
import socket
import ssl
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from daemon.config import Config
from daemon.credentials import explained, tls_context
from daemon.errors import BrokerConfigError
from daemon.events import Status
from daemon.mqtt import Connection
from daemon.mqtt_types import Handlers, Received
from daemon.telemetry_messages import Telemetry
from daemon.topics import Topics
from daemon.views.doctor_service import RESTART
from daemon.views.finding import Finding

_NOT_TAKEN: Final = "the broker does not take us"
_REACH_S: Final = 5.0
_ANSWER_S: Final = 10.0
"""A broker that speaks MQTT 3.1.1 only is told from one that hangs after 5 s."""
_ABSENT_S: Final = 2.0
"""For the status that the broker keeps, which comes with the subscription; and after a refusal, for another version."""
_PONG_S: Final = 5.0
"""A daemon answers in milliseconds; one that warms up a voice on a small board, in seconds."""
_GOODBYE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Visit:
    """What was found, and the daemon's own words about itself where it is there."""

    findings: list[Finding] = field(default_factory=list)
    status: Status | None = None
    telemetry: Telemetry | None = None
    """What the broker keeps of it."""


@dataclass(frozen=True, slots=True)
class _Heard:
    kind: str
    value: object = None


def visit(config: Config) -> Visit:
    """Reach the broker as the daemon would, then ask the daemon. Takes 15 s at most."""
    reached = _reach(config)
    if reached.state == "fault":
        return Visit([reached])
    overheard = _Overheard()
    mqtt_log = logging.getLogger(Connection.__module__)
    mqtt_log.addHandler(overheard)
    try:
        with _guest(config) as (connection, heard):
            found = _converse(config, connection, heard, reached)
    except BrokerConfigError as error:
        return Visit([reached, Finding("broker", "fault", str(error), "write it into that file's first line")])
    finally:
        mqtt_log.removeHandler(overheard)
    refusals = [message for message in overheard.messages if "refuses" in message]
    findings = [
        replace(one, text=refusals[-1]) if one.text == _NOT_TAKEN and refusals else one for one in found.findings
    ]
    return replace(found, findings=findings)


def _reach(config: Config) -> Finding:  # noqa: PLR0911  one a way to fail
    mqtt = config.mqtt
    where = f"{mqtt.host}:{mqtt.port}"
    try:
        context = tls_context(mqtt) if mqtt.tls else None
        with socket.create_connection((mqtt.host, mqtt.port), _REACH_S) as plain:
            if context is None:
                return Finding("broker", "ok", f"{where} can be reached, without TLS")
            with context.wrap_socket(plain, server_hostname=mqtt.host) as wrapped:
                return Finding("broker", "ok", f"{where} can be reached, {wrapped.version()}, its certificate is good")
    except BrokerConfigError as error:
        return Finding("broker", "fault", str(error), "name a file that is there and holds what its key says")
    except socket.gaierror as error:
        mend = f"check mqtt.host, and the network: getent hosts {mqtt.host}"
        return Finding("broker", "fault", f"nobody knows the host {mqtt.host}: {error.strerror}", mend)
    except ConnectionRefusedError:
        mend = "check mqtt.host and mqtt.port; where the broker is on this machine: sudo systemctl start mosquitto"
        return Finding("broker", "fault", f"nobody listens at {where}", mend)
    except ssl.SSLCertVerificationError as error:
        mend = "set mqtt.tls_ca_file to who signed the broker's certificate, and mqtt.host to a name that it is for"
        return Finding("broker", "fault", f"{where}: {explained(error)}", mend)
    except ssl.SSLError as error:
        return Finding(
            "broker", "fault", f"{where} speaks no TLS: {error}", "set mqtt.port to its TLS port, often 8883"
        )
    except OSError as error:
        mend = f"check the network, and a firewall between: ping {mqtt.host}"
        return Finding("broker", "fault", f"{where} cannot be reached: {error}", mend)


class _Overheard(logging.Handler):
    """Keeps what the connection logs: why a broker refuses us is told nowhere else."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def _guest(config: Config) -> Iterator[tuple[Connection, queue.SimpleQueue[_Heard]]]:
    heard: queue.SimpleQueue[_Heard] = queue.SimpleQueue()
    handlers = Handlers(
        connected=lambda protocol: heard.put(_Heard("connected", protocol)),
        subscribed=lambda problem: heard.put(_Heard("subscribed", problem)),
        disconnected=lambda problem: heard.put(_Heard("disconnected", problem)),
        protocol_refused=lambda: heard.put(_Heard("refused")),
        received=lambda message: heard.put(_Heard("received", message)),
        died=lambda error: heard.put(_Heard("died", error)),
    )
    once = config.mqtt.model_copy(update={"session_expiry_s": 0, "reconnect_min_s": 1, "reconnect_max_s": 1})
    connection = Connection(once, f"speakd-doctor-{uuid.uuid4().hex[:12]}", handlers)
    connection.start()
    try:
        yield connection, heard
    finally:
        connection.stop(None, _GOODBYE_S)


def _converse(config: Config, connection: Connection, heard: queue.SimpleQueue[_Heard], reached: Finding) -> Visit:
    topics = Topics(config.mqtt.topic_prefix, config.device.name)
    deadline = time.monotonic() + _ANSWER_S
    taken = ""
    problem = ""
    status: Status | None = None
    said: dict[str, bytes] = {}
    answered = False
    while not answered and (left := deadline - time.monotonic()) > 0:
        try:
            one = heard.get(timeout=left)
        except queue.Empty:
            break
        match one:
            case _Heard("connected", protocol):
                taken = str(protocol)
                connection.subscribe(topics.status, topics.telemetry, topics.event)
            case _Heard("subscribed", refused):
                problem = str(refused or "")
                connection.publish(topics.of("ping"), "")
                deadline = time.monotonic() + _ABSENT_S
            case _Heard("disconnected", reason):
                problem = str(reason or problem)
                deadline = min(deadline, time.monotonic() + _ABSENT_S)
            case _Heard("refused"):
                connection.try_other_protocol()
                deadline = time.monotonic() + _ANSWER_S
            case _Heard("died", error):
                problem = f"{type(error).__name__}: {error}"
            case _Heard("received", Received() as message):
                message.acknowledge()
                said[message.topic] = message.payload
                if message.topic == topics.status:
                    status = _status(message.payload) or status
                    answered = status is not None and status.state != "online"
                    deadline = time.monotonic() + _PONG_S
                else:
                    answered = _is_pong(message.payload)
    findings = [reached]
    if not taken:
        mend = "check mqtt.username, mqtt.password_file, and the broker's own list; its log tells why"
        return Visit([*findings, Finding("broker", "fault", _NOT_TAKEN, mend)])
    findings.append(Finding("broker", "ok", f"it takes us, {taken}"))
    if problem:
        read = f"{topics.status}, {topics.telemetry} and {topics.event}"
        mend = f"let us read {read} in the broker's access list"
        findings.append(Finding("broker", "fault", problem, mend))
    telemetry = _telemetry(said.get(topics.telemetry, b""))
    return Visit([*findings, *_daemon(config.device.name, status, answered=answered)], status, telemetry)


def _daemon(name: str, status: Status | None, *, answered: bool) -> list[Finding]:
    if status is None:
        return [Finding("daemon", "fault", f"nobody has ever been {name} at this broker", RESTART)]
    if status.state != "online":
        return [Finding("daemon", "fault", f"{name} is {status.state}", RESTART)]
    if not answered:
        text = f"{name} says that it is online, but does not answer"
        return [Finding("daemon", "fault", text, RESTART)]
    findings = [Finding("daemon", "ok", f"{name} is online and answers, version {status.version}")]
    for what, state in (("commands", status.commands), ("connection", status.connection)):
        if state not in {None, "ok"}:
            mend = "check the broker's access list and that no other device has this name"
            findings.append(Finding("daemon", "fault", f"{what}: {state}", mend))
    refused = {ask: answer for ask, answer in (status.realtime or {}).items() if answer != "done"}
    findings += [Finding("daemon", "note", f"{ask}: {answer}") for ask, answer in refused.items()]
    return findings


def _status(payload: bytes) -> Status | None:
    try:
        return Status.model_validate_json(payload)
    except ValueError:
        return None  # the status of another version: what it says about itself cannot be told


def _telemetry(payload: bytes) -> Telemetry | None:
    try:
        return Telemetry.model_validate_json(payload)
    except ValueError:
        return None  # likewise


def _is_pong(payload: bytes) -> bool:
    try:
        event = json.loads(payload)
    except ValueError:
        return False
    return isinstance(event, dict) and event.get("event") == "pong"
