"""The engine thread: one utterance after another through the synthesizer or the cache, chunk by chunk to the player."""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from daemon.cache import LONGEST_CHARS, LONGEST_S, Keeper, PhraseCache, key_of, pieces
from daemon.inbox import Inbox, SynthesisEnded
from daemon.player import Job, Player
from daemon.worker import Worker
from device.errors import PoolClosedError
from device.format import RATE, Samples, seconds
from device.memory import AudioChunk
from engines.errors import SpeechError, excerpt
from engines.shelf import VoiceShelf
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.vits import VitsVoice

_LOG = logging.getLogger(__name__)

_IDLE_POLL_S: Final = 0.5
"""Without commands for this long, the next pinned phrase is prepared."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to say, how, and who follows it."""

    job: Job
    text: str
    voice: str
    speaker: int | str | None
    gain: float
    cache: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """The phrase cache, who writes it, and what belongs in it from the start."""

    cache: PhraseCache
    keeper: Keeper
    phrases: Sequence[str]


class SynthesisThread(Worker):
    """Owns the synthesizer and the loaded voices."""

    def __init__(
        self,
        synthesizer: Synthesizer,
        shelf: VoiceShelf,
        player: Player,
        kept: Kept | None,
        post: Callable[[Inbox], None],
    ) -> None:
        super().__init__("engine", post)
        self._synthesizer = synthesizer
        self._shelf = shelf
        self._player = player
        self._kept = kept
        self._record = _Record() if kept else None
        self._unprepared = list(kept.phrases) if kept else []
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._current: Job | None = None

    def say(self, order: Order) -> None:
        """Queue an utterance; from any thread."""
        self._orders.put(order)

    def stop(self) -> None:
        """End after the window that is being computed. From any thread."""
        self._orders.put(None)
        current = self._current
        if current is not None:
            current.stopped.set()

    def work(self) -> None:
        """Synthesize what comes until stopped; prepare pinned phrases while nothing comes."""
        while True:
            try:
                order = self._orders.get(timeout=_IDLE_POLL_S if self._unprepared else None)
            except queue.Empty:
                self._prepare()
                continue
            if order is None:
                return
            self._current = order.job
            error = self._say(order)
            self._current = None
            self._player.end(order.job, error)

    def _say(self, order: Order) -> Exception | None:
        tally = Tally()
        job = order.job
        try:
            voice = self._shelf.get(order.voice)
            delivery = self._shelf.delivery(voice, speaker=order.speaker, gain=order.gain)
            utterance = Utterance(order.text, delivery, self._shelf.seed)
            phrase = self._find(utterance, voice) if order.cache else _Phrase("", None, keep=False)
            if phrase.samples is None:
                chunks = self._synthesizer.chunks(utterance, voice, tally, job.stopped.is_set)
            else:
                recording = pieces(phrase.samples, self._synthesizer.capacity)
                chunks = self._synthesizer.replay(recording, tally, job.stopped.is_set)
            for chunk in self._recorded(chunks, phrase):
                self._player.play(job, chunk)
        except (SpeechError, PoolClosedError) as error:
            return error
        if job.stopped.is_set():
            return None  # the player gave up, and says so: not all samples exist
        self._finish(phrase)
        self._post(
            SynthesisEnded(
                id=job.id,
                audio_s=seconds(tally.frames),
                compute_s=tally.compute_s,
                first_s=tally.first_s,
                cached=phrase.samples is not None,
                voice=voice.info.name,
                backend=voice.backend,
                precision=voice.precision,
            )
        )
        return None

    def _find(self, utterance: Utterance, voice: VitsVoice) -> _Phrase:
        if self._kept is None or len(utterance.text) > LONGEST_CHARS:
            return _Phrase("", None, keep=False)
        key = key_of(utterance, voice)
        samples = self._kept.cache.get(key)
        return _Phrase(key, samples, keep=samples is None and self._kept.cache.wants(key))

    def _recorded(self, chunks: Iterator[AudioChunk], phrase: _Phrase) -> Iterator[AudioChunk]:
        """Pass chunks on, and copy them where the phrase shall be kept."""
        record = self._record
        if record is not None:
            record.clear()
        for chunk in chunks:
            if phrase.keep and record is not None:
                record.add(chunk.samples)
            yield chunk

    def _finish(self, phrase: _Phrase) -> None:
        if phrase.keep and self._kept is not None and self._record is not None:
            whole = self._record.taken()
            if whole is not None:
                self._kept.keeper.keep(phrase.key, whole)

    def _prepare(self) -> None:
        """Speak one pinned phrase into the cache; one that cannot be spoken is told of and left out."""
        text = self._unprepared.pop(0)
        try:
            self._keep(text)
        except (SpeechError, PoolClosedError) as error:
            _LOG.warning("the phrase %r of cache.phrases cannot be prepared: %s", excerpt(text), error)

    def _keep(self, text: str) -> None:
        """Speak a phrase to nobody and have it kept; a command that comes meanwhile goes first."""
        if self._kept is None:
            return
        voice = self._shelf.get()
        utterance = Utterance(text, self._shelf.delivery(voice), self._shelf.seed)
        self._kept.cache.pin(key_of(utterance, voice))
        phrase = self._find(utterance, voice)
        if not phrase.keep:
            return
        for chunk in self._recorded(self._synthesizer.chunks(utterance, voice, Tally()), phrase):
            chunk.release()
            if not self._orders.empty():
                self._unprepared.append(text)
                return
        self._finish(phrase)


@dataclass(frozen=True, slots=True)
class _Phrase:
    key: str
    samples: Samples | None
    keep: bool


class _Record:
    """What was said last, as far as it fits; allocated once."""

    def __init__(self) -> None:
        self._memory: Samples = np.empty(LONGEST_S * RATE, np.float32)
        self._frames = 0

    def clear(self) -> None:
        """Forget it."""
        self._frames = 0

    def add(self, samples: Samples) -> None:
        """Copy some frames behind those that are there."""
        end = self._frames + samples.size
        if end <= self._memory.size:
            self._memory[self._frames : end] = samples
        self._frames = end

    def taken(self) -> Samples | None:
        """Give a copy of all of it; None where there is nothing, or more than fits."""
        return self._memory[: self._frames].copy() if 0 < self._frames <= self._memory.size else None
