"""What a voice can be computed in on this device, how that sounds and how long it takes: kept in its pack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from engines.calibration import measure_speed
from engines.durable import write_whole
from engines.errors import VoiceError
from engines.pack import Pack
from engines.quality import BEST, Quality
from engines.vocoder import Vocoder

REPORT_FILE: Final = "report.json"

_TYPICAL_FRAMES: Final = 96
"""Latent frames of the window whose time is told: about the second one of a sentence."""

_WORTH: Final = 0.8
"""Of the float engine's time: times drift by a fifth, and what is not clearly quicker is not worth its noise."""


class Plan(BaseModel):
    """One way to compute the vocoder part."""

    model_config = ConfigDict(frozen=True)

    precision: str
    backend: str
    int8_mac_share: float
    """Of the vocoder part's multiply-adds, the flow's included."""
    pesq_wb: float | None = None
    """Measured where PESQ is installed; by no daemon."""
    quality: float
    """See `engines.quality`: about the same scale, 4.64 for the float graph."""
    snr_db: float | None
    """Against the float graph; None for that itself."""
    passes: bool
    """Whether the quality gate lets it be used."""
    ms_per_window: float
    """For a window of 96 latent frames, 1.1 s at 22.05 kHz."""
    bytes: int
    """Of the graph's file or, on TensorRT, of its plans."""


class Report(BaseModel):
    """All that were tried, and which one is used."""

    model_config = ConfigDict(frozen=True)

    plans: tuple[Plan, ...]
    chosen: str
    """Precision and backend."""
    why: str


def report_of(plans: Iterable[Plan]) -> Report:
    """Choose among plans, of which there is one at least: the quickest that passes, float where that gains little."""
    plans = tuple(plans)
    usable = [plan for plan in plans if plan.passes]
    floats = [plan for plan in usable if plan.precision == "fp32"]
    quickest = min(usable or plans, key=lambda plan: plan.ms_per_window)
    simplest = min(floats, key=lambda plan: plan.ms_per_window, default=quickest)
    best = simplest if quickest.ms_per_window > _WORTH * simplest.ms_per_window else quickest
    told = "; ".join(_verdict(plan, best) for plan in plans if plan is not best)
    why = f"{best.ms_per_window:.1f} ms per window" + (f", beside {told}" if told else "")
    return Report(plans=plans, chosen=_name(best), why=why)


def read_report(pack: Pack) -> Report | None:
    """Read what is known of a pack; None where nothing is, or the file is damaged."""
    try:
        return Report.model_validate_json((pack.folder / REPORT_FILE).read_bytes())
    except (OSError, ValidationError):
        return None


def record(pack: Pack, plans: Iterable[Plan]) -> Report:
    """Put what was measured now in the place of what was known of the same precision and backend.

    Written whole or not at all. VoiceError where the disk refuses.
    """
    known = read_report(pack)
    table = {_name(plan): plan for plan in (*(known.plans if known else ()), *plans)}
    report = report_of(table.values())
    try:
        write_whole(pack.folder / REPORT_FILE, report.model_dump_json(indent=1).encode())
    except OSError as error:
        raise VoiceError(str(pack.folder / REPORT_FILE), f"cannot be written: {error.strerror}") from error
    return report


def measured(vocoder: Vocoder, pack: Pack, *, share: float, quality: Quality | None, size: int) -> Plan:
    """Time a vocoder; gives what the report says of it. `quality` None: it is the float original."""
    speed = measure_speed(vocoder, pack.info)
    return Plan(
        precision=vocoder.precision,
        backend=vocoder.backend,
        int8_mac_share=round(share, 4),
        quality=round(quality.score, 3) if quality else BEST,
        snr_db=round(quality.snr_db, 2) if quality else None,
        passes=quality is None or quality.passes,
        ms_per_window=round(1000 * (speed.overhead_s + speed.frame_s * _TYPICAL_FRAMES), 2),
        bytes=size,
    )


def record_plan(pack: Pack, vocoder: Vocoder, *, size: int) -> None:
    """Time TensorRT's plans of a graph that was judged when it was made, and keep that with its quality.

    Of a graph that nobody has judged here, nothing is claimed.
    """
    known = read_report(pack)
    judged = next((plan for plan in known.plans if plan.precision == vocoder.precision), None) if known else None
    if judged is None and vocoder.precision != "fp32":
        return
    plan = measured(vocoder, pack, share=0.0, quality=None, size=size)
    if judged is not None:
        plan = plan.model_copy(update=judged.model_dump(include={"int8_mac_share", "quality", "snr_db", "passes"}))
    record(pack, [plan])


def chosen_precision(pack: Pack, backend: str) -> str:
    """Give the precision that was chosen for `backend`; fp32 where nothing is known of it."""
    report = read_report(pack)
    plans = [plan for plan in report.plans if plan.backend == backend] if report else []
    return report_of(plans).chosen.split()[0] if plans else "fp32"


def _name(plan: Plan) -> str:
    return f"{plan.precision} {plan.backend}"


def _verdict(plan: Plan, best: Plan) -> str:
    if not plan.passes:
        return f"{_name(plan)}, which does not pass ({plan.quality:.2f})"
    return f"{_name(plan)}, {plan.ms_per_window / best.ms_per_window:.2f} times that"
