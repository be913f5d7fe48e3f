"""The voice as a service, with or without a broker: engine thread, player thread, speaker."""

from __future__ import annotations

import os
import queue
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from daemon.audio_wishes import ducking_of, level_of, manners_of
from daemon.cache import Keeper, PhraseCache
from daemon.chimes import Chimes
from daemon.config import Config, packs_folder, phrases_folder, plans_folder, recordings_folder
from daemon.config_text_section import normalizer_of
from daemon.engine_room import BUFFER_FRAMES, make_engines, preferences, watermark_of
from daemon.errors import DaemonError
from daemon.events import Event, Settings
from daemon.figures import Vitals
from daemon.inbox import Inbox, Origin, PlaybackEnded, RenderEnded
from daemon.job import Job
from daemon.journal import Journal
from daemon.lexica import Lexica
from daemon.outputs import Outputs
from daemon.phrases import Kept
from daemon.player import Player
from daemon.queue import Waiting
from daemon.recorder import Recorder
from daemon.render_orders import RenderOrder
from daemon.rendering import Renderers
from daemon.renders import is_live
from daemon.sampling import Sample
from daemon.saying import wish_of
from daemon.speaker import Bounds, Hands, Speaker
from daemon.synthesis import Order, SynthesisThread
from daemon.voice_list import voice_infos
from daemon.worker import Worker
from device.alsa import AlsaSink
from device.memory import SAMPLE_BYTES
from device.null import NullSink
from device.sink import Sink
from device.wav import WavSink
from engines.families import load_for_many
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.shared_backends import RenderOn, beside
from engines.shared_voices import SharedVoices
from engines.text.phonemes import Phonemizer
from engines.text.reading import Front
from engines.voice import Voice
from engines.voice_memory import VoiceBudget
from engines.voice_plans import RENDER_ROWS
from power.mode import Decision

_STOP_S: Final = 15.0
"""For all threads to end: the engine finishes its window, some 0.2 s here, on a slow board perhaps two."""

_BURST_S: Final = 4.0
"""Seconds' worth of commands that a sender may give at once: a whole queue at the default rate, twice."""

_MOST_RENDERERS: Final = RENDER_ROWS
"""Threads, one per core up to here: as many windows as a GPU computes in one run.

The first takes 115 MB, engines included, each further one 55 MB.
"""


def make_sink(config: Config) -> Sink:
    """Make the configured output; nothing is opened yet."""
    match config.audio.output:
        case "alsa":
            return AlsaSink(config.audio.device)
        case "wav":
            return WavSink(config.audio.path)
        case "null":
            return NullSink()


class Service:
    """Starts down, stops in reverse. `start` and `stop` are for the main thread, which also reads `inbox`."""

    def __init__(
        self,
        config: Config,
        sink: Sink,
        journal: Journal,
        *,
        publish: Callable[[Event, Origin], None],
        report: Callable[[Settings], None],
        topic_of: Callable[[str], str] = str,
        put_aside: str = "",
    ) -> None:
        """`publish` sends an event, `report` the settings; both must return at once. The journal stays the caller's.

        `topic_of` names the topic of a command's stream, whose pages come through the inbox. `put_aside`: 'int8' or
        'trt', which must not compute voices.
        """
        watermark = watermark_of(config)
        self._watermarks = watermark is not None
        self._report = report
        self.inbox: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        lexica = Lexica(Path(config.lexicon.folder), journal)
        self._chimes = Chimes.load(config.chimes, config.audio.loudness_lufs)
        front = Front(normalizer_of(config.text), lexica.current, self._chimes.sounds.get)
        self._phonemizer = Phonemizer(config.limits.phonemes_timeout_s)
        self._precedence = Precedence()
        self._store = PackStore(packs_folder(config))
        self._plans = plans_folder(config)
        self._render_on: RenderOn | None = None
        wanted = preferences(config, put_aside)
        budget = VoiceBudget(wanted.voices_limit_bytes)
        self.renderers = Renderers(
            SharedVoices(
                self._store,
                lambda pack: load_for_many(pack, self._precedence, self._render_on, wanted.engine),
                budget,
            ),
            Phonemizer(config.limits.phonemes_timeout_s),
            wanted,
            self.inbox.put,
            threads=min(_MOST_RENDERERS, len(os.sched_getaffinity(0))),
            capacity=config.render.max_renders,
            front=front,
            watermark=watermark,
        )
        self._ducking = ducking_of(config, self.inbox.put)
        self._player = Player(
            sink,
            self._heard,
            lead_s=config.audio.lead_ms / 1000,
            manners=manners_of(config) if isinstance(sink, AlsaSink) else None,
            level=level_of(config),
        )
        self._kept = self._make_cache(config) if config.cache.enabled else None
        self._recorder = self._make_recorder(config) if config.recorder.enabled else None
        self._engine = SynthesisThread(
            partial(make_engines, config, self._phonemizer, self._precedence, put_aside, front, watermark, budget),
            self._player,
            self._kept,
            self.inbox.put,
            self._precedence,
            self._recorder,
        )
        self._is_warm = True
        self.outputs = Outputs(config, topic_of=topic_of, post=self.inbox.put)
        hands = Hands(
            publish=publish,
            begin=self._begin,
            cut=self._cut,
            render=self._render,
            drop=self.renderers.drop,
            apply=self._apply,
            voices=partial(voice_infos, self._store),
            lexica=lexica,
            adapt=self.outputs.set_quality,
            check=self.outputs.check,
            describe=self.outputs.describe,
        )
        self.speaker = Speaker(_bounds(config), journal, sink.description, hands, self._chimes, wanted.styles)

    @property
    def pulses(self) -> Mapping[str, Callable[[float], float]]:
        """Name -> for how long a thread has not moved though it should have, at a moment of `time.monotonic`."""
        return {"the engine": self._engine.pulse.still_s, "the player": self._player.pulse.still_s}

    def slept(self) -> None:
        """Take note that the machine was suspended."""
        self._player.slept()

    def start(self) -> Voice:
        """Start the threads, the engine's first, which loads and warms the default voice; gives the voice.

        SpeechError where there is no usable default voice, DeviceError where memory is lacking.
        """
        self._phonemizer.start()
        self._engine.start()
        engines = self._engine.made.result()
        self._player.start()
        if self._ducking is not None:
            self._ducking.start()
        if self._kept is not None:
            self._kept.keeper.start()
        if self._recorder is not None:
            self._recorder.start()
        self.outputs.clear_leftovers()
        voice = engines.shelf.get()  # loaded, so that this asks nothing of a GPU
        self._render_on = beside(voice, self._plans, capacity=BUFFER_FRAMES)
        self.renderers.start()
        self._apply(self.speaker.settings)
        return voice

    def obey(self, decision: Decision) -> None:
        """Have the voice be what the governor has decided, from the next sentence on. For the main thread."""
        self._engine.be_frugal(frugal=decision.large_windows)
        if self._is_warm and not decision.engines_warm:
            self._engine.give_back()
        self._is_warm = decision.engines_warm
        self.outputs.set_complexity_cap(decision.encoder_complexity)
        self.renderers.pause(paused=decision.rendering_paused)
        self.speaker.rest(decision.rest_s)

    def vitals(self) -> Vitals:
        """Ask everybody for what telemetry tells of them. Once `start` is done."""
        synthesizer = self._engine.made.result().synthesizer
        pool = synthesizer.pool
        free, total = self._engine.gpu_memory or (None, None)
        speaking, waiting, rendering = self.speaker.load
        return Vitals(
            speaking=speaking,
            queue=waiting,
            rendering=rendering,
            pool_buffers=pool.size,
            pool_used=pool.size - pool.free,
            buffer_bytes=pool.capacity * SAMPLE_BYTES,
            gpu_free_bytes=free,
            gpu_total_bytes=total,
            voices=self._engine.voices,
            missing_phonemes=Counter(synthesizer.missing.counts) + Counter(self.renderers.missing.counts),
        )

    def verify(self, voice: str) -> None:
        """Compare a voice's files with what they were; VoiceError where they are not the same. From any thread."""
        self._store.open(voice)

    def sample(self, sample: Sample) -> None:
        """See `SynthesisThread.sample`."""
        self._engine.sample(sample)

    def _make_cache(self, config: Config) -> Kept:
        settings = config.cache
        cache = PhraseCache(
            phrases_folder(config), limit_bytes=settings.max_mb * 2**20, keep_free_bytes=settings.min_free_mb * 2**20
        )
        return Kept(cache, Keeper(cache, self.inbox.put), settings.phrases)

    def _make_recorder(self, config: Config) -> Recorder:
        return Recorder(recordings_folder(config), config.recorder.keep, config.encoder.settings, self.inbox.put)

    def stop(self) -> None:
        """Fall silent, end the threads, free everything. Raises nothing; a thread that hangs is left behind."""
        self._engine.stop()
        self._player.stop()
        self.renderers.stop()
        self._precedence.close()
        self._phonemizer.close()
        threads: list[Worker] = [self._engine, self._player, *self.renderers.threads]
        if self._ducking is not None:
            self._ducking.stop()
            threads.append(self._ducking)
        if self._kept is not None:
            self._kept.keeper.stop()
            threads.append(self._kept.keeper)
        if self._recorder is not None:
            threads.append(self._recorder)
        deadline = time.monotonic() + _STOP_S
        for thread in threads:
            if thread is self._recorder:
                self._recorder.stop()  # once the engine thread has ended, so that the last recording has an end
            if thread.is_alive():
                now = time.monotonic()  # what has hung for so long already, at a disk, is not waited for again
                thread.join(max(0.0, min(deadline - now, _STOP_S - thread.pulse.still_s(now))))
        self.renderers.free()
        self.outputs.close()

    def _begin(self, waiting: Waiting) -> Job:
        command = waiting.command
        watermarked = self._watermarks and bool(command.written)  # sounds and chimes carry none
        job = Job(command.id, start=waiting.resume_at, marks=command.marks, watermarked=watermarked)
        self._player.wake()
        if self._ducking is not None:
            self._ducking.begin()
        self._engine.say(
            Order(
                job=job,
                text=command.written,
                ssml=command.ssml is not None,
                wish=wish_of(command),
                cache=command.cache,
                seed=zlib.crc32(command.id.encode()),
                clip=waiting.clip,
                framing=self._chimes.framing(command),
            )
        )
        return job

    def _heard(self, message: Inbox) -> None:
        """Pass on what the player says; in its thread."""
        self.inbox.put(message)
        if self._ducking is not None and isinstance(message, PlaybackEnded):
            self._ducking.end()

    def _cut(self, job: Job, at_once: bool) -> None:  # noqa: FBT001  the type of a callback
        if at_once:
            job.stopped.set()
            self._engine.abandon(job)
        else:
            job.yielding.set()

    def _render(self, waiting: Waiting) -> tuple[Job, str]:
        command = waiting.command
        job = Job(command.id)
        take, location = self.outputs.begin(command, waiting.take, job.stopped)
        try:
            self.renderers.submit(
                RenderOrder(
                    job=job,
                    text=command.written,
                    ssml=command.ssml is not None,
                    wish=wish_of(command),
                    take=take,
                    live=is_live(waiting),
                    framing=self._chimes.framing(command),
                )
            )
        except DaemonError as error:
            self.inbox.put(RenderEnded(job.id, time.monotonic(), error=error))
        return job, location

    def _apply(self, settings: Settings) -> None:
        self._player.set_volume(settings.volume, muted=settings.muted)
        self._report(settings)


def _bounds(config: Config) -> Bounds:
    limits = config.limits
    return Bounds(
        queue=limits.max_queue,
        queue_bytes=limits.max_queue_bytes,
        rate_per_s=limits.max_commands_per_s,
        burst=max(1, round(_BURST_S * limits.max_commands_per_s)),
        renders=config.render.max_renders,
        speak_after_restart_s=config.journal.speak_after_restart_s,
        lost_wait_s=config.audio.lost_wait_s if config.audio.output == "alsa" else 0.0,
    )
