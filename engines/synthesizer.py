"""Text in, audio chunks out: the path of one utterance through the engine thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, cycle, islice
from typing import Final, TypeAlias

import numpy as np

from device.errors import PoolExhaustedError
from device.format import PERIOD, RATE, Samples
from device.heap import trim
from device.memory import AudioChunk, Buffer, BufferPool
from engines.errors import excerpt
from engines.missing_phonemes import MissingPhonemes
from engines.precedence import Precedence
from engines.runtime.ort import giving_back
from engines.spoken import Piece
from engines.tally import Tally
from engines.text.gaps import divided
from engines.text.phonemes import Phonemizer
from engines.text.reading import Front, Reader, Sentence
from engines.text.script import Passage, Script, plain
from engines.vits import Delivery, Noise
from engines.voice import Voice
from engines.watermark_files import Watermark

__all__ = ["Cast", "Synthesizer", "Tally", "Utterance"]

_SHORT_IDS: Final = 8
"""Phoneme ids of the least that a voice can say."""

_SILENCE: Final = np.zeros(1, np.float32)

_POOL_POLL_S: Final = 0.1
"""How long a wait for a free buffer lasts before a stop is looked for."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What is to be said, and how."""

    text: str | Script
    """A plain text, in which nothing is a command, or a script."""
    delivery: Delivery = field(default_factory=Delivery)
    seed: int | None = None
    """The same seed gives the same samples; None: never the same twice."""
    volume: float = 1.0
    """Factor on the sounds that it plays, as a delivery's gain is on its speech."""

    @property
    def script(self) -> Script:
        """Give it as a script."""
        return plain(self.text) if isinstance(self.text, str) else self.text


Cast: TypeAlias = Callable[[Passage], tuple[Voice, Delivery]]
"""Gives who says a passage, loaded and valid until the next call, and how, but for the passage's own rate and gain."""


@dataclass(frozen=True, slots=True)
class _Going:
    """What holds for all of an utterance, and where in it we are."""

    stopped: Callable[[], bool]
    noise: Callable[[list[int]], Noise] | None
    start: int
    last: bool
    """Whether nothing follows this passage."""


class Synthesizer:
    """Speaks with one voice at a time; for one thread."""

    def __init__(
        self,
        phonemizer: Phonemizer,
        pool: BufferPool,
        precedence: Precedence | None = None,
        front: Front | None = None,
        watermark: Watermark | None = None,
        missing: MissingPhonemes | None = None,
    ) -> None:
        """`precedence`: within its `urgent`, others may compute while this one waits for a buffer.

        `front`: how the owner wants texts to be read. `watermark`: what all speech is to carry. `missing`: who counts
        what voices lack, where several synthesizers do so together.
        """
        self._reader = Reader(phonemizer, front)
        self._clip = (front or Front()).clip
        self.pool: Final = pool
        """Whence the chunks' buffers come."""
        self._precedence = precedence
        self.watermark: Final = watermark
        self._marker = watermark.marker() if watermark else None
        self.missing: Final = missing or MissingPhonemes()
        self.capacity: Final = pool.capacity
        """Frames of the largest chunk."""
        self.frugal = False
        """Whether sentences from now on take fewer, larger windows. May be set from any thread."""

    def fingerprint(self, language: str) -> str:
        """Tell apart how texts are read, see `Reader.fingerprint`, and with what speech is marked."""
        return self._reader.fingerprint(language) + (self.watermark.digest if self.watermark else "")

    def chunks(
        self,
        utterance: Utterance,
        voice: Voice | Cast,
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

        def speak(start: int) -> Iterator[AudioChunk]:
            return self._chunks(utterance, voice, tally, stopped, noise, start)

        if self._marker is None:
            return speak(start)
        return self._marker.marked(speak, tally, lambda: self._free_buffer(stopped), start)

    def _chunks(
        self,
        utterance: Utterance,
        voice: Voice | Cast,
        tally: Tally,
        stopped: Callable[[], bool],
        noise: Callable[[list[int]], Noise] | None,
        start: int,
    ) -> Iterator[AudioChunk]:
        cast: Cast = (lambda _: (voice, utterance.delivery)) if isinstance(voice, Voice) else voice
        rng = np.random.Generator(np.random.SFC64(utterance.seed))
        script = divided(utterance.script, utterance.delivery.gaps)
        for warning in script.warnings:
            tally.warn(warning)
        for number, passage in enumerate(script.passages, start=1):
            last = number == len(script.passages) and not passage.pause_s
            clip = self._clip(passage.clip) if passage.clip else None
            if clip is not None:
                tally.sentences.append(tally.frames)
                yield from self._play(
                    clip * np.float32(passage.gain * utterance.volume), tally, stopped, start, last=last
                )
            else:
                if passage.clip:
                    tally.warn(f"there is no sound {excerpt(passage.clip)!r}")
                yield from self._speak(passage, cast, rng, tally, _Going(stopped, noise, start, last=last))
            if stopped():
                return
            if passage.pause_s:
                frames = round(passage.pause_s * RATE)
                tally.sentences.append(tally.frames)
                yield from self._play(np.broadcast_to(_SILENCE, frames), tally, stopped, start, last=False)

    def _speak(
        self, passage: Passage, cast: Cast, rng: np.random.Generator, tally: Tally, going: _Going
    ) -> Iterator[AudioChunk]:
        """Yield what a passage's text sounds like."""
        if not passage.spans:
            return
        voice, usual = cast(passage)
        delivery = replace(usual, length_scale=usual.length_scale / passage.rate, gain=usual.gain * passage.gain)
        gap = delivery.gaps.paragraph if passage.opens and tally.sentences else 0
        for sentence, ids, more_to_come in self._sentences(passage, voice, tally):
            if going.stopped():
                return
            if not ids:
                tally.marks.extend((tally.frames, name) for _, name in sentence.marks)
                continue
            yield from self._silence(gap, tally, going.stopped, going.start)
            gap = delivery.gaps.sentence
            begun = time.perf_counter()
            given = going.noise(ids) if going.noise else None
            held = self._marker.held if self._marker else 0
            spoken = voice.speak(ids, delivery, rng, capacity=self.capacity, frugal=self.frugal, held=held, noise=given)
            tally.compute_s += time.perf_counter() - begun
            if tally.first_s is None:
                tally.acoustic_s += time.perf_counter() - begun
            tally.sentences.append(tally.frames)
            words = [*spoken.words, sum(piece.frames for piece in spoken.pieces)]
            tally.words.extend(tally.frames + word for word in words[:-1])
            tally.marks.extend((tally.frames + words[min(i, len(words) - 1)], name) for i, name in sentence.marks)
            for piece in spoken.pieces:
                # A sentence's end is filled up, so that the next one's periods fill buffers again.
                last = going.last and not more_to_come
                frames = piece.frames if last else -(-piece.frames // PERIOD) * PERIOD
                skipped = max(0, going.start - tally.frames)
                if skipped >= frames:
                    tally.frames += frames
                    continue
                buffer = self._free_buffer(going.stopped)
                if buffer is None:
                    return
                begun = time.perf_counter()
                try:
                    piece.render(buffer.samples[: piece.needed])
                except BaseException:
                    buffer.release()
                    raise
                tally.compute_s += time.perf_counter() - begun
                buffer.samples[piece.frames : frames] = 0
                tally.frames += frames
                if tally.first_s is None:
                    tally.first_s, tally.first_at = tally.compute_s, time.monotonic()
                yield AudioChunk(buffer, buffer.samples[skipped:frames])

    def _play(
        self, samples: Samples, tally: Tally, stopped: Callable[[], bool], start: int, *, last: bool
    ) -> Iterator[AudioChunk]:
        """Yield samples that exist already, filled up to whole periods where more follows."""
        size = self.capacity // PERIOD * PERIOD
        for begin in range(0, samples.size, size):
            piece = samples[begin : begin + size]
            frames = piece.size if last else -(-piece.size // PERIOD) * PERIOD
            skipped = max(0, start - tally.frames)
            if skipped < frames:
                buffer = self._free_buffer(stopped)
                if buffer is None:
                    return
                np.copyto(buffer.samples[: piece.size], piece)
                buffer.samples[piece.size : frames] = 0
                if tally.first_s is None:
                    tally.first_s, tally.first_at = tally.compute_s, time.monotonic()
                tally.frames += frames
                yield AudioChunk(buffer, buffer.samples[skipped:frames])
            else:
                tally.frames += frames

    def warm_up(self, voice: Voice) -> None:
        """Run a sentence of the longest usual length and the largest piece of it once.

        What the engines keep of memory they then have, from the start and for good, and the first command finds
        everything loaded. Takes about as long as six seconds of speech.
        """
        ids = list(islice(cycle(chain(*voice.info.phoneme_ids.values())), voice.abilities.trial_ids))
        spoken = voice.speak(ids, Delivery(), np.random.default_rng(0), capacity=self.capacity)
        self._render_unheard(max(spoken.pieces, key=lambda piece: piece.needed))

    def give_back(self, voice: Voice) -> None:
        """Return to the system what the voice's engines on the CPU keep of memory between two utterances.

        They take it again with the next one, which costs that some 3 ms; this takes 30 ms. A GPU's engines keep theirs.
        """
        ids = list(islice(chain(*voice.info.phoneme_ids.values()), _SHORT_IDS))
        delivery = Delivery(speaker=voice.info.default_speaker)
        with giving_back():
            spoken = voice.speak(ids, delivery, np.random.default_rng(0), capacity=self.capacity)
            self._render_unheard(spoken.pieces[0])
        trim()

    def _render_unheard(self, piece: Piece) -> None:
        buffer = self.pool.acquire(_POOL_POLL_S)
        try:
            piece.render(buffer.samples[: piece.needed])
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
                tally.first_s, tally.first_at = 0.0, time.monotonic()
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
            return self.pool.acquire(0)
        with self._precedence.resting() if self._precedence else nullcontext():
            while not stopped():
                with suppress(PoolExhaustedError):
                    return self.pool.acquire(_POOL_POLL_S)
        return None

    def _sentences(self, passage: Passage, voice: Voice, tally: Tally) -> Iterator[tuple[Sentence, list[int], bool]]:
        """Yield each sentence, its phoneme ids, none where it has no sound, and whether it may not be the last one."""
        info = voice.info
        lengths = voice.abilities.lengths
        pieces = self._reader.read(passage, info.language, info.phoneme_type, tally.warn, lengths)
        while True:
            begun = time.perf_counter()
            sentences, another = next(pieces, ([], False))
            tally.compute_s += time.perf_counter() - begun
            if tally.first_s is None:
                tally.text_s += time.perf_counter() - begun
            for number, sentence in enumerate(sentences, start=1):
                ids, unknown = voice.ids(sentence.phonemes)
                self.missing.note(info.name, unknown)
                sounds = len(unknown) < len(set(sentence.phonemes))
                if sounds or sentence.marks:
                    yield sentence, ids if sounds else [], number < len(sentences) or another
            if not another:
                return
