"""What the board was like before the first change, on the disk until it is so again."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from power.errors import StateError

_BOOT_ID: Final = "proc/sys/kernel/random/boot_id"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The values found, as texts of their files."""

    boot: str
    """Which boot they are of: limits do not outlive one; a power mode does."""
    limits: dict[str, tuple[str, str]]
    """Name of a clock -> its lower and upper limit."""
    emc_cap: str | None
    mode: int | None
    """The power mode, by its id."""
    mode_asked: int | None = None
    """The mode that we have asked for since, noted before we did."""


def boot_of(root: Path) -> str:
    """Name this boot."""
    try:
        return (root / _BOOT_ID).read_text(encoding="ascii").strip()
    except OSError as error:
        raise StateError(f"{root / _BOOT_ID}: {error.strerror or error}") from error


class SnapshotFile:
    """Keeps one snapshot, whole after a power cut. For one process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> Snapshot | None:
        """Give what was kept; None where nothing was. StateError where it cannot be read; then it is put aside."""
        try:
            told = json.loads(self.path.read_bytes())
            limits = {str(name): (str(low), str(high)) for name, (low, high) in told["limits"].items()}
            return _sound(replace(Snapshot(**told), limits=limits))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{self.path}: {error.strerror or error}") from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            aside = self._set_aside()
            raise StateError(f"{aside} holds no settings: what was changed cannot be put back, reboot") from error

    def keep(self, snapshot: Snapshot) -> None:
        """Write it through to the disk, before what it is about is changed. StateError where that is not possible."""
        new = self.path.with_suffix(".new")
        try:
            with new.open("wb") as file:
                file.write(json.dumps(asdict(snapshot)).encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
            self._flush_folder()
        except OSError as error:
            raise StateError(f"{self.path}: {error.strerror or error}: nothing is changed") from error

    def forget(self) -> None:
        """Remove it, once everything is as it was. StateError where a disk that fails takes no change any more."""
        try:
            self.path.unlink(missing_ok=True)
            self._flush_folder()
        except OSError as error:
            raise StateError(
                f"{self.path}: {error.strerror or error}: it is put back again at the next start"
            ) from error

    def _set_aside(self) -> Path:
        aside = self.path.with_suffix(".damaged")
        try:
            self.path.replace(aside)
        except OSError as error:
            raise StateError(
                f"{self.path} holds no settings and cannot be renamed: {error.strerror or error}"
            ) from error
        return aside

    def _flush_folder(self) -> None:
        descriptor = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sound(snapshot: Snapshot) -> Snapshot:
    """Give it back; TypeError where it is none that `keep` has written."""
    texts = (snapshot.boot, snapshot.emc_cap or "", *(text for pair in snapshot.limits.values() for text in pair))
    modes = (snapshot.mode or 0, snapshot.mode_asked or 0)
    if not all(isinstance(text, str) and text.isascii() for text in texts):
        raise TypeError(texts)
    if not all(isinstance(mode, int) for mode in modes):
        raise TypeError(modes)
    return snapshot
