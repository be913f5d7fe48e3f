"""A machine with a real systemd on which speakd is installed: Debian in a container, made from nothing.

    base = debian(folder)                   a root file system, by debootstrap
    with Machine(base, root) as machine:    a copy of it, booted
        machine.run("systemctl", "is-active", "speakd")
        machine.cut_power()
        machine.boot()

It needs root, debootstrap, systemd-nspawn and Debian's mirror. `obstacle` tells what is missing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
SOURCES: Final = (
    "daemon",
    "device",
    "engines",
    "power",
    "systemd",
    "install.sh",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)

# ruff: noqa: S607  the machine's own tools, wherever it keeps them

_MIRROR: Final = "http://deb.debian.org/debian"
_PACKAGES: Final = "systemd,systemd-sysv,dbus,ca-certificates,procps,faketime"
_BOOT_S: Final = 60.0
_POLL_S: Final = 0.1
_TOOLS: Final = ("debootstrap", "systemd-nspawn", "unshare", "nsenter")


def obstacle() -> str:
    """Say why no container can be booted here; empty where one can."""
    if os.geteuid() != 0:
        return "it takes root to boot a container"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /run"], check=False, capture_output=True, text=True
    )
    return "" if tried.returncode == 0 else f"nothing can be mounted here: {tried.stderr.strip()}"


def debian(folder: Path) -> Path:
    """Give a root file system of this machine's release, without Python or anything of ours; made if missing."""
    base = folder / "base"
    if not base.exists():
        release = subprocess.run(
            ["sh", "-c", '. /etc/os-release; echo "$VERSION_CODENAME"'], check=True, capture_output=True, text=True
        ).stdout.strip()
        part = folder / "base.part"
        shutil.rmtree(part, ignore_errors=True)
        subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", release, str(part), _MIRROR],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (part / "etc/hosts").write_text("127.0.0.1 localhost\n")
        part.rename(base)
    return base


class Machine:
    """A container that runs from entering the block to leaving it. It has the network of this machine."""

    def __init__(self, base: Path, root: Path) -> None:
        self.root: Final = root
        if not root.exists():
            subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(root)], check=True)
        self._host: subprocess.Popen[bytes] | None = None
        self._leader = 0
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Machine:  # noqa: PYI034  typing.Self is of Python 3.11
        self.boot()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut_power()

    def boot(self) -> None:
        """Switch it on, and wait until systemd has started all there is."""
        nspawn = (
            f"mount -t tmpfs tmpfs /run && exec systemd-nspawn --quiet --directory='{self.root}' --boot --register=no "
            "--keep-unit --console=pipe"
        )
        log = self.root.with_suffix(".console")
        with log.open("ab") as console:
            self._host = subprocess.Popen(
                ["unshare", "-m", "sh", "-c", nspawn], stdin=subprocess.DEVNULL, stdout=console, stderr=console
            )
        self._leader = 0
        wait_for(self._has_leader, _BOOT_S, lambda: f"no systemd came up:\n{log.read_text(errors='replace')[-2000:]}")
        wait_for(self._has_started, _BOOT_S, lambda: self.run("systemctl", "--no-pager", check=False))

    def cut_power(self) -> None:
        """End everything in it at once. Idempotent."""
        if self._host is None:
            return
        if self._leader:
            os.kill(self._leader, signal.SIGKILL)  # the first process of a pid namespace: all others go with it
        try:
            self._host.wait(10)
        except subprocess.TimeoutExpired:
            self._host.kill()
            self._host.wait()
        self._host = None
        for process in self._started:
            process.wait(10)

    def command(self, *arguments: str) -> list[str]:
        """Give what runs a command in it, as root."""
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return ["nsenter", "-t", str(self._leader), "-a", "env", "-i", path, "HOME=/root", "LC_ALL=C.UTF-8", *arguments]

    def run(self, *arguments: str, check: bool = True, timeout_s: float = 300.0) -> str:
        """Run a command in it; gives what it printed."""
        done = subprocess.run(
            self.command(*arguments),
            check=False,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert not check or done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{done.stdout[-4000:]}"
        return done.stdout.strip()

    def start(self, *arguments: str) -> Path:
        """Start a command in it and go on, until the power is cut; gives the file with what it prints."""
        output = self.root.with_suffix(f".{len(self._started)}")
        with output.open("wb") as file:
            self._started.append(
                subprocess.Popen(self.command(*arguments), stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            )
        return output

    def path(self, inside: str) -> Path:
        """Give the path of a file in it as it is seen from outside."""
        return self.root / inside.lstrip("/")

    def write(self, inside: str, text: str) -> None:
        """Write a file in it."""
        file = self.path(inside)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def copy_sources(self, inside: str) -> Path:
        """Put this repository's sources there; gives the folder, seen from outside."""
        folder = self.path(inside)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in SOURCES:
            source = REPOSITORY / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, folder / name)
        return folder

    def _has_leader(self) -> bool:
        assert self._host is not None
        for process in _children(self._host.pid):
            if Path(f"/proc/{process}/comm").read_text().strip() == "systemd":
                self._leader = process
                return True
        return False

    def _has_started(self) -> bool:
        return self.run("systemctl", "is-system-running", check=False) in {"running", "degraded"}


def _children(process: int) -> list[int]:
    """Give the children of a process; systemd in the container is one of the process that watches over it."""
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def wait_for(condition: Callable[[], object], timeout_s: float, problem: Callable[[], str] | str) -> None:
    """Wait until it holds; AssertionError with the problem where it does not in time."""
    deadline = time.monotonic() + timeout_s
    never = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, problem if isinstance(problem, str) else problem()
        never.wait(_POLL_S)
