"""What the doctor reads from a machine, and what never gets into the archive for support."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators import tiny_kokoro

from daemon.config import Config
from daemon.config_text import show
from daemon.events import Status
from daemon.views import (
    doctor,
    doctor_cards,
    doctor_disk,
    doctor_machine,
    doctor_service,
    doctor_voice,
    support,
)
from daemon.views.finding import Finding
from engines.kokoro_import import KokoroSource, import_kokoro
from engines.pack_store import PackStore

PASSWORD = "correct-horse-battery"  # noqa: S105  nobody's
KEY = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49\n-----END PRIVATE KEY-----\n"


@pytest.fixture(autouse=True)
def not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this machine look as one that speakd was never installed on, whatever it is."""
    monkeypatch.setattr(doctor_service, "_UNIT_FILE", Path("/nowhere/speakd.service"))
    monkeypatch.setattr(doctor_service, "_HANDED_OVER", tmp_path / "credentials")


@pytest.fixture
def secret_config(tmp_path: Path) -> Config:
    return make_secret_config(tmp_path)


def make_secret_config(tmp_path: Path) -> Config:
    (tmp_path / "password").write_text(PASSWORD + "\n")
    (tmp_path / "key.pem").write_text(KEY)
    mqtt = {
        "host": "127.0.0.1",
        "port": 1,
        "username": "kiosk-seventeen",
        "password_file": str(tmp_path / "password"),
        "tls_key_file": str(tmp_path / "key.pem"),
    }
    packs = {"packs": str(tmp_path / "packs")}
    return Config.model_validate(
        {"mqtt": mqtt, "voice": packs, "audio": {"output": "null"}, "engine": {"backend": "ort"},
         "journal": {"file": str(tmp_path / "journal.db")}, "cache": {"folder": str(tmp_path / "phrases")}}
    )  # fmt: skip


def members_of(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as opened:
        return {name: file.read().decode() for name in opened.getnames() if (file := opened.extractfile(name))}


def test_no_secret_gets_into_the_archive(secret_config: Config, tmp_path: Path) -> None:
    file = tmp_path / "support.tar.gz"
    leak = f"the log says {PASSWORD} and kiosk-seventeen, {KEY} and MIGHAgEAMBMGByqGSM49AgEGCCqGSM49"
    support.write(file, secret_config, leak, json.dumps({"leak": leak}))
    members = members_of(file)
    assert {"speakd-support/report.txt", "speakd-support/speakd.toml", "speakd-support/packages.txt"} <= set(members)
    for text in members.values():
        assert PASSWORD not in text
        assert "kiosk-seventeen" not in text
        assert "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49" not in text
    assert str(tmp_path / "password") in members["speakd-support/speakd.toml"]  # the name helps, and tells nothing
    assert file.stat().st_mode & 0o077 == 0


@given(st.text(st.characters(categories=("L", "N", "P")), min_size=8, max_size=40))
def test_a_password_is_taken_out_wherever_it_stands(password: str) -> None:
    assert password not in support.clean(f"x{password}y {password}\nmqtt://me:{password}@host", [password]).replace(
        "(removed)", ""
    )


@pytest.mark.parametrize(
    "line",
    [
        "password=hunter22",
        'password: "hunter22"',
        "token = hunter22",
        "mqtt://me:hunter22@host:1883",
        "mqtt://me:a/hunter22@host:1883",
        "mqtt://me:a@hunter22@host:1883",
        "mqtt://me:a'hunter22@host:1883",
        '"secret": "hunter22"',
        "MQTT_PASSWORD=hunter22",
        'mqtt_password = "hunter22"',
        "passphrase: hunter22",
        "password = 'not hunter22'",
        'password = "not \\"hunter22"',
        '{"text": "password: \\"not hunter22\\""}',
    ],
)
def test_what_looks_like_a_secret_is_taken_out(line: str) -> None:
    assert "hunter22" not in support.clean(f"before {line} after", [])


def test_what_a_support_person_asks_for_stays() -> None:
    text = "mqtt.password_file: there is no /etc/speakd/password; 3 tests passed: all; sudo systemctl restart speakd"
    assert support.clean(text, []) == text


def test_a_secret_with_signs_of_json_is_taken_out_of_the_report_for_programs() -> None:
    secret = 'pa"ss\\wörd'  # noqa: S105  nobody's
    for ensure_ascii in (True, False):
        assert support.clean(json.dumps({"text": f"it says {secret}"}, ensure_ascii=ensure_ascii), [secret]) == (
            '{"text": "it says (removed)"}'
        )


def test_a_user_called_like_the_service_does_not_make_commands_unreadable(tmp_path: Path) -> None:
    config = Config.model_validate({"mqtt": {"username": "speakd"}})
    support.write(tmp_path / "a.tar.gz", config, "sudo systemctl restart speakd", "{}")
    assert members_of(tmp_path / "a.tar.gz")["speakd-support/report.txt"] == "sudo systemctl restart speakd\n"


def test_the_configuration_keeps_what_is_no_secret(secret_config: Config) -> None:
    text = support.redacted(secret_config)
    differing = set(show(secret_config).splitlines()) ^ set(text.splitlines())
    assert {line for line in differing if not line.startswith("#")} == {
        'username = "kiosk-seventeen"',
        'username = "(removed)"',
    }


def test_an_archive_is_whole_or_not_there(secret_config: Config, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        support.write(tmp_path / "nowhere" / "support.tar.gz", secret_config, "", "{}")
    before = set(tmp_path.iterdir())
    (tmp_path / "folder.tar.gz").mkdir()
    with pytest.raises(OSError, match="directory"):
        support.write(tmp_path / "folder.tar.gz", secret_config, "", "{}")
    assert set(tmp_path.iterdir()) - before == {tmp_path / "folder.tar.gz"}


def test_a_jetson_is_described(tmp_path: Path) -> None:
    for name, text in {
        "etc/os-release": 'PRETTY_NAME="Ubuntu 22.04.5 LTS"\n',
        "etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n",
        "proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\0",
        "usr/local/cuda/version.json": '{"cuda" : {"name" : "CUDA SDK", "version" : "12.6.11"}}',
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {finding.topic: finding.text for finding in doctor_machine.machine(tmp_path)}
    assert found["system"].startswith("Ubuntu 22.04.5 LTS, kernel ")
    assert found["board"] == "NVIDIA Jetson Orin Nano Developer Kit"
    assert found["JetPack"].startswith("L4T 36.4.3, JetPack ")
    assert found["CUDA"] == "toolkit 12.6.11, driver 540.4.0"


@pytest.mark.parametrize(
    ("millidegrees", "state"), [("45500", "ok"), ("97000", "fault"), ("-256000", "note"), ("x", "note")]
)
def test_heat_is_told(tmp_path: Path, millidegrees: str, state: str) -> None:
    zone = tmp_path / "sys/class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "type").write_text("cpu-thermal\n")
    (zone / "temp").write_text(millidegrees + "\n")
    (finding,) = doctor_machine.temperatures(tmp_path)
    assert finding.state == state
    assert bool(finding.mend) == (state == "fault")


def test_a_password_that_anybody_can_read_is_a_fault(secret_config: Config) -> None:
    file = Path(secret_config.mqtt.password_file)
    file.chmod(0o644)
    Path(secret_config.mqtt.tls_key_file).chmod(0o600)
    (finding,) = doctor_service.files(secret_config)
    assert (finding.state, finding.mend) == ("fault", f"sudo chmod o-rwx {file}")
    file.chmod(0o600)
    assert [finding.state for finding in doctor_service.files(secret_config)] == ["ok"]
    file.unlink()
    (finding,) = doctor_service.files(secret_config)
    assert finding.state == "fault"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may do anything and asks for somebody who may not")
def test_root_is_told_what_the_service_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="speakd-") as name:
        folder = Path(name)
        if not all(parent.stat().st_mode & 0o001 for parent in folder.parents):
            pytest.skip(f"nobody else may enter {folder.parent}")
        folder.chmod(0o755)
        config = make_secret_config(folder)
        unit = folder / "speakd.service"
        unit.touch()
        monkeypatch.setattr(doctor_service, "_UNIT_FILE", unit)
        monkeypatch.setattr(doctor_service, "SERVICE_USER", "nobody")
        password, key = Path(config.mqtt.password_file), Path(config.mqtt.tls_key_file)
        password.chmod(0o640)
        key.chmod(0o644)
        unread, open_to_all, unwritten = doctor_service.files(config)
    assert (unread.state, unread.mend) == ("fault", f"sudo chgrp nobody {password} && sudo chmod 640 {password}")
    assert "the service cannot read" in unread.text
    assert (open_to_all.state, open_to_all.mend) == ("fault", f"sudo chgrp nobody {key} && sudo chmod 640 {key}")
    assert (unwritten.state, unwritten.mend) == ("fault", f"sudo chown -R nobody: {folder}")


@pytest.mark.parametrize(
    "section",
    [
        {"chimes": {"folder": "{}"}},
        {"lexicon": {"folder": "{}"}},
        {"render": {"folder": "{}"}},
        {"recorder": {"folder": "{}", "enabled": True}},
    ],
    ids=lambda section: next(iter(section)),
)
def test_a_file_where_a_folder_is_wanted_is_told(tmp_path: Path, section: dict[str, dict[str, object]]) -> None:
    (tmp_path / "x").touch()
    ((name, keys),) = section.items()
    config = Config.model_validate({name: keys | {"folder": str(tmp_path / "x")}})
    assert [f.text for f in doctor_service.files(config)] == [f"{tmp_path / 'x'} is a file where a folder is wanted"]


def test_what_systemd_hands_over_is_there_while_the_service_runs(tmp_path: Path) -> None:
    config = Config.model_validate({"mqtt": {"password_file": str(tmp_path / "credentials/mqtt-password")}})
    (finding,) = doctor_service.files(config)
    assert (finding.state, finding.mend) == ("note", "")


def test_a_service_that_gets_ready_is_not_to_be_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    facts = {"LoadState": "loaded", "ActiveState": "activating", "SubState": "start", "NRestarts": "0"}
    monkeypatch.setattr(doctor_service, "_unit_facts", lambda _: facts)
    (finding,) = doctor_service.service(tmp_path)
    assert finding.state == "note"
    assert "restart" not in finding.mend
    facts |= {"SubState": "auto-restart", "NRestarts": "3"}
    (finding,) = doctor_service.service(tmp_path)
    assert (finding.state, finding.mend.split(";")[0]) == ("fault", "sudo systemctl reset-failed speakd")


def test_an_engine_put_aside_is_told_to_whom_the_daemon_tells_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    status = Status(state="online", version="1", crashes="INT8 crashed 3 times in a row")
    (finding,) = doctor_service.engine_put_aside(status)
    assert (finding.state, finding.text) == ("fault", "INT8 crashed 3 times in a row")
    (finding,) = doctor_service.engine_put_aside(status.model_copy(update={"crashes": "ok"}))
    assert finding.state == "ok"


def test_a_mistake_in_the_configuration_is_told_with_all_that_does_not_need_it(tmp_path: Path) -> None:
    file = tmp_path / "speakd.toml"
    file.write_text("[mqtt]\nprot = 1\n")
    examination = doctor.examine(file)
    assert examination.config is None
    topics = {finding.topic: finding for finding in examination.findings}
    assert topics["configuration"].state == "fault"
    assert "port" in topics["configuration"].text
    assert topics["versions"].state == "ok"


def test_each_fault_says_what_mends_it(secret_config: Config, tmp_path: Path) -> None:
    file = tmp_path / "speakd.toml"
    file.write_text(show(secret_config.model_copy(update={"mqtt": Config().mqtt.model_copy(update={"port": 1})})))
    command = [sys.executable, "-m", "daemon", "--config", str(file), "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    faults = [finding for finding in report["findings"] if finding["state"] == "fault"]
    assert {finding["topic"] for finding in faults} == {"broker", "voice"}
    assert len(faults) == report["faults"]
    assert all(finding["mend"] for finding in faults)


def test_a_voice_of_styles_may_be_the_one_that_speaks_and_what_is_named_but_not_there_is_told(tmp_path: Path) -> None:
    source = KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, {"af_one": tiny_kokoro.style(0)}, {})
    import_kokoro(source, PackStore(tmp_path), ["af_one"])
    named = ("calm = af_one", "loud = gain=2", "gone = voice=hall", "odd = am_two voice=kokoro-en-us", "no = am_two")

    def found(**sections: object) -> list[Finding]:
        voice = {"packs": str(tmp_path), "default": "kokoro-en-us"}
        return doctor_voice.voice(Config.model_validate({"voice": voice, **sections}))

    assert [finding.state for finding in found()] == ["ok"]
    *faults, _ = found(styles={"named": named})
    assert [fault.state for fault in faults] == ["fault"] * 3
    assert [fault.text for fault in faults] == [
        "the style 'gone' names the voice 'hall', which is not there or is broken",
        "the style 'odd' names 'am_two', which is no style of kokoro-en-us",
        "the style 'no' names 'am_two', which is no style of any voice",
    ]


def test_a_folder_that_who_asks_may_not_enter_is_no_fault_of_the_voice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may enter all of them."""
    status = Status(state="online", version="1", voice="joe")
    config = Config.model_validate({"voice": {"packs": str(tmp_path)}, "audio": {"watermark": True}})
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    found = doctor_voice.voice(config, status) + doctor_voice.watermark(config, status)
    assert [(finding.topic, finding.state) for finding in found] == [("voice", "note"), ("watermark", "note")]


@pytest.fixture
def closed_folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder that whoever asks may not look into, also where the tests are root's."""
    folder = tmp_path / "closed"
    (folder / "inner").mkdir(parents=True)
    folder.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield folder / "inner"
    finally:
        os.seteuid(user)
        folder.chmod(0o700)


def test_what_is_another_users_is_no_fault(closed_folder: Path) -> None:
    """The owner of a kiosk asks without sudo, of folders that the configuration names: the service's own."""
    config = Config.model_validate(
        {"voice": {"packs": str(closed_folder)}, "journal": {"file": str(closed_folder / "journal.db")},
         "cache": {"folder": str(closed_folder)}, "mqtt": {"password_file": str(closed_folder / "password")}}
    )  # fmt: skip
    online = Status(state="online", version="1", voice="joe")
    findings = [*doctor_voice.voice(config, online), *doctor_disk.room(config), *doctor_service.files(config)]
    assert {finding.state for finding in findings} == {"note"}
    assert all("sudo" in finding.text + finding.mend for finding in findings)


SYSTEMCTL = """#!/bin/sh
[ "$1" = show ] || exit 1
case "$2" in
speakd.service) printf 'LoadState=loaded\nActiveState=%s\nSubState=x\nResult=core-dump\nExecMainStatus=11\n' "$STATE"
  printf 'NRestarts=3\nMainPID=0\n' ;;
speakd-power.socket) printf 'LoadState=loaded\\nActiveState=active\\n' ;;
*) printf 'LoadState=loaded\\nActiveState=%s\\nSubState=x\\n' "$HELPER" ;;
esac
"""


@pytest.mark.parametrize(("state", "expected"), [("active", "note"), ("failed", "fault"), ("inactive", "fault")])
def test_what_systemd_says_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, expected: str) -> None:
    program = tmp_path / "systemctl"
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("STATE", state)
    assert [finding.state for finding in doctor_service.service(tmp_path)] == ["note"]  # no systemd here
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    (finding,) = doctor_service.service(tmp_path)
    assert finding.state == expected
    assert "3 times" in finding.text
    assert ("core-dump 11" in finding.text) == (expected == "fault")
    for of_helper, told in {"failed": "fault", "inactive": "ok", "active": "ok"}.items():
        monkeypatch.setenv("HELPER", of_helper)
        (helper,) = doctor_service.power_helper(tmp_path)
        assert (helper.state, bool(helper.mend)) == (told, told == "fault")


def card(root: Path, name: str, device: str, control: str, *, pcm: str = "pcmC0D0p") -> None:
    """Make a sound card of `device`, whose power/control lies in `control`, below a /sys in `root`."""
    (root / "sys/devices" / device / "sound/card0" / pcm).mkdir(parents=True)
    (root / "sys/devices" / device / "sound/card0/id").write_text(f"{name}\n")
    (root / "sys/devices" / device / "sound/card0/device").symlink_to("../..")
    (root / "sys/devices" / control / "power").mkdir(parents=True)
    (root / "sys/devices" / control / "power/control").write_text("auto\n")
    (root / "sys/class/sound").mkdir(parents=True, exist_ok=True)
    target = os.path.relpath(root / "sys/devices" / device / "sound/card0", root / "sys/class/sound")
    (root / "sys/class/sound/card0").symlink_to(target)


@pytest.mark.parametrize(
    ("device", "control"),
    [("usb1/1-2/1-2:1.0", "usb1/1-2"), ("pci0000:00/0000:00:1f.3", "pci0000:00/0000:00:1f.3/hdaudioC0D0")],
)
def test_a_card_that_sleeps_is_told_with_what_keeps_it_awake(tmp_path: Path, device: str, control: str) -> None:
    card(tmp_path, "Device", device, control)
    if "usb" in device:
        (tmp_path / "sys/devices" / device / "bInterfaceNumber").write_text("00\n")
    (found,) = doctor_cards.sleeping_cards(tmp_path)
    assert (found.state, "card Device sleeps" in found.text, "./install.sh" in found.mend) == ("note", True, True)
    rules = tmp_path / doctor_cards.RULES.relative_to("/")
    rules.parent.mkdir(parents=True)
    rules.touch()
    file = (tmp_path / "sys/devices" / control / "power/control").resolve()
    (found,) = doctor_cards.sleeping_cards(tmp_path)
    assert f"echo on | sudo tee {file}" in found.mend
    file.write_text("on\n")
    (found,) = doctor_cards.sleeping_cards(tmp_path)
    assert (found.state, "Device" in found.text) == ("ok", True)


def test_only_cards_that_play_and_sleep_are_told(tmp_path: Path) -> None:
    assert doctor_cards.sleeping_cards(tmp_path) == []
    card(tmp_path, "Webcam", "usb1/1-3/1-3:1.2", "usb1/1-3", pcm="pcmC0D0c")
    (tmp_path / "sys/devices/usb1/1-3/1-3:1.2/bInterfaceNumber").write_text("02\n")
    assert doctor_cards.sleeping_cards(tmp_path) == []


def test_a_card_of_the_board_itself_is_not_said_to_sleep(tmp_path: Path) -> None:
    card(tmp_path, "APE", "platform/sound", "platform/sound")
    (found,) = doctor_cards.sleeping_cards(tmp_path)
    assert found.state == "ok"
