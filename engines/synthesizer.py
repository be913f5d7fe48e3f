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
from device.heap import trim
from device.memory import AudioChunk, Buffer, BufferPool
from engines.precedence import Precedence
from engines.runtime.ort import giving_back
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

_SHORT_IDS: Final = 8
"""Phoneme ids of the least that a voice can say."""

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
    first_at: float | None = None
    """When that was there, in seconds of `time.monotonic`."""
    text_s: float = 0.0
    """Of `first_s`, the time in the phonemizer; of the rest no such account is kept."""
    acoustic_s: float = 0.0
    """Of `first_s`, the time in the acoustic part."""
    words: list[int] = field(default_factory=list)
    """The first frame of each word, known before its samples are."""
    sentences: list[int] = field(default_factory=list)
    """The first frame of each sentence, likewise."""


class Synthesizer:
    """Speaks with one voice at a time; for one thread."""

    def __init__(self, phonemizer: Phonemizer, pool: BufferPool, precedence: Precedence | None = None) -> None:
        """`precedence`: within its `urgent`, others may compute while this one waits for a buffer."""
        self._phonemizer = phonemizer
        self.pool: Final = pool
        """Whence the chunks' buffers come."""
        self._precedence = precedence
        self._missed: set[tuple[str, str]] = set()
        self.capacity: Final = pool.capacity
        """Frames of the largest chunk."""
        self.frugal = False
        """Whether sentences from now on take fewer, larger windows. May be set from any thread."""

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
        for ids, more_to_come in self._sentences(utterance.text, voice, tally):
            if stopped():
                return
            begun = time.perf_counter()
            drawn = noise(ids) if noise else voice.noise(len(ids), rng, length_scale=utterance.delivery.length_scale)
            prior = voice.prior(ids, utterance.delivery, drawn)
            latents = prior.latents
            tally.compute_s += time.perf_counter() - begun
            if tally.first_s is None:
                tally.acoustic_s += time.perf_counter() - begun
            tally.sentences.append(tally.frames)
            tally.words.extend(tally.frames + word for word in voice.words(ids, prior))
            for window in voice.windows(latents, self.capacity, frugal=self.frugal):
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
                    tally.first_s, tally.first_at = tally.compute_s, time.monotonic()
                yield AudioChunk(buffer, buffer.samples[skipped:frames])

    def warm_up(self, voice: VitsVoice) -> None:
        """Run a sentence of the longest usual length and the largest window once.

        What the engines keep of memory they then have, from the start and for good, and the first command finds
        everything loaded. Takes about as long as six seconds of speech.
        """
        ids = list(islice(cycle(chain(*voice.info.phoneme_ids.values())), USUAL_IDS))
        rng = np.random.default_rng(0)
        latents = voice.latents(ids, Delivery(), voice.noise(len(ids), rng))
        buffer = self.pool.acquire(_POOL_POLL_S)
        try:
            window = max(voice.windows(latents, self.capacity), key=lambda window: window.stop - window.start)
            voice.render(latents, window, Delivery(), buffer.samples[: voice.frames_needed(window)])
        finally:
            buffer.release()

    def give_back(self, voice: VitsVoice) -> None:
        """Return to the system what the voice's engines on the CPU keep of memory between two utterances.

        They take it again with the next one, which costs that some 3 ms; this takes 30 ms. A GPU's engines keep theirs.
        """
        ids = list(islice(chain(*voice.info.phoneme_ids.values()), _SHORT_IDS))
        delivery = Delivery(speaker=voice.info.default_speaker)
        buffer = self.pool.acquire(_POOL_POLL_S)
        try:
            with giving_back():
                latents = voice.latents(ids, delivery, voice.noise(len(ids), np.random.default_rng(0)))
                window = next(iter(voice.windows(latents, self.capacity)))
                voice.render(latents, window, delivery, buffer.samples[: voice.frames_needed(window)])
        finally:
            buffer.release()
        trim()

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
                tally.first_s, tally.first_at = 0.0, time.monotonic()
            yield AudioChunk(buffer, samples)

    def _free_buffer(self, stopped: Callable[[], bool]) -> Buffer | None:
        """Wait for the player to give a buffer back, for that is what the pool is for; None once stopped."""
        if stopped():
            return None
        with suppress(PoolExhaustedError):
            return self.pool.acquire(0)
        with self._precedence.resting() if self._precedence else nullcontext():
            while not stopped():
                with suppress(PoolExhaustedError):
                    return self.pool.acquire(_POOL_POLL_S)
        return None

    def _sentences(self, text: str, voice: VitsVoice, tally: Tally) -> Iterator[tuple[list[int], bool]]:
        """Yield each sentence's phoneme ids, and whether it may not be the last one."""
        info = voice.info
        texts = blocks(text, max_chars=_BLOCK_CHARS)
        block = next(texts, None)
        while block is not None:
            next_block = next(texts, None)
            begun = time.perf_counter()
            if info.phoneme_type == "espeak":
                sentences = sentences_of(self._phonemizer.phonemize(block, info.language), max_phonemes=_MOST_PHONEMES)
            else:
                sentences = [list(part) for part in blocks(block, max_chars=_MOST_PHONEMES)]
            tally.compute_s += time.perf_counter() - begun
            if tally.first_s is None:
                tally.text_s += time.perf_counter() - begun
            for number, sentence in enumerate(sentences, start=1):
                ids, unknown = phoneme_ids(merge_clusters(sentence, info.clusters), info.phoneme_ids)
                self._tell_missing(info.name, unknown)
                if len(unknown) < len(set(sentence)):
                    yield ids, number < len(sentences) or next_block is not None
            block = next_block

    def _tell_missing(self, voice: str, phonemes: list[str]) -> None:
        """Log once for each phoneme that a voice lacks: it is left out of everything that is said."""
        for phoneme in phonemes:
            if (voice, phoneme) not in self._missed and len(self._missed) < _MOST_MISSED:
                self._missed.add((voice, phoneme))
                _LOG.warning("voice %s has no phoneme %r, which is left out", voice, phoneme)
