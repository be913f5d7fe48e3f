"""The engine thread: one utterance after another through the synthesizer or the cache, chunk by chunk to the player."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from daemon.cache import pieces
from daemon.inbox import Inbox, SynthesisEnded
from daemon.job import Job
from daemon.phrases import NOT_KEPT, Kept, Lookup, Phrases
from daemon.player import Player
from daemon.recorder import Recorder, Said
from daemon.sampling import Sample, spoken
from daemon.saying import Saying
from daemon.stages import stages_of
from daemon.worker import Worker
from device.errors import DeviceError, PoolClosedError
from device.format import Samples, seconds
from device.memory import AudioChunk
from engines.casting import Casting, direct
from engines.errors import AbandonedError, SpeechError, excerpt
from engines.pack_info import AnyInfo
from engines.precedence import Precedence
from engines.shelf import VoiceShelf
from engines.synthesizer import Cast, Synthesizer, Tally, Utterance
from engines.text.script import Passage
from engines.text.ssml import script_of
from engines.vits import Delivery
from engines.voice import Voice
from engines.voice_memory import Loads

_LOG = logging.getLogger(__name__)

_IDLE_POLL_S: Final = 0.5
"""Without commands for this long, the next pinned phrase is prepared."""


@dataclass(frozen=True, slots=True)
class Order(Saying):
    """What to say, how, and who follows it. A seed: an utterance that goes on must sound as it began."""

    cache: bool
    """Whether a kept recording may be played, and this one kept."""
    clip: Samples | None = None
    """A sound to play in place of the text."""


class _GiveBack:
    """Stands among orders for `SynthesisThread.give_back`."""


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
        self._phrases: Phrases
        self._unloaded: list[str] = []
        self._orders: queue.SimpleQueue[Order | Sample | _GiveBack | None] = queue.SimpleQueue()
        self._current: Job | None = None
        self._voice: Voice | None = None
        self._sampled: Voice | None = None
        """What speaks to nobody."""
        self.gpu_memory: tuple[int, int] | None = None
        """Free and all bytes after the last utterance; None where there is no GPU. To be read by any thread."""
        self.voices: Mapping[str, Loads] = {}
        """Those that were loaded so far, after the last utterance. To be read by any thread."""

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
        self._phrases = Phrases(self._kept, engines.synthesizer)
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
                order = self._orders.get(timeout=_IDLE_POLL_S if self._unloaded or not self._phrases.prepared else None)
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

        def spoken(end: int) -> None:
            if not stopped():  # else it is the speech that was cut there
                job.last_word_end.append(end)

        try:
            script = script_of(order.text, ssml=order.ssml)
            script, casting = direct(script, order.wish, self._shelf, tally.warn)
            voice = self._voice = casting.own
            utterance = Utterance(script, casting.delivery, self._shelf.seed, casting.volume)
            if order.clip is not None:
                phrase = Lookup.of_clip(order.clip)
                job.last_word_end.append(lead)
            else:
                phrase = self._phrases.find(utterance, voice, again=job.start > 0) if order.cache else NOT_KEPT
            if phrase.recording is None:
                seeded = replace(utterance, seed=order.seed if utterance.seed is None else utterance.seed)
                cast = self._cast(casting)
                chunks = self._synthesizer.chunks(seeded, cast, tally, stopped, start=job.start)
            else:
                job.words.extend(lead + word for word in phrase.recording.words)
                job.sentences.extend(lead + sentence for sentence in phrase.recording.sentences)
                skipped = min(max(0, job.start - lead), phrase.recording.samples.size)
                tally.frames += skipped
                chunks = sound(phrase.recording.samples[skipped:])
            chunks = self._phrases.recorded(chunks, phrase)
            if order.framing is not None:
                chunks = order.framing.around(chunks, sound, tally, job.start, spoken)
            if self._recorder is not None:
                chunks = self._recorder.tape(Said(job.id, order.text, voice.info.name), chunks, job.stopped.is_set)
            for chunk in chunks:
                self._player.play(job, chunk)
        except (SpeechError, PoolClosedError) as error:
            # Whoever stopped it has had the engine abandon it.
            return False, None if job.stopped.is_set() and isinstance(error, AbandonedError) else error
        if job.stopped.is_set():
            return False, None  # somebody stopped it, or the player gave up and says so: not all samples exist
        self._phrases.finish(phrase, tally, lead)
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
        """Take note of what voices and GPU take. Where the GPU does not say that, the next window will tell why."""
        self.voices = self._shelf.counts
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

    def _prepare(self) -> None:
        """Load one voice, or speak one pinned phrase into the cache; what cannot be is told of and left out."""
        if self._unloaded:
            name = self._unloaded.pop(0)
            try:
                self._shelf.get(name)
                self._shelf.get()
            except SpeechError as error:
                _LOG.warning("the voice %r of voice.preload cannot be loaded: %s", excerpt(name), error)
            self._measure()
            return
        self._phrases.prepare(self._shelf, self._is_wanted)
