"""The chimes there are, all as loud as the voice, and which ones go with a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from daemon.commands import Chime, Speak
from daemon.config import ChimesConfig
from daemon.errors import ChimeError, PayloadError
from daemon.framing import Framing
from daemon.level import gain_of
from device.bell import BELL_LUFS, bell
from device.errors import SoundFileError
from device.format import Samples, seconds
from device.sound_file import SUFFIXES, read_sound
from engines.errors import LoudnessError
from engines.loudness import factor_between, loudness_of_each

_LONGEST_S: Final = 10.0
"""A chime announces; what lasts longer is music."""

_MOST: Final = 32
"""Files: each second of sound takes 192 kB for as long as the daemon runs."""


@dataclass(frozen=True, slots=True)
class Chimes:
    """All chimes by name, and the default ones. Immutable; for all threads."""

    sounds: Mapping[str, Samples]
    defaults: Mapping[str, str]
    """Priority -> name of the chime before its commands."""
    overlap_ms: int = 0

    @classmethod
    def load(cls, config: ChimesConfig, target_lufs: float) -> Chimes:
        """Make the bundled ones, read the owner's, and bring all to one loudness. ChimeError says what is wrong."""
        sounds = {name: bell(name) * np.float32(factor_between(lufs, target_lufs)) for name, lufs in BELL_LUFS.items()}
        sounds |= _own(Path(config.folder), target_lufs) if config.folder else {}
        defaults = config.model_dump(include={"critical", "important", "message", "notification", "progress"})
        for priority, name in defaults.items():
            if name and name not in sounds:
                raise ChimeError(f"chimes.{priority}", f"there is no chime {name!r}: there are {', '.join(sounds)}")
        return cls(sounds, {priority: name for priority, name in defaults.items() if name}, config.overlap_ms)

    def settled(self, command: Speak) -> Speak:
        """Say which chimes a command has, for good. PayloadError `chime` for one that there is none of."""
        wanted = command.chime
        if wanted is None:
            default = self.defaults.get(command.priority.value)
            return command if default is None else command.model_copy(update={"chime": default})
        for name in _names(wanted):
            if name and name not in self.sounds:
                reason = f"there is no chime {name!r}: there are {', '.join(self.sounds)}"
                raise PayloadError("chime", reason, command.id)
        return command

    def framing(self, command: Speak) -> Framing | None:
        """Give what goes around a command's speech; None where nothing does. One that is gone since is left out."""
        before, after = (self.sounds.get(name) for name in _names(command.chime))
        if before is None and after is None:
            return None
        return Framing.of(before, after, overlap_ms=self.overlap_ms, gain=gain_of(command.volume))

    def length_s(self, command: Speak) -> float:
        """Give by how much the chimes make a command longer."""
        framing = self.framing(command)
        return 0.0 if framing is None else seconds(framing.extra)


NO_CHIMES: Final = Chimes({}, {})


def _names(chime: str | Chime | None) -> tuple[str, str]:
    """Give the chimes before and after, "" for none."""
    if isinstance(chime, Chime):
        return chime.before, chime.after
    return chime or "", ""


def _own(folder: Path, target_lufs: float) -> dict[str, Samples]:
    """Read the owner's chimes."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    except OSError as error:
        raise ChimeError("chimes.folder", f"{folder} cannot be read: {error.strerror}") from error
    if len(files) > _MOST:
        raise ChimeError("chimes.folder", f"{folder} holds {len(files)} sounds, {_MOST} are allowed")
    sounds: dict[str, Samples] = {}
    try:
        for path in files:
            if path.stem in sounds:
                raise ChimeError("chimes.folder", f"{folder} holds two chimes {path.stem!r}: rename one")
            sounds[path.stem] = read_sound(path, longest_s=_LONGEST_S)
        measured = loudness_of_each(list(sounds.values())) if sounds else []
    except (SoundFileError, LoudnessError) as error:
        raise ChimeError("chimes.folder", str(error)) from error
    for path, lufs in zip(files, measured, strict=True):
        if lufs is None:
            raise ChimeError("chimes.folder", f"{path} is silent: make it louder, or take it away")
        sounds[path.stem] = sounds[path.stem] * np.float32(factor_between(lufs, target_lufs))
    return sounds
