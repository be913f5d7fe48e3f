"""What the doctor looks at on the disks: their room, their wear, and how much the daemon writes to them."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from daemon.config import Config, journal_file, packs_folder, phrases_folder, recordings_folder, renders_folder
from daemon.disks import hangs, standing
from daemon.telemetry_messages import Telemetry
from daemon.views.finding import Finding
from engines.aside import Aside
from power.wear import read_wear

_MIB: Final = 1 << 20

_PATIENCE_S: Final = 5.0
"""For a folder: a server that is there answers within a second, one that is gone never."""


class Usage(NamedTuple):
    """Of a disk, bytes."""

    total: int
    used: int
    free: int


def room(config: Config) -> list[Finding]:
    """Tell what is free where voices, journal, phrases and recordings lie."""
    findings = []
    places = {"voices": packs_folder(config), "journal": journal_file(config).parent, "phrases": phrases_folder(config)}
    if config.recorder.enabled:
        places["recordings"] = recordings_folder(config)
    if config.render.folder:
        places["renders"] = renders_folder(config)
    for what, folder in places.items():
        try:
            there, usage = Aside("disk").do(partial(_usage, folder), _PATIENCE_S)
        except PermissionError:
            findings.append(Finding("disk", "note", f"{folder} cannot be looked at by who asks; ask with sudo"))
            continue
        except OSError as error:
            gone = isinstance(error, TimeoutError)
            text = hangs(folder) if gone else f"{folder} cannot be looked at: {error.strerror}"
            findings.append(
                Finding("disk", "fault", text, "findmnt shows which disk it is; sudo dmesg | tail what befell it")
            )
            continue
        text = f"{usage.free // _MIB} MiB of {usage.total // _MIB} free for {what} ({folder})"
        if usage.free < config.alerts.disk_free_mb * _MIB:
            mend = f"make room: `sudo du -xh {there} | sort -h | tail` shows what takes it"
            findings.append(Finding("disk", "fault", text, mend))
        elif what == "phrases" and config.cache.enabled and usage.free < config.cache.min_free_mb * _MIB:
            text += f": below cache.min_free_mb = {config.cache.min_free_mb}, no more phrases are kept"
            findings.append(Finding("disk", "note", text))
        else:
            findings.append(Finding("disk", "ok", text))
    return findings


def _usage(folder: Path) -> tuple[Path, Usage]:
    there = standing(folder)
    return there, Usage(*shutil.disk_usage(there))


def wear(config: Config, root: Path = Path("/")) -> list[Finding]:
    """Tell how much of its life the eMMC has used, where there is one that tells."""
    percent = read_wear(root)
    if percent is None:
        return []
    text = f"the eMMC has used up to {percent} % of its life"
    if percent <= config.alerts.disk_wear_percent:
        return [Finding("disk", "ok", text)]
    return [Finding("disk", "fault", text, "copy what matters, and replace the module before it takes no more writes")]


def written(config: Config, figures: Telemetry | None) -> list[Finding]:
    """Tell how much the daemon writes, and whether what it should keep is kept, by its own account."""
    if figures is None:
        return []
    disk, findings = figures.disk, list[Finding]()
    if disk.refusal:
        mend = "make room, or where the disk is mounted read-only: sudo dmesg | grep -i error; replace it"
        findings.append(Finding("disk", "fault", disk.refusal, mend))
    if disk.written_mb is None:
        return findings
    text = f"the daemon has written {disk.written_mb:.0f} MiB since its start"
    if disk.written_per_day_mb is None:
        text += "; how much that is a day shows after an hour"
    else:
        text += f", {disk.written_per_day_mb:.0f} MiB a day"
    if (disk.written_day_mb or 0.0) > config.alerts.disk_written_mb:
        text += f": more than alerts.disk_written_mb = {config.alerts.disk_written_mb}"
        mend = "are recordings ([recorder]), phrases ([cache]) or renders wanted? Each can lie on another disk"
        return [*findings, Finding("disk", "note", text, mend)]
    return [*findings, Finding("disk", "ok", text)]
