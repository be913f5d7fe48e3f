"""What is told of an utterance while it is heard: pure, from what engine and player said of it."""

from __future__ import annotations

from daemon.active import Active
from daemon.events import Finished, Mark, Resumed, Started, Synthesized, Word, milliseconds, utc_of
from daemon.inbox import MarkReached, PlaybackEnded, SynthesisEnded, WordReached
from device.format import seconds


def begun(active: Active, at: float, output: str) -> Started | Resumed:
    """Tell that it is on its way to the output, for the first time or again. `at`: in time.monotonic()."""
    waiting = active.waiting
    if waiting.begun:
        return Resumed(id=waiting.id, time=utc_of(at), at_s=round(seconds(waiting.resume_at), 3))
    return Started(id=waiting.id, time=utc_of(at), ttfa_ms=milliseconds(at - waiting.received_at), output=output)


def reached(active: Active, message: WordReached | MarkReached) -> Word | Mark:
    """Tell a word or a mark."""
    at = utc_of(message.at)
    if isinstance(message, WordReached):
        at_s = round(seconds(active.job.words[message.index]), 3)
        return Word(id=message.id, time=at, index=message.index, at_s=at_s)
    return Mark(id=message.id, time=at, name=message.name, at_s=round(seconds(message.frame), 3))


def synthesized(active: Active, done: SynthesisEnded) -> Synthesized:
    """Tell that all samples exist, and what they cost."""
    return Synthesized(
        id=done.id,
        audio_s=round(done.audio_s, 3),
        compute_ms=milliseconds(done.compute_s),
        rtf=None if done.rtf is None else round(done.rtf, 3),
        first_ms=None if done.first_s is None else milliseconds(done.first_s),
        load_ms=milliseconds(done.load_s) if done.load_s else None,
        cached=done.cached,
        voice=done.voice,
        backend=done.backend,
        precision=done.precision,
        warnings=tuple(active.job.warnings) or None,
    )


def finished(active: Active, message: PlaybackEnded) -> Finished:
    """Tell that all of it was heard."""
    waiting = active.waiting
    audio_s = round(message.audio_s, 3)
    return Finished(
        id=waiting.id,
        time=utc_of(message.at),
        audio_s=audio_s,
        total_ms=milliseconds(message.at - waiting.received_at),
        reason=None if audio_s else "nothing to say",
        warnings=tuple(active.job.warnings) or None,
    )
