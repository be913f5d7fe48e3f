"""One utterance that engine and player are at, and why it is made to stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from daemon.inbox import SynthesisEnded
from daemon.job import Job
from daemon.queue import Waiting

Reason: TypeAlias = Literal["paused", "preempted", "lost"]
Why: TypeAlias = Literal["paused", "preempted", "superseded", "cancelled"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Why an utterance is made to stop, and for whom."""

    why: Why
    by: str

    @property
    def ends(self) -> bool:
        """Tell whether it will not go on."""
        return self.why in {"superseded", "cancelled"}


@dataclass(slots=True)
class Active:
    """One that engine and player are at."""

    waiting: Waiting
    job: Job
    heard_at: float | None = None
    """When its first frame was on its way to the output."""
    synthesis: SynthesisEnded | None = None
    cut: Cut | None = None
    made: bool = False
    """Whether all of its samples exist."""
    stopping: bool = False
    """Whether it was told to stop at once."""
    repeat_sentences: int = 0
    """Of what falls silent and was told to go on already: how many sentences it says again then."""

    @property
    def heard(self) -> bool:
        """Tell whether any of it reached the output, in this go."""
        return self.heard_at is not None

    @property
    def goes_on(self) -> bool:
        """Tell whether it is not over once it has fallen silent, for all that was asked so far."""
        if self.cut is None or self.cut.why == "preempted":
            return self.cut is None or self.waiting.command.resumes
        return not self.cut.ends
