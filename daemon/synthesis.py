"""The engine thread: one utterance after another through the synthesizer, chunk by chunk to the player."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass

from daemon.messages import Inbox, SynthesisEnded
from daemon.player import Job, Player
from daemon.worker import Worker
from device.errors import PoolClosedError
from device.format import seconds
from engines.errors import SpeechError
from engines.shelf import VoiceShelf
from engines.synthesizer import Synthesizer, Tally, Utterance


@dataclass(frozen=True, slots=True)
class Order:
    """What to say, how, and who follows it."""

    job: Job
    text: str
    voice: str
    speaker: int | str | None
    gain: float


class SynthesisThread(Worker):
    """Owns the synthesizer and the loaded voices."""

    def __init__(
        self, synthesizer: Synthesizer, shelf: VoiceShelf, player: Player, post: Callable[[Inbox], None]
    ) -> None:
        super().__init__("engine", post)
        self._synthesizer = synthesizer
        self._shelf = shelf
        self._player = player
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
        """Synthesize what comes until stopped."""
        while (order := self._orders.get()) is not None:
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
            for chunk in self._synthesizer.chunks(utterance, voice, tally, job.stopped.is_set):
                self._player.play(job, chunk)
        except (SpeechError, PoolClosedError) as error:
            return error
        if job.stopped.is_set():
            return None  # the player gave up, and says so: not all samples exist
        self._post(
            SynthesisEnded(
                job.id, seconds(tally.frames), tally.compute_s, voice.info.name, voice.backend, voice.precision
            )
        )
        return None
