"""Text in, audio chunks out: the path of one utterance through the engine thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain, cycle, islice
from typing import Final

import numpy as np

from device.errors import PoolExhaustedError
from device.format import PERIOD, Samples
from device.memory import AudioChunk, Buffer, BufferPool
from engines.precedence import Precedence
from engines.text.gaps import paragraphs
from engines.text.phonemes import Phonemizer, merge_clusters, phoneme_ids, sentences_of
from engines.text.sentences import blocks
from engines.vits import USUAL_IDS, Delivery, Noise, VitsVoice

_LOG = logging.getLogger(__name__)

_BLOCK_CHARS: Final = 600
"""Text that espeak-ng gets at once: some 2 ms of its time, so that a long text delays its first sentence by no more."""

_MOST_PHONEMES: Final = 600
"""Of one pass of the acoustic part, some 35 s of speech: its attention takes memory by the square of this.

Whatever fits `_BLOCK_CHARS` stays in one piece, even a sentence of a hundred words.
"""

_MOST_MISSED: Final = 100
"""Phonemes that are told of: a voice that takes characters could be sent a million that it lacks."""

_POOL_POLL_S: Final = 0.1
"""How long a wait for a free buffer lasts before a stop is looked for."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What is to be said, and how."""

    text: str
    delivery: Delivery = field(default_factory=Delivery)
    seed: int | None = None
    """The same seed gives the same samples; None: never the same twice."""


@dataclass(slots=True)
class Tally:
    """What an utterance has taken so far. Written by the synthesizing thread."""

    frames: int = 0
    compute_s: float = 0.0
    """Time in phonemizer and engines; waiting for a buffer is not counted."""
    first_s: float | None = None
    """The part of it until the first chunk."""
    words: list[int] = field(default_factory=list)
    """The first frame of each word, known before its samples are."""
    sentences: list[int] = field(default_factory=list)
    """The first frame of each sentence, likewise."""


class Synthesizer:
    """Speaks with one voice at a time; for one thread."""

    def __init__(self, phonemizer: Phonemizer, pool: BufferPool, precedence: Precedence | None = None) -> None:
        """`precedence`: within its `urgent`, others may compute while this one waits for a buffer."""
        self._phonemizer = phonemizer
        self._pool = pool
        self._precedence = precedence
        self._missed: set[tuple[str, str]] = set()
        self.capacity: Final = pool.capacity
        """Frames of the largest chunk."""

    def chunks(
        self,
        utterance: Utterance,
        voice: VitsVoice,
        tally: Tally,
        stopped: Callable[[], bool] = lambda: False,
        noise: Callable[[list[int]], Noise] | None = None,
        start: int = 0,
    ) -> Iterator[AudioChunk]:
        """Yield an utterance's chunks in order; whoever takes one releases it.

        A text with nothing to pronounce yields none. Ends early once `stopped()`. `noise` gives a sentence's noise
        for its phoneme ids, instead of the seed. With the same seed, `start` leaves out the first frames: windows
        that hold nothing else are not even computed. SpeechError ends the utterance, not the synthesizer.
        """
        rng = np.random.Generator(np.random.SFC64(utterance.seed))
        for ids, more_to_come, gap in self._sentences(utterance, voice, tally):
            yield from self._silence(gap, tally, stopped, start)
            if stopped():
                return
            begun = time.perf_counter()
            drawn = noise(ids) if noise else voice.noise(len(ids), rng, length_scale=utterance.delivery.length_scale)
            prior = voice.prior(ids, utterance.delivery, drawn)
            latents = prior.latents
            tally.compute_s += time.perf_counter() - begun
            tally.sentences.append(tally.frames)
            tally.words.extend(tally.frames + word for word in voice.words(ids, prior))
            for window in voice.windows(latents, self.capacity):
                # A sentence's end is filled up, so that the next one's periods fill buffers again.
                frames = -(-window.frames // PERIOD) * PERIOD if more_to_come else window.frames
                skipped = max(0, start - tally.frames)
                if skipped >= frames:
                    tally.frames += frames
                    continue
                buffer = self._free_buffer(stopped)
                if buffer is None:
                    return
                begun = time.perf_counter()
                try:
                    voice.render(latents, window, utterance.delivery, buffer.samples[: voice.frames_needed(window)])
                except BaseException:
                    buffer.release()
                    raise
                tally.compute_s += time.perf_counter() - begun
                buffer.samples[window.frames : frames] = 0
                tally.frames += frames
                if tally.first_s is None:
                    tally.first_s = tally.compute_s
                yield AudioChunk(buffer, buffer.samples[skipped:frames])

    def warm_up(self, voice: VitsVoice) -> None:
        """Run a sentence of the longest usual length and the largest window once.

        What the engines keep of memory they then have, from the start and for good, and the first command finds
        everything loaded. Takes about as long as six seconds of speech.
        """
        ids = list(islice(cycle(chain(*voice.info.phoneme_ids.values())), USUAL_IDS))
        rng = np.random.default_rng(0)
        latents = voice.latents(ids, Delivery(), voice.noise(len(ids), rng))
        buffer = self._pool.acquire(_POOL_POLL_S)
        try:
            window = max(voice.windows(latents, self.capacity), key=lambda window: window.stop - window.start)
            voice.render(latents, window, Delivery(), buffer.samples[: voice.frames_needed(window)])
        finally:
            buffer.release()

    def replay(
        self, pieces: Iterator[Samples], tally: Tally, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[AudioChunk]:
        """Yield samples that exist already as chunks; each piece fits a buffer."""
        for piece in pieces:
            buffer = self._free_buffer(stopped)
            if buffer is None:
                return
            samples = buffer.samples[: piece.size]
            np.copyto(samples, piece)
            tally.frames += piece.size
            if tally.first_s is None:
                tally.first_s = 0.0
            yield AudioChunk(buffer, samples)

    def _silence(self, frames: int, tally: Tally, stopped: Callable[[], bool], start: int) -> Iterator[AudioChunk]:
        """Yield as many frames of silence, a whole number of periods, less what lies before `start`."""
        while frames:
            piece = min(frames, self.capacity // PERIOD * PERIOD)
            skipped = max(0, start - tally.frames)
            tally.frames += piece
            frames -= piece
            if skipped >= piece:
                continue
            buffer = self._free_buffer(stopped)
            if buffer is None:
                return
            buffer.samples[:piece] = 0
            yield AudioChunk(buffer, buffer.samples[skipped:piece])

    def _free_buffer(self, stopped: Callable[[], bool]) -> Buffer | None:
        """Wait for the player to give a buffer back, for that is what the pool is for; None once stopped."""
        if stopped():
            return None
        with suppress(PoolExhaustedError):
            return self._pool.acquire(0)
        with self._precedence.resting() if self._precedence else nullcontext():
            while not stopped():
                with suppress(PoolExhaustedError):
                    return self._pool.acquire(_POOL_POLL_S)
        return None

    def _sentences(self, utterance: Utterance, voice: VitsVoice, tally: Tally) -> Iterator[tuple[list[int], bool, int]]:
        """Yield each sentence's phoneme ids, whether it may not be the last one, and the frames of silence before."""
        info, gaps = voice.info, utterance.delivery.gaps
        texts = (
            (block, number == 0)
            for paragraph in paragraphs(utterance.text, gaps)
            for number, block in enumerate(blocks(paragraph, max_chars=_BLOCK_CHARS))
        )
        spoken = opening = False
        block, opens = next(texts, (None, False))
        while block is not None:
            next_block, next_opens = next(texts, (None, False))
            opening = opening or opens
            begun = time.perf_counter()
            if info.phoneme_type == "espeak":
                sentences = sentences_of(self._phonemizer.phonemize(block, info.language), max_phonemes=_MOST_PHONEMES)
            else:
                sentences = [list(part) for part in blocks(block, max_chars=_MOST_PHONEMES)]
            tally.compute_s += time.perf_counter() - begun
            for number, sentence in enumerate(sentences, start=1):
                ids, unknown = phoneme_ids(merge_clusters(sentence, info.clusters), info.phoneme_ids)
                self._tell_missing(info.name, unknown)
                if len(unknown) < len(set(sentence)):
                    gap = gaps.paragraph if opening else gaps.sentence
                    yield ids, number < len(sentences) or next_block is not None, gap if spoken else 0
                    spoken, opening = True, False
            block, opens = next_block, next_opens

    def _tell_missing(self, voice: str, phonemes: list[str]) -> None:
        """Log once for each phoneme that a voice lacks: it is left out of everything that is said."""
        for phoneme in phonemes:
            if (voice, phoneme) not in self._missed and len(self._missed) < _MOST_MISSED:
                self._missed.add((voice, phoneme))
                _LOG.warning("voice %s has no phoneme %r, which is left out", voice, phoneme)
