"""NVIDIA's power modes: the board's own file of them, and the program that changes between them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from power.errors import NvpmodelError

CONFIGURATION: Final = "etc/nvpmodel.conf"
STATUS: Final = "var/lib/nvpmodel/status"
PROGRAM: Final = "usr/sbin/nvpmodel"

TIME_LIMIT_S: Final = 20.0
"""For one call. Switching cores on and off takes some seconds; waiting for an answer to a question takes for ever."""

MOST_BYTES: Final = 1_000_000
"""Of the file. The real ones have some tens of thousands."""

_BLOCK: Final = re.compile(r"<\s*(PARAM|POWER_MODEL|PM_CONFIG)\b([^>]*)>")
_KEY: Final = re.compile(r"(\w+)=(\S+)")
_GATING: Final = re.compile(r"POWER_GATING|PG_MASK")
_WATTS: Final = re.compile(r"(?:^|_)(\d+)W(?:$|_)")
_STATUS: Final = re.compile(r"pmode:(\d{1,6})")
_ANSWER: Final = re.compile(r"NV Power Mode: *(\S+)\s+(\d{1,6})")
_FAILURES: Final = ("NVPM ERROR", "Reboot required")

_UNLIMITED_RANK: Final = 10_000
"""Of names without watts: MAXN is above every number of them, MAXN_SUPER above that."""


@dataclass(frozen=True, slots=True)
class PowerMode:
    """One mode of the board's own file."""

    id: int
    name: str
    settings: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(parameter, argument) -> value, in the file's words."""

    @property
    def watts(self) -> int | None:
        """What its name promises; None for MAXN and its like."""
        found = _WATTS.search(self.name)
        return int(found[1]) if found else None

    @property
    def rank(self) -> int:
        """Tell the order of how much it allows: MAXN_SUPER over MAXN over the most watts."""
        if "MAXN" in self.name:
            return _UNLIMITED_RANK + ("SUPER" in self.name)
        return self.watts or 0

    @property
    def cores(self) -> int:
        """How many processor cores it names as switched on."""
        return sum(parameter == "CPU_ONLINE" and value == "1" for (parameter, _), value in self.settings.items())

    @property
    def gating(self) -> Mapping[tuple[str, str], str]:
        """Which parts of the GPU are switched off. Between modes that differ in it lies a reboot."""
        return {key: value for key, value in self.settings.items() if any(_GATING.search(word) for word in key)}

    def cap(self, parameter: str) -> int | None:
        """Give the highest clock that it allows, in the unit of its file; None for no cap."""
        text = self.settings.get((parameter, "MAX_FREQ"), "")
        return int(text) if text.isdigit() and int(text) > 0 else None


@dataclass(frozen=True, slots=True)
class PowerModes:
    """All modes of a board's file, in the file's order, and where it keeps the present one."""

    modes: tuple[PowerMode, ...]
    default: int | None
    files: Mapping[tuple[str, str], str]
    """(parameter, argument) -> the absolute path that it is written to."""
    status: Path = Path("/") / STATUS

    def by_id(self, mode_id: int | None) -> PowerMode | None:
        """Give the mode with this id; ids may have gaps."""
        return next((mode for mode in self.modes if mode.id == mode_id), None)

    def name_of(self, status: str | None) -> str | None:
        """Give the name of the mode that the status file's text tells of."""
        mode = self.by_id(id_of(status))
        return mode.name if mode else None

    def lower(self, mode: PowerMode) -> PowerMode | None:
        """Give the next mode below, among those that need no reboot; None where there is none.

        Of several with the same watts, the one with the most cores. A mode without watts in its name, other than MAXN,
        is somebody's own and never chosen.
        """
        below = [
            other
            for other in self.modes
            if other.gating == mode.gating and 0 < other.rank < mode.rank and other.watts is not None
        ]
        return max(below, key=lambda other: (other.rank, other.cores), default=None)


def id_of(status: str | None) -> int | None:
    """Find the mode's id in the text of the status file, such as `pmode:0002 fmode:quiet`."""
    found = _STATUS.search(status or "")
    return int(found[1]) if found else None


def parse(text: str) -> PowerModes:
    """Take the file's text apart. What is neither a block nor a line of one is passed over, as nvpmodel itself does."""
    modes: dict[int, PowerMode] = {}
    files: dict[tuple[str, str], str] = {}
    default: int | None = None
    parameter: str | None = None
    settings: dict[tuple[str, str], str] | None = None
    for line in text.splitlines():
        content = line.split("#", 1)[0].strip()
        block = _BLOCK.fullmatch(content)
        if block is not None:
            keys = dict(_KEY.findall(block[2]))
            parameter = settings = None
            if block[1] == "PARAM":
                parameter = keys.get("NAME")
            elif block[1] == "PM_CONFIG":
                default = _number(keys.get("DEFAULT"))
            elif (mode_id := _number(keys.get("ID"))) is not None and "NAME" in keys:
                settings = {}
                modes[mode_id] = PowerMode(mode_id, keys["NAME"], settings)
            continue
        words = content.split()
        if parameter is not None and len(words) == 2:  # noqa: PLR2004  argument, path
            files[parameter, words[0]] = words[1]
        elif settings is not None and len(words) == 3:  # noqa: PLR2004  parameter, argument, value
            settings[words[0], words[1]] = words[2]
    return PowerModes(tuple(modes.values()), default, files)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 7 else None  # noqa: PLR2004


def read_file(root: Path) -> PowerModes | None:
    """Read the board's modes; None where it has no such file, or none in it."""
    try:
        with (root / CONFIGURATION).open(encoding="utf-8", errors="replace") as file:
            parsed = parse(file.read(MOST_BYTES))
    except OSError:
        return None
    return PowerModes(parsed.modes, parsed.default, parsed.files, root / STATUS) if parsed.modes else None


class Nvpmodel:
    """The program, which needs root. Each call waits for it, up to `time_limit_s`."""

    def __init__(self, root: Path, modes: PowerModes, *, time_limit_s: float = TIME_LIMIT_S) -> None:
        """`root` is what every path starts with."""
        self._root = root
        self._modes = modes
        self._time_limit_s = time_limit_s

    def current(self) -> PowerMode:
        """Ask which mode the board is in. NvpmodelError where it does not say."""
        found = _ANSWER.search(self._call("-q"))
        mode = self._modes.by_id(int(found[2])) if found else None
        if mode is None:
            raise NvpmodelError("nvpmodel -q tells no mode of the board's file: the power mode is unknown")
        return mode

    def change(self, mode: PowerMode) -> None:
        """Change to a mode, and see whether it is so. NvpmodelError where it is not: then the mode is unknown.

        It is never told to reboot: it reads from nothing, and what it would ask is an error here.
        """
        told = self._call("-m", str(mode.id))
        failure = next((line for line in told.splitlines() if any(word in line for word in _FAILURES)), None)
        if failure is not None:
            raise NvpmodelError(f"nvpmodel -m {mode.id}: {failure.strip()[:200]}")
        now = self.current()
        if now.id != mode.id:
            raise NvpmodelError(f"nvpmodel -m {mode.id} ended well, and the board is in mode {now.name}")
        for (parameter, argument), file in self._modes.files.items():
            wanted = mode.cap(parameter) if argument == "MAX_FREQ" else None
            # More than asked for: it was not written. Less is a table's step, or a board that is throttling.
            if wanted is not None and (shown := self._shown(file)) is not None and shown > wanted:
                raise NvpmodelError(f"after nvpmodel -m {mode.id}, {file} says {shown} instead of {wanted}")

    def _shown(self, file: str) -> int | None:
        try:
            text = (self._root / file.lstrip("/")).read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            return None
        return int(text) if text.isdigit() else None

    def _call(self, *arguments: str) -> str:
        command = f"nvpmodel {' '.join(arguments)}"
        try:
            done = subprocess.run(
                [self._root / PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=self._time_limit_s,
                check=False,
                encoding="utf-8",
                errors="replace",
            )
        except subprocess.TimeoutExpired as error:
            raise NvpmodelError(f"{command} did not end within {self._time_limit_s:g} s") from error
        except OSError as error:
            raise NvpmodelError(f"{command} cannot be run: {error.strerror or error}") from error
        if done.returncode != 0:
            raise NvpmodelError(f"{command} ended with {done.returncode}: {done.stdout.strip()[-200:]}")
        return done.stdout
