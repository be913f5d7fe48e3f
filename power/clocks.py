"""What has a clock on this board, and between which limits it may run: GPU, processor cores, memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from power.reading import Clock
from power.sysfs import Reader, integer

_GPU: Final = re.compile(r"gpu|gv11b|ga10b|gp10b|gm20b")
_NO_GPU: Final = "nvd"
"""Thor's video decoder, whose name begins with gpu too."""

_EMC_CAPS: Final = ("sys/kernel/nvpmodel_clk_cap/emc", "sys/kernel/nvpmodel_emc_cap/emc_iso_cap")
"""JetPack 6; JetPack 5. In Hz, 0 for none."""

_EMC_RATE: Final = "sys/kernel/debug/bpmp/debug/clk/emc/rate"
"""In Hz, for root only."""

_HZ: Final = 1
_KHZ: Final = 1000

MOST_HZ: Final = 20_000_000_000

MOST_POLICIES: Final = 16
"""Boards have two to four; of a server with a policy for each of its cores the first will do."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Something with a clock of its own, and its files. All of them count in `unit` Hz; not all need exist."""

    name: str
    """gpu; cpu0, cpu4 and so on, by the first core of a policy; emc, where it has limits as the others do."""
    unit: int
    current: Path
    minimum: Path
    maximum: Path
    table: Path
    """The frequencies that there are."""
    lowest: Path
    highest: Path
    """What the hardware can do, where that has files of its own."""

    @property
    def files(self) -> tuple[Path, Path, Path]:
        """What changes with time."""
        return self.current, self.minimum, self.maximum


def find(root: Path) -> list[Domain]:
    """Find them by what they are, not by a board's name: GPU, processor, memory."""
    domains = []
    folders = sorted((root / "sys/class/devfreq").glob("*"))
    gpus = [folder for folder in folders if _is_gpu(folder)]
    domains += [_devfreq("gpu", folder) for folder in gpus[:1]]
    domains += _policies(root)
    domains += [_devfreq("emc", folder) for folder in folders if folder.name == "bwmgr"]
    return domains


def emc_cap(root: Path) -> Path | None:
    """Find the file that caps the memory's clock, in Hz with 0 for no cap; None where there is none."""
    return next((root / path for path in _EMC_CAPS if (root / path).exists()), None)


def emc_rate(root: Path) -> Path:
    """Name the file with the memory's clock in Hz, which only root can read."""
    return root / _EMC_RATE


def clock_of(domain: Domain, texts: Mapping[Path, str]) -> Clock:
    """Make a Clock of what a domain's files said. 0 Hz, as an idle GPU shows, tells nothing."""
    current, minimum, maximum = (hertz(texts.get(path), domain.unit) for path in domain.files)
    return Clock(current_hz=current, min_hz=minimum, max_hz=maximum)


def hertz(text: str | None, unit: int) -> int | None:
    """Give a frequency in Hz; None for none."""
    value = integer(text, 1, MOST_HZ // unit)
    return None if value is None else value * unit


def table_of(domain: Domain, reader: Reader) -> tuple[int, ...]:
    """Give the frequencies in Hz that a domain can have, lowest first; empty where it does not tell."""
    words = (reader.read([domain.table]).get(domain.table) or "").split()
    known = (hertz(word, domain.unit) for word in words)
    return tuple(sorted({value for value in known if value is not None}))


def gpu_load_file(domains: Sequence[Domain]) -> Path | None:
    """Name the file with the GPU's load in thousandths; None without a GPU."""
    return next((domain.current.parent / "device/load" for domain in domains if domain.name == "gpu"), None)


def _is_gpu(folder: Path) -> bool:
    if _NO_GPU in folder.name:
        return False
    try:
        name = (folder / "device/of_node/name").read_text(encoding="utf-8", errors="replace")
    except OSError:
        name = ""
    return bool(_GPU.search(folder.name.lower()) or _GPU.search(name.lower()))


def _devfreq(name: str, folder: Path) -> Domain:
    return Domain(
        name,
        _HZ,
        folder / "cur_freq",
        folder / "min_freq",
        folder / "max_freq",
        folder / "available_frequencies",
        lowest=folder / "none",
        highest=folder / "none",
    )


def _policies(root: Path) -> Iterator[Domain]:
    folders = (root / "sys/devices/system/cpu/cpufreq").glob("policy*")
    numbers = sorted((int(folder.name[6:]), folder) for folder in folders if folder.name[6:].isdigit())
    files = ("cur_freq", "min_freq", "max_freq", "available_frequencies")
    for number, folder in numbers[:MOST_POLICIES]:
        current, minimum, maximum, table = (folder / f"scaling_{file}" for file in files)
        yield Domain(
            f"cpu{number}",
            _KHZ,
            current,
            minimum,
            maximum,
            table,
            lowest=folder / "cpuinfo_min_freq",
            highest=folder / "cpuinfo_max_freq",
        )
