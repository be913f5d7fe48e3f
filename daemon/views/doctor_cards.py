"""Which sound cards the kernel may send to sleep, by its own account in /sys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from daemon.views.finding import Finding

RULES: Final = Path("/etc/udev/rules.d/90-speakd.rules")


def sleeping_cards(root: Path = Path("/")) -> list[Finding]:
    """Tell of each card that plays and sleeps while nobody speaks: what wakes it is late, or lost."""
    findings = []
    cards = sorted(card for card in (root / "sys/class/sound").glob("card*") if any(card.glob("pcm*p")))
    for card in cards:
        asleep = [control for control in _controls(card) if _text(control) == "auto"]
        if asleep:
            text = f'card {_text(card / "id")} sleeps when nothing plays (its power/control is "auto"): '
            text += "the first syllable may come late, or not at all"
            findings.append(
                Finding("sound", "note", text, _mend(asleep, installed=(root / RULES.relative_to("/")).exists()))
            )
    names = ", ".join(_text(card / "id") for card in cards)
    return findings or ([Finding("sound", "ok", f"no card sleeps when nothing plays: {names}")] if cards else [])


def _controls(card: Path) -> Iterator[Path]:
    """Yield where the kernel tells whether a card may sleep.

    Other kinds than USB and HD audio say "auto" and mean nothing by it: it is their default, and no driver acts by it.
    """
    device = (card / "device").resolve()
    if (device / "bInterfaceNumber").exists():
        yield device.parent / "power/control"  # of the USB device that the interface is of
    for codec in sorted(device.glob("hdaudio*")):
        yield codec / "power/control"


def _mend(controls: list[Path], *, installed: bool) -> str:
    if not installed:
        return f"sudo ./install.sh brings {RULES}, which keeps it awake"
    now = "; ".join(f"echo on | sudo tee {control}" for control in controls)
    return f"{now}; another program, such as TLP or powertop, undoes {RULES}: except this card there"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
