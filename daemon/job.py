"""An utterance on its way through engine and player."""

from __future__ import annotations

import threading
from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Job:
    """One go at an utterance: what it is told, and what is known of it.

    The two events are set by whoever no longer wants it. The engine thread appends to the lists, each place before its
    samples; the player reads them.
    """

    id: str
    start: int = 0
    """The frame at which it begins: beyond 0 it goes on after an interruption."""
    marks: bool = False
    """Whether each word is told as it is heard."""
    watermarked: bool = False
    """Whether its speech carries the watermark."""
    stopped: threading.Event = field(default_factory=threading.Event)
    """No more of it, at once."""
    yielding: threading.Event = field(default_factory=threading.Event)
    """No more of it after the sentence that is being heard."""
    words: list[int] = field(default_factory=list)
    """The first frame of each word, from the utterance's beginning."""
    sentences: list[int] = field(default_factory=list)
    """The first frame of each sentence."""
    last_word_end: list[int] = field(default_factory=list)
    """The frame from which no word follows, once that is known: in a closing chime, or in a sound that is no speech, it
    goes on just where it stopped."""
    bookmarks: list[tuple[int, str]] = field(default_factory=list)
    """The frame and name of each mark that its author put there."""
    warnings: list[str] = field(default_factory=list)
    """What could not be said as it was meant."""

    def resume_at(self, heard_to: int) -> int:
        """Give the frame from which it may go on: the word's in which it was stopped; behind all words the very one."""
        if self.last_word_end and heard_to >= self.last_word_end[0]:
            return max(self.start, heard_to)
        word = bisect_right(self.words, heard_to) - 1
        return max(self.start, self.words[word]) if word >= 0 else self.start
