"""Utterances that need no loudspeaker: several at once, each in a thread of its own, behind those that are heard."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from daemon.cache import pieces
from daemon.errors import DaemonError, StoppedError
from daemon.inbox import Inbox, RenderEnded
from daemon.job import Job
from daemon.render_orders import RenderOrder, RenderQueue
from daemon.worker import Worker
from device.errors import DeviceError
from device.format import seconds
from device.limiter import Limiter
from device.memory import HostBufferPool
from device.realtime import give_way
from engines.casting import direct
from engines.errors import SpeechError
from engines.lent import Lent
from engines.missing_phonemes import MissingPhonemes
from engines.shared_voices import SharedVoices
from engines.shelf import Preferences
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.text.reading import Front
from engines.text.ssml import script_of
from engines.voice_plans import RENDER_FRAMES
from engines.watermark_files import Watermark

_BUFFERS: Final = 4
"""Of each thread. All but one, of 385 kB each, are touched only where a chime follows, into which the end is mixed."""

_BUFFERS_BYTES: Final = 2**21

IDLE_S: Final = 60.0
"""After so long without an order the engines are freed, which take 0.3 s to load again."""

_PAUSE_POLL_S: Final = 0.5
"""How long a paused order may take to notice that it is cancelled."""


class Renderers:
    """Render threads and the queue before them. `start`, `submit` and `stop` are for any one thread.

    Nothing is loaded before the first order. Each order ends in one `RenderEnded`; a job that is stopped ends its order
    within a window.
    """

    def __init__(  # noqa: PLR0913  each of its threads needs all of it
        self,
        voices: SharedVoices,
        phonemizer: Phonemizer,
        preferences: Preferences,
        post: Callable[[Inbox], None],
        *,
        threads: int,
        capacity: int,
        idle_s: float = IDLE_S,
        front: Front | None = None,
        watermark: Watermark | None = None,
    ) -> None:
        """Own voices and phonemizer: what is heard has its own, and never waits for a text of these.

        `front`, `watermark`: see `Synthesizer`.
        """
        self._voices = voices
        self._phonemizer = phonemizer
        self._preferences = preferences
        self._post = post
        self._idle_s = idle_s
        self._front = front
        self._watermark = watermark
        self.missing: Final = MissingPhonemes()
        """What voices lacked of what was rendered."""
        self._orders = RenderQueue(capacity)
        self._stopping = threading.Event()
        self.threads: Final[list[Worker]] = [_Renderer(f"renderer {i}", self._work, post) for i in range(threads)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    def submit(self, order: RenderOrder) -> None:
        """Queue an order. RenderQueueFullError where too many wait, StoppedError after `stop`."""
        self._orders.put(order)

    def drop(self, job: Job) -> bool:
        """Have an order that no thread has begun end at once; gives whether that was so. From any thread."""
        dropped = self._orders.remove(job)
        if dropped:
            self._post(RenderEnded(job.id, time.monotonic()))
        return dropped

    def pause(self, *, paused: bool) -> None:
        """Have orders that are not live wait, between two windows too, or let them go on. From any thread."""
        self._orders.pause(paused=paused)

    def stop(self) -> None:
        """End the threads after the windows that they compute; orders that are not done fail. Idempotent."""
        self._stopping.set()
        self._phonemizer.close()
        for order in self._orders.close():
            self._post(RenderEnded(order.job.id, time.monotonic(), error=StoppedError()))

    def free(self) -> None:
        """Free the voices, once the threads have ended; what a thread that hangs uses is left to it."""
        self._voices.free_unused()

    def _work(self) -> None:
        """Render until stopped; in each thread."""
        give_way()
        synthesizer: Synthesizer | None = None
        while True:
            try:
                order = self._orders.take(None if synthesizer is None else self._idle_s)
            except TimeoutError:
                synthesizer = None
                self._voices.free_unused()
                continue
            if order is None:
                return
            synthesizer = self._serve(order, synthesizer)

    def _serve(self, order: RenderOrder, synthesizer: Synthesizer | None) -> Synthesizer | None:
        """Render an order, and give what it was done with: made now where there is none; None where it cannot be."""
        try:
            synthesizer = synthesizer or self._synthesizer()
        except (SpeechError, DeviceError) as error:
            self._post(RenderEnded(order.job.id, time.monotonic(), error=error))
            return None
        self._post(self._render(order, synthesizer))
        return synthesizer

    def _synthesizer(self) -> Synthesizer:
        pool = HostBufferPool(buffers=_BUFFERS, capacity=RENDER_FRAMES, limit_bytes=_BUFFERS_BYTES)
        return Synthesizer(self._phonemizer, pool, None, self._front, self._watermark, self.missing)

    def _render(self, order: RenderOrder, synthesizer: Synthesizer) -> RenderEnded:
        tally, limiter = Tally(), Limiter()
        error: Exception | None = None
        cut = False

        def stopped() -> bool:
            nonlocal cut
            cut = order.job.stopped.is_set() or self._stopping.is_set()
            while self._orders.paused and not (cut or order.live):
                other = self._orders.take_while_paused(_PAUSE_POLL_S)
                if other is not None:  # all threads may have been at files when the pause began
                    self._serve(other, None)
                cut = order.job.stopped.is_set() or self._stopping.is_set()
            return cut

        try:
            with ExitStack() as borrowed:
                lent = Lent(self._voices, self._preferences, borrowed)
                script = script_of(order.text, ssml=order.ssml)
                script, casting = direct(script, order.wish, lent, tally.warn)
                seed = self._preferences.seed if order.seed is None else order.seed
                utterance = Utterance(script, casting.delivery, seed, casting.volume)
                chunks = synthesizer.chunks(utterance, casting, tally, stopped)
                if order.framing is not None:
                    chunks = order.framing.around(
                        chunks,
                        lambda sound: synthesizer.replay(pieces(sound, synthesizer.capacity), tally, stopped),
                        tally,
                    )
                for chunk in chunks:
                    try:
                        limiter.limit_all(chunk.samples)
                        order.take(chunk.samples)
                    finally:
                        chunk.release()
            if cut and not order.job.stopped.is_set():
                error = StoppedError()
        except (SpeechError, DeviceError, DaemonError, OSError) as failure:
            error = failure
        return RenderEnded(
            order.job.id,
            time.monotonic(),
            seconds(tally.frames),
            tally.compute_s,
            error,
            tuple(tally.warnings),
            mark_s=tally.mark_s,
        )


class _Renderer(Worker):
    """One of the threads."""

    def __init__(self, name: str, render: Callable[[], None], post: Callable[[Inbox], None]) -> None:
        super().__init__(name, post)
        self._render = render

    def work(self) -> None:
        """Render until stopped."""
        self._render()
