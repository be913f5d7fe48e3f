"""The doctor at real brokers, a real daemon and a real sound server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integration.conftest import MakeDaemon
from simulators.broker import Amqtt, Mosquitto
from simulators.certificates import Authority
from simulators.controller import DEVICE, Controller
from simulators.daemon_process import DaemonProcess
from simulators.pulse import PulseServer

from daemon.config import Config, load
from daemon.config_text import show
from daemon.views import doctor_broker, doctor_service
from daemon.views.finding import Finding

PATIENCE_S = 60
MOSQUITTO_PASSWD = shutil.which("mosquitto_passwd") or "mosquitto_passwd is not installed"


def ask(file: Path, *arguments: str, environment: dict[str, str] | None = None) -> tuple[int, list[Finding]]:
    command = [sys.executable, "-m", "daemon", "--config", str(file), "doctor", "--json", *arguments]
    environment = {**os.environ, **(environment or {})}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment)
    return done.returncode, [Finding(**finding) for finding in json.loads(done.stdout)["findings"]]


def config_for(port: int, **mqtt: Any) -> Config:  # noqa: ANN401
    return Config.model_validate({"device": {"name": DEVICE}, "mqtt": {"host": "127.0.0.1", "port": port, **mqtt}})


def faults(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.state == "fault"]


def test_a_daemon_that_is_well_has_no_fault(daemon: DaemonProcess) -> None:
    status, findings = ask(daemon.file)
    assert faults(findings) == []
    assert status == 0
    told = {(finding.topic, finding.text) for finding in findings}
    assert any(topic == "daemon" and text.startswith(f"{DEVICE} is online and answers") for topic, text in told)
    assert any(topic == "backend" and text.endswith("computes en_US-joe-medium now") for topic, text in told)


def test_a_visitor_without_rights_is_told_no_fault_of_a_service_that_is_well(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    """They have a home of their own, and nothing of the service's in it."""
    own = dict(load(daemon.file))
    theirs = tmp_path / "theirs.toml"
    theirs.write_text(
        show(Config(**{**own, "voice": own["voice"].model_copy(update={"packs": str(tmp_path / "none")})}))
    )
    status, findings = ask(theirs)
    assert (status, faults(findings)) == (0, [])
    (told,) = [finding for finding in findings if finding.topic == "voice"]
    assert (told.state, told.mend) == ("note", "sudo speakd doctor looks at them")
    assert "en_US-joe-medium speaks" in told.text


def test_a_daemon_that_was_stopped_or_hangs_is_told(daemon: DaemonProcess, controller: Controller) -> None:
    os.kill(daemon.pid, 19)
    try:
        _, findings = ask(daemon.file)
    finally:
        os.kill(daemon.pid, 18)
    assert [(finding.topic, finding.mend) for finding in faults(findings)] == [("daemon", doctor_service.RESTART)]
    daemon.terminate()
    controller.wait_for_status("stopped")
    status, findings = ask(daemon.file)
    assert status == 1
    assert [(finding.topic, finding.text) for finding in faults(findings)] == [("daemon", f"{DEVICE} is stopped")]


def test_a_wrong_password_is_told(tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    passwords.touch(mode=0o600)
    subprocess.run([MOSQUITTO_PASSWD, "-b", str(passwords), "kiosk", "right"], check=True, capture_output=True)
    (tmp_path / "password").write_text("wrong\n")
    with Mosquitto("allow_anonymous false", f"password_file {passwords}") as broker:
        config = config_for(broker.port, username="kiosk", password_file=str(tmp_path / "password"))
        visit = doctor_broker.visit(config)
        (fault,) = faults(visit.findings)
        assert fault.topic == "broker"
        assert "Not authorized" in fault.text
        assert "mqtt.password_file" in fault.mend
        (tmp_path / "password").write_text("")
        (empty,) = faults(doctor_broker.visit(config).findings)
        assert "mqtt.password_file" in empty.text
        (tmp_path / "password").write_text("right\n")
        assert [fault.topic for fault in faults(doctor_broker.visit(config).findings)] == ["daemon"]


def test_tls_is_looked_into(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    certificate, key = authority.issue("broker")
    with Mosquitto(f"cafile {authority.ca}", f"certfile {certificate}", f"keyfile {key}") as broker:
        good = doctor_broker.visit(config_for(broker.port, tls=True, tls_ca_file=str(authority.ca)))
        assert "TLSv1.3, its certificate is good" in good.findings[0].text
        assert [fault.topic for fault in faults(good.findings)] == ["daemon"]
        (unknown,) = doctor_broker.visit(config_for(broker.port, tls=True)).findings
        assert unknown.state == "fault"
        assert "mqtt.tls_ca_file" in unknown.mend
    with Mosquitto() as plain:
        (no_tls,) = doctor_broker.visit(config_for(plain.port, tls=True, tls_ca_file=str(authority.ca))).findings
        assert no_tls.state == "fault"
        assert "TLS port" in no_tls.mend or "network" in no_tls.mend


def test_a_broker_that_is_not_there_or_old_is_told() -> None:
    (nobody,) = doctor_broker.visit(config_for(1)).findings
    assert (nobody.state, "nobody listens" in nobody.text) == ("fault", True)
    (unknown,) = doctor_broker.visit(config_for(1, host="no-such-host.invalid")).findings
    assert (unknown.state, "nobody knows the host" in unknown.text) == ("fault", True)
    with Amqtt() as broker:
        visit = doctor_broker.visit(config_for(broker.port))
        assert [fault.topic for fault in faults(visit.findings)] == ["daemon"]


def test_a_tone_is_heard(tmp_path: Path, voice_packs: Path) -> None:
    file = tmp_path / "speakd.toml"
    config = {"mqtt": {"host": "127.0.0.1", "port": 1}, "voice": {"packs": str(voice_packs)}}
    file.write_text(show(Config.model_validate({**config, "journal": {"file": str(tmp_path / "journal.db")}})))
    with PulseServer() as loudspeaker:
        with loudspeaker.record() as recording:
            _, findings = ask(file, "--tone", environment=loudspeaker.environment)
        assert any(finding.topic == "sound" and "a tone was played" in finding.text for finding in findings)
    heard = recording.samples[np.abs(recording.samples) > 0.01]
    assert len(heard) / 48_000 == pytest.approx(1.0, abs=0.1)
    spectrum = np.abs(np.fft.rfft(recording.samples))
    assert np.argmax(spectrum) * 48_000 / len(recording.samples) == pytest.approx(440, abs=2)


def test_without_a_sound_card_the_fault_names_the_device(tmp_path: Path, make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(audio={"output": "alsa", "device": "hw:CARD=absent"})
    _, findings = ask(daemon.file)
    (fault,) = [fault for fault in faults(findings) if fault.topic == "sound"]
    assert "hw:CARD=absent" in fault.text
    assert "aplay -L" in fault.mend
