"""Chimes around speech: before it, after it, and mixed with it where they overlap."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.format import PERIOD, RATE, Samples
from device.memory import AudioChunk
from engines.tally import Tally

_MOST_HELD: Final = 3
"""Chunks that wait to learn whether they are the last: a renderer has one buffer more. The longest overlap, 200 ms, is
in the last three unless they are very small; it is then the shorter."""

_SILENT: Final[Samples] = np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True)
class Framing:
    """What goes around an utterance. Frames count from the beginning of the chime before it."""

    head: Samples
    """Before the speech: whole periods, so that those of the speech still fill buffers."""
    tail: Samples
    """The rest of that chime, into which the speech begins."""
    after: Samples
    overlap: int
    """Frames of `after` that the speech's end reaches into."""

    @classmethod
    def of(cls, before: Samples | None, after: Samples | None, *, overlap_ms: int, gain: float = 1.0) -> Framing:
        """Divide chimes, which are copied. Speech begins `overlap_ms` before the end of the first, or a period less."""
        overlap = RATE * overlap_ms // 1000
        first = _SILENT if before is None else before * np.float32(gain)
        last = _SILENT if after is None else after * np.float32(gain)
        lead = -(-max(0, first.size - overlap) // PERIOD) * PERIOD
        head = np.pad(first[:lead], (0, max(0, lead - first.size)))
        return cls(head, first[lead:], last, min(overlap, last.size))

    @property
    def lead(self) -> int:
        """Frames before the speech begins."""
        return self.head.size

    @property
    def extra(self) -> int:
        """Frames by which an utterance becomes longer."""
        return self.head.size + max(0, self.after.size - self.overlap)

    def around(
        self,
        speech: Iterator[AudioChunk],
        play: Callable[[Samples], Iterator[AudioChunk]],
        tally: Tally,
        start: int = 0,
        spoken: Callable[[int], None] = lambda _: None,
    ) -> Iterator[AudioChunk]:
        """Yield the chunks of all of it, from frame `start` on; whoever takes one releases it.

        `play` gives samples as chunks, none once stopped. What overlaps is mixed into the memory of the speech. `tally`
        is that of speech and `play`. `spoken` is told where the speech has ended, before what follows that.
        """
        if start < self.lead:
            yield from play(self.head[start:])
        tail = self.tail[max(0, start - self.lead) :]
        held: deque[AudioChunk] = deque()
        try:
            for chunk in speech:
                mixed = min(tail.size, chunk.samples.size)
                np.add(chunk.samples[:mixed], tail[:mixed], out=chunk.samples[:mixed])
                tail = tail[mixed:]
                held.append(chunk)
                yield from self._no_longer_needed(held)
            end = tally.frames
            overlap = min(self.overlap, end - self.lead)
            tally.frames = max(end, start)
            if end < self.lead + self.tail.size:  # a very short speech, over before the chime before it
                while held:
                    yield held.popleft()
                yield from play(tail)
                end, overlap = self.lead + self.tail.size, 0
            after = self.after[max(0, start - (end - overlap)) :]
            mixed = _mix_end(held, after, overlap - (self.after.size - after.size))
            while held:
                yield held.popleft()
            spoken(end)
            if mixed < after.size:
                yield from play(after[mixed:])
        finally:
            for chunk in held:
                chunk.release()

    def _no_longer_needed(self, held: deque[AudioChunk]) -> Iterator[AudioChunk]:
        """Yield what lies before the last `overlap` frames."""
        surplus = sum(chunk.samples.size for chunk in held) - self.overlap
        while held and (surplus >= held[0].samples.size or len(held) > _MOST_HELD):
            surplus -= held[0].samples.size
            yield held.popleft()
        whole = surplus // PERIOD * PERIOD
        if whole > 0:
            buffer, samples = held[0].buffer, held[0].samples
            buffer.retain()
            held[0] = AudioChunk(buffer, samples[whole:])
            yield AudioChunk(buffer, samples[:whole])


def _mix_end(held: deque[AudioChunk], after: Samples, overlap: int) -> int:
    """Mix the beginning of `after` into the last `overlap` frames that are held; gives how many frames of it."""
    total = sum(chunk.samples.size for chunk in held)
    overlap = min(max(0, overlap), total)
    at = total - overlap  # of the chunk at hand, where `after` begins
    taken = 0
    for chunk in held:
        place = chunk.samples[min(max(0, at), chunk.samples.size) :]
        np.add(place, after[taken : taken + place.size], out=place)
        taken += place.size
        at -= chunk.samples.size
    return overlap
