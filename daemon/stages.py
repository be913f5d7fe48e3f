"""Where the time goes until an utterance's first samples."""

from __future__ import annotations

from dataclasses import dataclass

from engines.synthesizer import Tally


@dataclass(frozen=True, slots=True)
class Stages:
    """Of one utterance. Times are of `time.monotonic`."""

    begun_at: float
    """When the engine thread took it."""
    first_at: float
    """When the first samples were there."""
    text_s: float | None = None
    """From text to phonemes. This and the next two: None where they were recorded before."""
    acoustic_s: float | None = None
    window_s: float | None = None


def stages_of(tally: Tally, begun_at: float) -> Stages | None:
    """Take them from what an utterance has taken so far; None where it has no samples."""
    if tally.first_s is None or tally.first_at is None:
        return None
    if not tally.first_s:
        return Stages(begun_at, tally.first_at)
    window_s = tally.first_s - tally.text_s - tally.acoustic_s
    return Stages(begun_at, tally.first_at, tally.text_s, tally.acoustic_s, window_s)
