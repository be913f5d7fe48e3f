"""What the doctor looks at in the service: systemd's view, crashes, groups, permissions."""

from __future__ import annotations

import grp
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from daemon.config import (
    Config,
    journal_file,
    packs_folder,
    phrases_folder,
    recordings_folder,
    renders_folder,
    state_folder,
)
from daemon.crashes import PUT_ASIDE, problem_of
from daemon.events import Status
from daemon.views.commands_run import output_of
from daemon.views.finding import Finding, State

UNIT: Final = "speakd.service"
SERVICE_USER: Final = "speakd"
RESTART: Final = "sudo systemctl reset-failed speakd; sudo systemctl restart speakd"
"""systemd refuses what it was asked too often, also to whoever has mended the cause."""
HELPER: Final = "speakd-power.service"
HELPER_SOCKET: Final = "speakd-power.socket"
_UNIT_FILE: Final = Path("/etc/systemd/system") / UNIT
_STATE: Final = Path("/var/lib/speakd")
_HANDED_OVER: Final = Path("/run/credentials") / UNIT
_HOMES: Final = (Path("/home"), Path("/root"), Path("/run/user"))
_GPU_NODES: Final = ("dev/nvhost-ctrl-gpu", "dev/nvmap", "dev/nvidiactl")
_JTOP_SOCKET: Final = "run/jtop.sock"


def for_the_service(command: str) -> str:
    """Give a command of ours as it changes what the service has, where it is installed."""
    return f"sudo {command}" if _UNIT_FILE.exists() and os.geteuid() != 0 else command


def service(root: Path = Path("/")) -> list[Finding]:
    """Tell whether systemd runs speakd, and how often it had to start it again."""
    if not (root / "run/systemd/system").is_dir():
        return [Finding("service", "note", "systemd does not run here")]
    facts = _unit_facts(UNIT)
    if facts.get("LoadState") != "loaded":
        return [Finding("service", "note", f"{UNIT} is not installed", "sudo ./install.sh")]
    restarts = facts.get("NRestarts", "0")
    text = f"{facts.get('ActiveState')} ({facts.get('SubState')}), started again {restarts} times since it was started"
    if facts.get("ActiveState") == "active":
        return [Finding("service", "ok" if restarts == "0" else "note", text)]
    if facts.get("ActiveState") == "activating" and facts.get("SubState") == "start" and restarts == "0":
        mend = (
            f"wait: the voice gets warm, which takes minutes where engines are built; journalctl -fu {UNIT} tells more"
        )
        return [Finding("service", "note", text, mend)]
    reason = f"{text}; it ended with: {facts.get('Result')} {facts.get('ExecMainStatus')}"
    return [Finding("service", "fault", reason, f"{RESTART}; journalctl -u {UNIT} -n 50 tells why")]


def power_helper(root: Path = Path("/")) -> list[Finding]:
    """Tell whether the helper runs that sets clocks and power modes for us, where it is installed."""
    facts = _unit_facts(HELPER) if (root / "run/systemd/system").is_dir() else {}
    if facts.get("LoadState") != "loaded":
        return []
    state = f"{facts.get('ActiveState')} ({facts.get('SubState')})"
    # Its socket starts it when it is needed.
    waits = facts.get("ActiveState") == "inactive" and _unit_facts(HELPER_SOCKET).get("ActiveState") == "active"
    if waits or facts.get("ActiveState") in {"active", "activating"}:
        return [Finding("power helper", "ok", "waits until it is needed" if waits else state)]
    mend = f"sudo systemctl enable --now {HELPER_SOCKET}; journalctl -u {HELPER} -n 20 tells why it ended"
    return [Finding("power helper", "fault", state, mend)]


def last_crash() -> list[Finding]:
    """Tell when native code crashed last, where the system keeps that."""
    listed = [line for line in output_of(["coredumpctl", "--no-pager", "--no-legend", "list"]).splitlines()
              if re.search(r"speakd|/python3", line)]  # fmt: skip
    if listed:
        return [Finding("last crash", "note", " ".join(listed[-1].split()), "coredumpctl info tells more")]
    command = ["journalctl", "--no-pager", "-q", "-u", UNIT, "-o", "short-iso", "-n", "1", "--grep"]
    line = output_of([*command, "dumped core|status=[0-9]+/(SEGV|ABRT|BUS|ILL|FPE)|watchdog"]).strip()
    if line:
        return [Finding("last crash", "note", line.splitlines()[-1], f"journalctl -u {UNIT} tells what came before")]
    return [Finding("last crash", "ok", "none is recorded")]


def engine_put_aside(status: Status | None = None) -> list[Finding]:
    """Tell whether an engine crashed so often that it is no longer used: by the daemon that runs, else by its file."""
    file = (_STATE if _UNIT_FILE.exists() else state_folder()) / PUT_ASIDE
    if status is not None and status.state == "online" and status.crashes is not None:
        problem = None if status.crashes == "ok" else status.crashes
    elif file.parent.exists() and not os.access(file.parent, os.R_OK | os.X_OK):
        return [Finding("engine", "note", f"{file.parent} cannot be looked at by who asks; ask with sudo")]
    else:
        problem = problem_of(file)
    if problem is None:
        return [Finding("engine", "ok", "none was put aside for crashing")]
    return [Finding("engine", "fault", problem, f"to try it again: sudo rm {file}; {RESTART}")]


def groups(root: Path = Path("/")) -> list[Finding]:
    """Tell whether speakd is in the groups that own sound, GPU and jtop: the running service, or else who asks."""
    pid = int(_unit_facts(UNIT).get("MainPID") or 0)
    whose, belongs = f"{UNIT} (process {pid})", _groups_of(pid) if pid else None
    if belongs is None:
        whose, belongs = "who asks", None if os.geteuid() == 0 else {*os.getgroups(), os.getegid()}
    if belongs is None:
        return [Finding("groups", "note", "asked by root, who may do anything; the service is not running")]
    needed = {"audio": (root / "dev/snd").is_dir(), "video": any((root / node).exists() for node in _GPU_NODES)}
    needed["jtop"] = (root / _JTOP_SOCKET).exists()
    findings = []
    for name, is_needed in needed.items():
        if not is_needed:
            continue
        try:
            number = grp.getgrnam(name).gr_gid
        except KeyError:
            continue
        if number in belongs:
            findings.append(Finding("groups", "ok", f"{whose} is in {name}"))
        else:
            mend = f"sudo systemctl edit {UNIT}: [Service] SupplementaryGroups={name}"
            mend = mend if pid else f"sudo usermod -aG {name} $USER, then log in again"
            findings.append(Finding("groups", "fault", f"{whose} is not in {name}", mend))
    if needed["jtop"] and find_spec("jtop") is None:
        mend = "sudo /opt/speakd/current/venv/bin/pip install 'jetson-stats>=7'"
        findings.append(Finding("jtop", "note", "its service runs, but its Python package is not installed here", mend))
    return findings or [Finding("groups", "ok", "nothing here asks for one")]


def files(config: Config) -> list[Finding]:
    """Tell whether the files that the configuration names can be read, and the folders written.

    By the service, where it is installed and root asks; else by who asks.
    """
    mqtt = config.mqtt
    named = {
        "mqtt.username_file": mqtt.username_file,
        "mqtt.password_file": mqtt.password_file,
        "mqtt.tls_ca_file": mqtt.tls_ca_file,
        "mqtt.tls_cert_file": mqtt.tls_cert_file,
        "mqtt.tls_key_file": mqtt.tls_key_file,
    }
    findings = [finding for key, name in named.items() if name for finding in _file(key, Path(name))]
    read = {Path(name) for name in (config.chimes.folder, config.lexicon.folder) if name}
    written = {packs_folder(config), journal_file(config).parent, phrases_folder(config)}
    if config.recorder.enabled:
        written.add(recordings_folder(config))
    if config.render.folder:
        written.add(renders_folder(config))
    for folder in sorted(read | written):
        if _is_file(folder):
            mend = f"move {folder} away, or change the key that names it"
            findings.append(Finding("files", "fault", f"{folder} is a file where a folder is wanted", mend))
    for folder in sorted(written):
        if not _may_be_there(folder) or _service_may("-w", folder):
            continue
        if _asks_for_the_service():
            mend = f"sudo chown -R {SERVICE_USER}: {folder}"
            findings.append(Finding("files", "fault", f"the service cannot write to {folder}", mend))
        else:
            findings.append(Finding("files", "note", f"{folder} cannot be written by who asks; ask with sudo"))
    return findings or [Finding("files", "ok", "all that the configuration names can be used")]


def _file(key: str, file: Path) -> list[Finding]:
    """Tell what is wrong with a file that is to be read."""
    ours_alone = f"sudo chgrp {SERVICE_USER} {file} && sudo chmod 640 {file}"
    state: State = "fault"
    mend = ""
    if not _may_be_there(file):
        text, mend = f"there is no {file}", f"create {file}, or change {key}"
        if _HANDED_OVER in file.parents:
            state, text, mend = "note", f"{file} is there while the service runs: systemd hands it over", ""
    elif _UNIT_FILE.exists() and any(home in file.resolve().parents for home in _HOMES):
        text = f"the service may not look into homes, where {file} is"
        mend = f"move it to /etc/speakd and change {key}"
    elif not _service_may("-r", file) and _asks_for_the_service():
        text, mend = f"the service cannot read {file}", ours_alone
    elif not _service_may("-r", file):
        state, text = "note", f"{file} cannot be read by who asks; ask with sudo"
    elif key in {"mqtt.password_file", "mqtt.tls_key_file"} and file.stat().st_mode & 0o007:
        text, mend = f"anybody can read {file}", ours_alone if _UNIT_FILE.exists() else f"sudo chmod o-rwx {file}"
    else:
        return []
    return [Finding("files", state, f"{key}: {text}", mend)]


def _asks_for_the_service() -> bool:
    """Tell whether root asks, who may do anything, about a service that may not."""
    return os.geteuid() == 0 and _UNIT_FILE.exists()


def _service_may(what: str, path: Path) -> bool:
    """Tell whether the service, or else who asks, may read (-r) or write (-w) something."""
    if _asks_for_the_service():
        script = f'test {what} "$1" && echo yes'
        return output_of(["runuser", "-u", SERVICE_USER, "--", "sh", "-c", script, "sh", str(path)]).strip() == "yes"
    return os.access(path, os.R_OK if what == "-r" else os.W_OK)


def _may_be_there(path: Path) -> bool:
    """Tell whether something is there, or where who asks may not look."""
    try:
        return path.exists()
    except PermissionError:
        return True


def _is_file(path: Path) -> bool:
    """Tell whether something is a file, as far as who asks may look."""
    try:
        return path.is_file()
    except PermissionError:
        return False


def _unit_facts(unit: str) -> dict[str, str]:
    properties = "LoadState,ActiveState,SubState,Result,ExecMainStatus,NRestarts,MainPID"
    lines = output_of(["systemctl", "show", unit, f"--property={properties}"]).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _groups_of(pid: int) -> set[int] | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if lines.get("Uid", "").split()[1:2] == ["0"]:
        return None
    return {int(number) for number in (lines.get("Groups", "") + " " + lines.get("Gid", "")).split()}
