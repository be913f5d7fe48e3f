"""The voice as a service, with or without a broker: engine thread, player thread, speaker."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from daemon.cache import Keeper, PhraseCache
from daemon.config import Config, packs_folder, phrases_folder
from daemon.engine_room import make_engines, preferences
from daemon.messages import Event, Inbox
from daemon.player import Job, Player
from daemon.queue import Waiting
from daemon.rendering import Renderers
from daemon.speaker import Speaker
from daemon.synthesis import Kept, Order, SynthesisThread
from daemon.worker import Worker
from device.alsa import AlsaSink
from device.null import NullSink
from device.sink import Sink
from device.wav import WavSink
from engines.pack import PackStore
from engines.precedence import Precedence
from engines.shared_voices import ConcurrentVoice, SharedVoices
from engines.text.phonemes import Phonemizer
from engines.vits import VitsVoice

_STOP_S: Final = 15.0
"""For all threads to end: the engine finishes its window, some 0.2 s here, on a slow board perhaps two."""

_MOST_RENDERERS: Final = 4
"""Threads, one per core up to here. The first takes 115 MB, engines included, each further one 55 MB."""

_MOST_RENDERS: Final = 100
"""Orders that wait: what is longer than this is nobody's plan."""


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

    def __init__(self, config: Config, sink: Sink, publish: Callable[[Event], None]) -> None:
        self.inbox: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        self._phonemizer = Phonemizer(config.limits.phonemes_timeout_s)
        self._precedence = Precedence()
        self.renderers = Renderers(
            SharedVoices(PackStore(packs_folder(config)), lambda pack: ConcurrentVoice(pack, self._precedence)),
            Phonemizer(config.limits.phonemes_timeout_s),
            preferences(config),
            self.inbox.put,
            threads=min(_MOST_RENDERERS, len(os.sched_getaffinity(0))),
            capacity=_MOST_RENDERS,
        )
        self._player = Player(sink, self.inbox.put)
        self._kept = self._make_cache(config) if config.cache.enabled else None
        self._engine = SynthesisThread(
            partial(make_engines, config, self._phonemizer, self._precedence),
            self._player,
            self._kept,
            self.inbox.put,
            self._precedence,
        )
        self.speaker = Speaker(
            queue_capacity=config.limits.max_queue, output=sink.description, publish=publish, begin=self._begin
        )

    def start(self) -> VitsVoice:
        """Start the threads, the engine's first, which loads and warms the default voice; gives the voice.

        SpeechError where there is no usable default voice, DeviceError where memory is lacking.
        """
        self._phonemizer.start()
        self._engine.start()
        engines = self._engine.made.result()
        self._player.start()
        if self._kept is not None:
            self._kept.keeper.start()
        self.renderers.start()
        return engines.shelf.get()  # loaded, so that this asks nothing of a GPU

    def _make_cache(self, config: Config) -> Kept:
        settings = config.cache
        cache = PhraseCache(
            phrases_folder(config), limit_bytes=settings.max_mb * 2**20, keep_free_bytes=settings.min_free_mb * 2**20
        )
        return Kept(cache, Keeper(cache, self.inbox.put), settings.phrases)

    def stop(self) -> None:
        """Fall silent, end the threads, free everything. Raises nothing; a thread that hangs is left behind."""
        self._engine.stop()
        self._player.stop()
        self.renderers.stop()
        self._precedence.close()
        self._phonemizer.close()
        threads: list[Worker] = [self._engine, self._player, *self.renderers.threads]
        if self._kept is not None:
            self._kept.keeper.stop()
            threads.append(self._kept.keeper)
        deadline = time.monotonic() + _STOP_S
        for thread in threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        self.renderers.free()

    def _begin(self, waiting: Waiting) -> None:
        command = waiting.command
        self._engine.say(
            Order(
                job=Job(command.id),
                text=command.text,
                voice=command.voice,
                speaker=command.speaker,
                gain=command.volume,
                cache=command.cache,
            )
        )
