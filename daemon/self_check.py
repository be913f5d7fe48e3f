"""Once a day the voice judges itself, unheard: reference sentences, rated and compared with how they once sounded.

For the main thread, but for `judge`, which takes a second or two and has a thread of its own.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from daemon.clock import PLAUSIBLE_WALL, Clock
from daemon.inbox import Inbox, SelfChecked
from daemon.journal import Journal
from daemon.sampling import Sample
from daemon.telemetry_messages import SelfCheck
from daemon.worker import Worker
from device.format import Samples
from device.realtime import give_way
from engines.corpus import JUDGED
from engines.errors import RatingUnavailableError, SpeechError
from engines.pack_info import AnyInfo
from engines.portrait import Difference, Portrait, difference, portrait
from engines.rating import Rater

_LOG = logging.getLogger(__name__)

SENTENCES: Final = JUDGED[:3]
"""Nine seconds, as much as one rating hears."""

SEED: Final = 1

_EVERY_S: Final = 24 * 3600.0
_AGAIN_S: Final = 3600.0
"""After one that was not passed, or could not be done."""

_IDLE_S: Final = 60.0
"""Without a command, before it begins."""

_COOL: Final = 65_000
"""Thousandths of a degree: a check adds a few degrees for a second, and no board slows down below 80."""

_LEVEL_DB: Final = 3.0
_SPECTRUM_DB: Final = 1.5
_DURATION: Final = 1.33
"""How far a voice may be from its record. The default voice with other seeds, which nobody would call bad, is 0.7 dB,
1.1 dB and 1.06 away. With a tenth of noise on all its weights it is 0.5 dB, 1.2 dB and 1.05 away, rated 0.1 lower;
with 30 % 2 dB and 4.1 dB, rated 0.8 lower; with one tensor of the vocoder zeroed 1.7 to 7.3 dB."""

_MOS_DROP: Final = 0.5
_LEAST_MOS: Final = 2.2
"""Without a record too: what is rated below is no speech. Silence is rated 1.8, the default voice 3.45."""

_SILENT: Final = 0.003
"""Of full scale, 50 dB below it: a sentence that is nowhere louder was not spoken. No record may be made of it."""

_ADVICE: Final = "remove the voice and add it again; if that does not help, look at the driver"

_RECORDS: Final = 8
"""Voices whose records are kept."""

_FACT: Final = "self_check"


class Record(BaseModel):
    """How a voice sounded when it was checked first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    portraits: tuple[Portrait, ...]
    mos: float | None = None


class _Memory(BaseModel):
    """What the journal keeps."""

    model_config = ConfigDict(extra="forbid")

    last: SelfCheck | None = None
    records: dict[str, Record] = {}


@dataclass(frozen=True, slots=True)
class Moment:
    """How things are, as far as a check depends on it."""

    idle: bool
    """Nothing speaks, waits or is rendered."""
    hottest: int | None = None
    """Thousandths of a degree Celsius."""
    strained: bool = False
    """The board protects itself or slows down."""


class SelfChecks:
    """When to check, and what was found."""

    def __init__(
        self,
        journal: Journal,
        sample: Callable[[Sample], None],
        verify: Callable[[str], object],
        post: Callable[[Inbox], None],
        at: Clock,
    ) -> None:
        """`sample` has the engine thread speak; `post` is how the result comes back.

        `verify`, called in a thread of its own, raises SpeechError where the voice's files are not what they were.
        """
        self._verify = verify
        self._journal = journal
        self._sample = sample
        self._post = post
        self._memory = _recalled(journal)
        self._under_way = False
        self._busy_at = at.monotonic
        self._due_at = at.monotonic + self._wait_s(at)

    @property
    def last(self) -> SelfCheck | None:
        """What was found last, before this start too."""
        return self._memory.last

    @property
    def next_at(self) -> float:
        """When `tend` wants to be called, in seconds of `time.monotonic`."""
        return max(self._due_at, self._busy_at + _IDLE_S)

    def tend(self, moment: Moment, now: float) -> None:
        """Begin a check if one is due and now is a good time."""
        hot = moment.strained or (moment.hottest is not None and moment.hottest > _COOL)
        if self._under_way or not moment.idle or hot:
            self._busy_at = now
        elif now >= self.next_at:
            self._under_way = True
            self._busy_at = now
            self._sample(Sample(SENTENCES, SEED, self._spoken))

    def disturb(self, now: float) -> None:
        """Take note of a command."""
        self._busy_at = now

    def take(self, message: SelfChecked, now: float) -> SelfCheck | None:
        """Take what was found; None where a command came first: it is tried again once nothing is to be done."""
        self._under_way = False
        self._busy_at = now
        check = message.check
        if check is None:
            return None
        self._due_at = now + (_EVERY_S if check.state == "passed" else _AGAIN_S)
        records = self._memory.records
        if message.record is not None:
            records[message.key] = Record.model_validate_json(message.record)
            while len(records) > _RECORDS:
                records.pop(next(iter(records)))
        self._memory.last = check
        self._journal.remember(_FACT, self._memory.model_dump_json())
        return check

    def _spoken(self, sounds: Sequence[Samples] | None, info: AnyInfo | None, problem: str) -> None:
        """Go on with what the engine thread spoke; in that thread."""
        if sounds is None or info is None:
            name = info.name if info is not None else ""
            self._post(SelfChecked(_check("error", name, problem) if problem else None))
            return
        key = key_of(info)
        record = self._memory.records.get(key)
        _Judge(partial(judge, sounds, info.name, key, record, self._verify), self._post).start()

    def _wait_s(self, at: Clock) -> float:
        """Say how long the next one may wait: since the last one, if the clock can be believed."""
        last = self._memory.last
        if last is None or last.state != "passed":
            return 0.0
        since_s = at.wall - last.time.timestamp()
        return max(0.0, _EVERY_S - since_s) if at.wall >= PLAUSIBLE_WALL and since_s >= 0 else _EVERY_S


class _Judge(Worker):
    """Judges one check, behind everything else."""

    def __init__(self, judge: Callable[[], SelfChecked], post: Callable[[Inbox], None]) -> None:
        super().__init__("self check", post)
        self._judge = judge

    def work(self) -> None:
        """Judge, and post what was found."""
        give_way()
        self._post(self._judge())


def key_of(info: AnyInfo) -> str:
    """Name a voice's record: the same for every pack that the same files give, so that a damaged one is found out."""
    return f"{info.name} {info.revision} {'-'.join(sorted(info.sources.values()))[:64]}"


def judge(
    sounds: Sequence[Samples], voice: str, key: str, record: Record | None, verify: Callable[[str], object]
) -> SelfChecked:
    """Compare what a voice has just said with its record, or make one where it has none and sounds well.

    What speaks is in memory; its files are verified too, before the next start has to do with them.
    """
    try:
        verify(voice)
    except SpeechError as error:
        return SelfChecked(_check("failed", voice, str(error)), key)
    peaks = [float(np.max(np.abs(sound), initial=0.0)) for sound in sounds]
    if not all(peak > _SILENT for peak in peaks) or not all(math.isfinite(peak) for peak in peaks):
        return SelfChecked(_check("failed", voice, f"it says nothing, or what is no sound; {_ADVICE}"), key)
    portraits = tuple(portrait(sound) for sound in sounds)
    mos, unrated = _rated(np.concatenate(sounds))
    found = difference(portraits, record.portraits) if record is not None else None
    problems = _problems(mos, record, found)
    check = _check("failed" if problems else "passed", voice, "; ".join(problems) or unrated)
    check = check.model_copy(
        update={
            "mos": None if mos is None else round(mos, 2),
            "level_db": None if found is None else round(found.level_db, 1),
            "spectrum_db": None if found is None else round(found.spectrum_db, 2),
        }
    )
    fresh = None if record is not None or problems else Record(portraits=portraits, mos=mos).model_dump_json()
    return SelfChecked(check, key, fresh)


def _problems(mos: float | None, record: Record | None, found: Difference | None) -> list[str]:
    problems = []
    if mos is not None and mos < _LEAST_MOS:
        problems.append(f"it is rated {mos:.1f} of 5, which is no speech any more")
    elif mos is not None and record is not None and record.mos is not None and mos < record.mos - _MOS_DROP:
        problems.append(f"it is rated {mos:.1f} of 5, once {record.mos:.1f}")
    if found is not None:
        if abs(found.level_db) > _LEVEL_DB:
            problems.append(f"it is {abs(found.level_db):.0f} dB {'louder' if found.level_db > 0 else 'quieter'}")
        if found.spectrum_db > _SPECTRUM_DB:
            problems.append(f"its spectrum is {found.spectrum_db:.1f} dB from its own")
        if not 1 / _DURATION < found.duration < _DURATION:
            problems.append(f"it takes {found.duration:.2f} times as long")
    if problems:
        problems.append(_ADVICE)
    return problems


def _rated(speech: Samples) -> tuple[float | None, str]:
    """Give the rating, or why there is none."""
    try:
        rater = Rater()
        try:
            return rater.overall(speech), ""
        finally:
            rater.close()
    except RatingUnavailableError as error:
        return None, str(error)
    except SpeechError as error:
        _LOG.warning("the voice cannot be rated: %s", error)
        return None, f"it could not be rated: {error}"


def _check(state: str, voice: str, reason: str) -> SelfCheck:
    now = datetime.fromtimestamp(int(time.time()), timezone.utc)
    return SelfCheck.model_validate({"state": state, "time": now, "voice": voice, "reason": reason})


def _recalled(journal: Journal) -> _Memory:
    kept = journal.recall(_FACT)
    try:
        return _Memory() if kept is None else _Memory.model_validate_json(kept)
    except ValidationError as error:
        _LOG.warning("what was found of voices before cannot be read, so records are made anew: %s", error)
        return _Memory()
