"""What a board offers to whoever may change it: clocks with their limits, a cap for the memory, power modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from power import clocks, nvpmodel
from power.clocks import Domain
from power.nvpmodel import PowerMode, PowerModes
from power.sysfs import Reader, integer


@dataclass(frozen=True, slots=True)
class Range:
    """One clock, the limits that it was found with, and those of the hardware. All in Hz."""

    domain: Domain
    min_hz: int
    max_hz: int
    lowest_hz: int
    highest_hz: int
    table: tuple[int, ...] = ()
    """The frequencies that it can have, lowest first; empty where it does not tell."""

    @property
    def is_pinned(self) -> bool:
        """Tell whether it was found at one frequency, as jetson_clocks leaves it."""
        return self.min_hz == self.max_hz > self.lowest_hz

    def offers(self, hertz: int) -> bool:
        """Tell whether this is a limit that the clock can have."""
        if hertz in (self.min_hz, self.max_hz):
            return True
        return hertz in self.table if self.table else self.lowest_hz <= hertz <= self.highest_hz

    def at_most(self, hertz: int) -> int:
        """Give the highest frequency that is no higher than this; the lowest there is where none is."""
        if self.table:
            return max((step for step in self.table if step <= hertz), default=self.table[0])
        return max(hertz // self.domain.unit * self.domain.unit, self.lowest_hz)


@dataclass(frozen=True, slots=True)
class Board:
    """All of it, as it was found."""

    root: Path
    ranges: Mapping[str, Range]
    """By the names of `power.clocks.Domain`."""
    emc_cap_file: Path | None
    emc_cap_hz: int
    """0: none."""
    emc_caps: tuple[int, ...]
    """The caps that the board's own power modes use, lowest first: others have crashed boards."""
    modes: PowerModes | None
    mode: PowerMode | None
    """The present one, by the status file."""

    def caps_of(self, mode: PowerMode) -> dict[str, int]:
        """Give the highest clocks in Hz that a power mode allows, by the names of `ranges`; no entry for no cap."""
        if self.modes is None:
            return {}
        by_file = {known.domain.maximum.resolve(): known.domain for known in self.ranges.values()}
        caps = {}
        for (parameter, argument), path in self.modes.files.items():
            domain = by_file.get((self.root / path.lstrip("/")).resolve()) if argument == "MAX_FREQ" else None
            cap = mode.cap(parameter)
            if domain is not None and cap is not None:
                caps[domain.name] = cap * domain.unit
        return caps


def read_board(root: Path = Path("/")) -> Board:
    """See what the board offers now. Bounded in time, as all reading here; needs no rights."""
    reader = Reader()
    known = (_range(domain, reader) for domain in clocks.find(root))
    cap_file = clocks.emc_cap(root)
    modes = nvpmodel.read_file(root)
    status = reader.text(modes.status) if modes else None
    return Board(
        root,
        {one.domain.name: one for one in known if one is not None},
        emc_cap_file=cap_file,
        emc_cap_hz=integer(reader.text(cap_file) if cap_file else None, 0, clocks.MOST_HZ) or 0,
        emc_caps=_emc_caps(root, modes, cap_file) if modes and cap_file else (),
        modes=modes,
        mode=modes.by_id(nvpmodel.id_of(status)) if modes else None,
    )


def _range(domain: Domain, reader: Reader) -> Range | None:
    texts = reader.read([domain.minimum, domain.maximum, domain.lowest, domain.highest])
    table = clocks.table_of(domain, reader)
    maximum = clocks.hertz(texts.get(domain.maximum), domain.unit)
    if maximum is None:
        return None
    # A lower limit of 0 is none.
    found = clocks.hertz(texts.get(domain.minimum), domain.unit)
    lowest = clocks.hertz(texts.get(domain.lowest), domain.unit) or (table[0] if table else found or domain.unit)
    highest = clocks.hertz(texts.get(domain.highest), domain.unit) or (table[-1] if table else maximum)
    return Range(domain, found or lowest, maximum, min(lowest, maximum), max(highest, maximum), table)


def _emc_caps(root: Path, modes: PowerModes, cap_file: Path) -> tuple[int, ...]:
    parameters = {
        parameter
        for (parameter, argument), path in modes.files.items()
        if argument == "MAX_FREQ" and (root / path.lstrip("/")).resolve() == cap_file.resolve()
    }
    caps = {mode.cap(parameter) for mode in modes.modes for parameter in parameters}
    return tuple(sorted(cap for cap in caps if cap is not None))
