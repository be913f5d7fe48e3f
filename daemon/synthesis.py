"""The engine thread: one utterance after another through the synthesizer or the cache, chunk by chunk to the player."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from daemon.cache import LONGEST_CHARS, LONGEST_S, Keeper, Phrase, PhraseCache, key_of, pieces
from daemon.framing import Framing
from daemon.inbox import Inbox, SynthesisEnded
from daemon.job import Job
from daemon.player import Player
from daemon.recorder import Recorder, Said
from daemon.sampling import Sample, spoken
from daemon.stages import stages_of
from daemon.worker import Worker
from device.errors import DeviceError, PoolClosedError
from device.format import RATE, Samples, seconds
from device.memory import AudioChunk
from engines.blends import read_vector
from engines.casting import Casting, in_its_languages
from engines.errors import AbandonedError, SpeechError, excerpt
from engines.pack_info import AnyInfo
from engines.precedence import Precedence
from engines.shelf import VoiceShelf
from engines.styles import dressed, find
from engines.synthesizer import Cast, Synthesizer, Tally, Utterance
from engines.text.script import Passage
from engines.text.ssml import script_of
from engines.vits import Delivery
from engines.voice import Voice

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
    language: str | None = None
    rate: float = 1.0
    seed: int | None = None
    """Where the owner wants none in particular: an utterance that goes on must sound as it began."""
    clip: Samples | None = None
    """A sound to play in place of the text."""
    ssml: bool = False
    """Whether the text is SSML."""
    framing: Framing | None = None
    """Chimes around it."""
    style: str = ""
    """A name or a blend."""
    style_vector: str = ""
    """In base64, in place of it."""


class _GiveBack:
    """Stands among orders for `SynthesisThread.give_back`."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The phrase cache, who writes it, and what belongs in it from the start."""

    cache: PhraseCache
    keeper: Keeper
    phrases: Sequence[str]


@dataclass(frozen=True, slots=True)
class Engines:
    """What the engine thread computes with: made, used and closed in it, as a GPU's context belongs to one thread."""

    synthesizer: Synthesizer
    shelf: VoiceShelf
    close: Callable[[], None]
    """Frees all of it, the voices too."""
    gpu_memory: Callable[[], tuple[int, int] | None] = lambda: None
    """Gives the free and all bytes of the GPU's memory; None where there is no GPU. For the engine thread."""


class SynthesisThread(Worker):
    """Owns the engines."""

    def __init__(
        self,
        make: Callable[[], Engines],
        player: Player,
        kept: Kept | None,
        post: Callable[[Inbox], None],
        precedence: Precedence | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """`make` is called first of all in the thread; `made` then has its result, or what it raised.

        `precedence` over what is rendered meanwhile.
        """
        super().__init__("engine", post)
        self.made: Final[Future[Engines]] = Future()
        self._make = make
        self._precedence = precedence or Precedence()
        self._recorder = recorder
        self._synthesizer: Synthesizer
        self._shelf: VoiceShelf
        self._gpu_memory: Callable[[], tuple[int, int] | None]
        self._player = player
        self._kept = kept
        self._record = _Record() if kept else None
        self._unprepared = list(kept.phrases) if kept else []
        self._unloaded: list[str] = []
        self._orders: queue.SimpleQueue[Order | Sample | _GiveBack | None] = queue.SimpleQueue()
        self._current: Job | None = None
        self._voice: Voice | None = None
        self._sampled: Voice | None = None
        """What speaks to nobody."""
        self.gpu_memory: tuple[int, int] | None = None
        """Free and all bytes after the last utterance; None where there is no GPU. To be read by any thread."""

    def say(self, order: Order) -> None:
        """Queue an utterance; from any thread."""
        self._orders.put(order)
        sampled = self._sampled
        if sampled is not None:
            sampled.abandon()

    def sample(self, sample: Sample) -> None:
        """Have something said to nobody, once nothing else is to be done; a command that comes ends it at once."""
        self._orders.put(sample)

    def be_frugal(self, *, frugal: bool) -> None:
        """Take fewer, larger windows from the next sentence on, or not; from any thread once `made` has its result."""
        self._synthesizer.frugal = frugal

    def give_back(self) -> None:
        """Return memory that only speaking needs, once nothing is being said; from any thread."""
        self._orders.put(_GiveBack())

    def stop(self) -> None:
        """End after the window that is being computed. From any thread."""
        self._orders.put(None)
        current = self._current
        if current is not None:
            current.stopped.set()

    def abandon(self, job: Job) -> None:
        """Have `job`, which was stopped, end without waiting for the window that is being computed. From any thread."""
        current, voice = self._current, self._voice
        if current is job and voice is not None:
            voice.abandon()

    def work(self) -> None:
        """Synthesize what comes until stopped; prepare pinned phrases while nothing comes."""
        try:
            engines = self._make()
        except BaseException as error:  # noqa: BLE001  whoever waits for the engines decides
            self.made.set_exception(error)
            return
        self._synthesizer, self._shelf = engines.synthesizer, engines.shelf
        self._unloaded = list(engines.shelf.preload)
        self._gpu_memory = engines.gpu_memory
        self._measure()
        self.made.set_result(engines)
        try:
            self._serve()
        finally:
            engines.close()

    def _serve(self) -> None:
        while True:
            try:
                self.pulse.rest()
                order = self._orders.get(timeout=_IDLE_POLL_S if self._unprepared or self._unloaded else None)
                self.pulse.wake()
            except queue.Empty:
                self.pulse.wake()
                self._prepare()
                continue
            if order is None:
                return
            if isinstance(order, Sample):
                self._sample(order)
                continue
            if isinstance(order, _GiveBack):
                if self._orders.empty():
                    for voice in self._shelf.loaded:
                        self._synthesizer.give_back(voice)
                continue
            self._current = order.job
            try:
                with self._precedence.urgent():
                    complete, error = self._say(order)
            finally:
                self._current = self._voice = None
                self._measure()
            self._player.end(order.job, error, complete=complete)

    def _say(self, order: Order) -> tuple[bool, Exception | None]:
        """Give whether all samples were handed on, and what kept them from it."""
        job, begun_at, loaded_s = order.job, time.monotonic(), self._shelf.load_s
        lead = order.framing.lead if order.framing else 0
        tally = Tally(
            frames=min(job.start, lead),
            words=job.words,
            sentences=job.sentences,
            marks=job.bookmarks,
            warnings=job.warnings,
        )

        def stopped() -> bool:  # asked between windows, and while waiting for the player
            self.pulse.beat()
            return job.stopped.is_set()

        def sound(samples: Samples) -> Iterator[AudioChunk]:
            """Give samples that exist already as chunks."""
            return self._synthesizer.replay(pieces(samples, self._synthesizer.capacity), tally, stopped)

        try:
            script = script_of(order.text, ssml=order.ssml)
            style, vector = find(order.style, self._shelf.styles), read_vector(order.style_vector)
            gain, rate = order.gain * style.gain, order.rate * style.rate
            voice = self._shelf.get_or_usual(order.voice or style.voice, order.language, tally.warn)
            if not (order.voice or order.language or order.style or vector) and order.speaker is None:
                script, voice = in_its_languages(script, self._shelf, voice)
            self._voice = voice
            usual = self._shelf.delivery(voice, speaker=order.speaker, gain=gain, rate=rate)
            delivery = dressed(usual, voice.info, style, vector, self._shelf.styles)
            utterance = Utterance(script, delivery, self._shelf.seed, gain)
            if order.clip is not None:
                phrase = _Phrase("", Phrase(order.clip), keep=False)
            else:
                phrase = self._find(utterance, voice, again=job.start > 0) if order.cache else _NOT_KEPT
            if phrase.recording is None:
                seeded = replace(utterance, seed=order.seed if utterance.seed is None else utterance.seed)
                cast = self._cast(Casting(self._shelf, voice, delivery, tally.warn, gain=gain, rate=rate))
                chunks = self._synthesizer.chunks(seeded, cast, tally, stopped, start=job.start)
            else:
                job.words.extend(lead + word for word in phrase.recording.words)
                job.sentences.extend(lead + sentence for sentence in phrase.recording.sentences)
                skipped = min(max(0, job.start - lead), phrase.recording.samples.size)
                tally.frames += skipped
                chunks = sound(phrase.recording.samples[skipped:])
            chunks = self._recorded(chunks, phrase)
            if order.framing is not None:
                chunks = order.framing.around(chunks, sound, job.start)
            if self._recorder is not None:
                chunks = self._recorder.tape(Said(job.id, order.text, voice.info.name), chunks, job.stopped.is_set)
            for chunk in chunks:
                self._player.play(job, chunk)
        except (SpeechError, PoolClosedError) as error:
            # Whoever stopped it has had the engine abandon it.
            return False, None if job.stopped.is_set() and isinstance(error, AbandonedError) else error
        if job.stopped.is_set():
            return False, None  # somebody stopped it, or the player gave up and says so: not all samples exist
        self._finish(phrase, tally, lead)
        self._post(
            SynthesisEnded(
                id=job.id,
                audio_s=seconds(tally.frames),
                compute_s=tally.compute_s,
                first_s=tally.first_s,
                cached=phrase.recording is not None,
                voice=voice.info.name,
                backend=voice.backend,
                precision=voice.precision,
                load_s=self._shelf.load_s - loaded_s,
                stages=None if job.start or order.clip is not None else stages_of(tally, begun_at),
                mark_s=0.0 if phrase.recording is not None and self._synthesizer.watermark else tally.mark_s,
            )
        )
        return True, None

    def _sample(self, sample: Sample) -> None:
        """Say the texts to nobody."""
        info: AnyInfo | None = None
        sounds: list[Samples] | None = None
        problem = ""
        try:
            voice = self._sampled = self._shelf.get()
            info = voice.info
            sounds = spoken(sample, self._synthesizer, voice, self._is_wanted)
        except AbandonedError:
            pass  # by a command
        except (SpeechError, PoolClosedError) as error:
            problem = str(error)
        finally:
            self._sampled = None
        sample.take(None if self._is_wanted() else sounds, info, problem)

    def _is_wanted(self) -> bool:
        return not self._orders.empty()

    def _measure(self) -> None:
        """Take note of the GPU's memory. Where the GPU does not even say that, the next window will tell why."""
        self.gpu_memory = None
        with suppress(DeviceError):
            self.gpu_memory = self._gpu_memory()

    def _cast(self, casting: Casting) -> Cast:
        """Have it noted who speaks, so that it can be made to stop."""

        def cast(passage: Passage) -> tuple[Voice, Delivery]:
            voice, delivery = casting(passage)
            self._voice = voice
            return voice, delivery

        return cast

    def _find(self, utterance: Utterance, voice: Voice, *, again: bool = False) -> _Phrase:
        """Look a phrase up. `again`: it goes on after an interruption, which makes it no phrase that is said twice."""
        script = utterance.script
        if self._kept is None or script.chars > LONGEST_CHARS or not script.is_repeatable_by(voice.info.language):
            return _NOT_KEPT
        key = self._key(utterance, voice)
        recording = self._kept.cache.get(key)
        return _Phrase(key, recording, keep=recording is None and not again and self._kept.cache.wants(key))

    def _key(self, utterance: Utterance, voice: Voice) -> str:
        return key_of(utterance, voice, self._synthesizer.fingerprint(voice.info.language))

    def _recorded(self, chunks: Iterator[AudioChunk], phrase: _Phrase) -> Iterator[AudioChunk]:
        """Pass chunks on, and copy them where the phrase shall be kept."""
        record = self._record
        if record is not None:
            record.clear()
        for chunk in chunks:
            if phrase.keep and record is not None:
                record.add(chunk.samples)
            yield chunk

    def _finish(self, phrase: _Phrase, tally: Tally, lead: int = 0) -> None:
        """Have a phrase kept whose speech begins at frame `lead`."""
        # A recording would be without the warnings.
        if phrase.keep and not tally.warnings and self._kept is not None and self._record is not None:
            whole = self._record.taken()
            if whole is not None:
                words = tuple(word - lead for word in tally.words)
                sentences = tuple(sentence - lead for sentence in tally.sentences)
                self._kept.keeper.keep(phrase.key, Phrase(whole, words, sentences))

    def _prepare(self) -> None:
        """Load one voice, or speak one pinned phrase into the cache; what cannot be is told of and left out."""
        if self._unloaded:
            name = self._unloaded.pop(0)
            try:
                self._shelf.get(name)
                self._shelf.get()
            except SpeechError as error:
                _LOG.warning("the voice %r of voice.preload cannot be loaded: %s", excerpt(name), error)
            return
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
        self._kept.cache.pin(self._key(utterance, voice))
        phrase = self._find(utterance, voice)
        if not phrase.keep:
            return
        tally = Tally()
        for chunk in self._recorded(self._synthesizer.chunks(utterance, voice, tally), phrase):
            chunk.release()
            if not self._orders.empty():
                self._unprepared.append(text)
                return
        self._finish(phrase, tally)


@dataclass(frozen=True, slots=True)
class _Phrase:
    key: str
    recording: Phrase | None
    keep: bool


_NOT_KEPT: Final = _Phrase("", None, keep=False)


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
