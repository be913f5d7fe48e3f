"""A real disk that hangs: a file with ext4 in it, mounted, whose file system the kernel holds up.

Whoever writes there waits, and no signal helps, as with a card that does not answer any more.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

_SIZE: Final = "256M"
_TIMEOUT_S: Final = 60


class FrozenDisk:
    """Freezes and thaws, the latter at the end of its block too: whoever hangs then cannot be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        """Where it is mounted."""
        self._frozen = False

    def __enter__(self) -> FrozenDisk:  # noqa: PYI034  typing.Self is of Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thaw()

    def freeze(self) -> None:
        """From now on writers wait."""
        _run("fsfreeze", "--freeze", str(self.folder))
        self._frozen = True

    def thaw(self) -> None:
        """Let them go on. Idempotent."""
        if self._frozen:
            _run("fsfreeze", "--unfreeze", str(self.folder))
            self._frozen = False


def obstacle(folder: Path) -> str:
    """Say why there can be none here; empty where there can. Mounts one in `folder` to know."""
    if os.geteuid() != 0:
        return "only root can mount a disk"
    try:
        with frozen_disk(folder) as disk:
            disk.freeze()
    except (OSError, subprocess.SubprocessError) as error:
        return f"no disk can be mounted and frozen: {getattr(error, 'stderr', '') or error}"
    return ""


@contextmanager
def frozen_disk(folder: Path) -> Iterator[FrozenDisk]:
    """Mount one in `folder`; at the end it is thawed and gone, whatever happened."""
    image, place = folder / "disk.img", folder / "disk"
    place.mkdir()
    _run("truncate", "--size", _SIZE, str(image))
    _run("mkfs.ext4", "-q", str(image))
    _run("mount", "-o", "loop", str(image), str(place))
    disk = FrozenDisk(place)
    try:
        yield disk
    finally:
        disk.thaw()
        _run("umount", "--lazy", str(place))
        image.unlink()


def _run(*command: str) -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    environment = {**os.environ, "PATH": path}
    subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S)
