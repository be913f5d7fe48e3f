"""Utterances that need no loudspeaker: several at once, each in a thread of its own, behind those that are heard."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from daemon.cache import pieces
from daemon.errors import DaemonError, RenderQueueFullError, StoppedError
from daemon.framing import Framing
from daemon.inbox import Inbox, RenderEnded
from daemon.job import Job
from daemon.worker import Worker
from device.errors import DeviceError
from device.format import Samples, seconds
from device.limiter import Limiter
from device.memory import HostBufferPool
from device.realtime import give_way
from engines.casting import Wish, direct
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


@dataclass(frozen=True, slots=True)
class RenderOrder:
    """What to render, how, and who takes the samples."""

    job: Job
    text: str
    take: Callable[[Samples], None]
    """Called in a render thread with all samples in order, at 48 kHz; the memory is valid during the call only.

    A SpeechError, DeviceError, DaemonError or OSError that it raises ends the order, and stands in `RenderEnded`.
    """
    voice: str = ""
    language: str | None = None
    speaker: int | str | None = None
    rate: float = 1.0
    """2 is twice as fast as usual."""
    gain: float = 1.0
    seed: int | None = None
    """None: as the owner prefers."""
    live: bool = True
    """Whether somebody listens to it as it is made. What is not live waits while rendering is paused."""
    ssml: bool = False
    """Whether the text is SSML."""
    framing: Framing | None = None
    """Chimes around it."""
    style: str = ""
    """A name or a blend."""
    style_vector: str = ""
    """In base64, in place of it."""

    @property
    def wish(self) -> Wish:
        """What it asks of who speaks."""
        return Wish(
            self.voice, self.language, self.speaker, self.style, self.style_vector, gain=self.gain, rate=self.rate
        )


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
        self._capacity = capacity
        self._idle_s = idle_s
        self._front = front
        self._watermark = watermark
        self.missing: Final = MissingPhonemes()
        """What voices lacked of what was rendered."""
        self._orders: queue.SimpleQueue[RenderOrder | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._going = threading.Event()
        self._going.set()
        self.threads: Final[list[Worker]] = [_Renderer(f"renderer {i}", self._work, post) for i in range(threads)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    def submit(self, order: RenderOrder) -> None:
        """Queue an order. RenderQueueFullError where too many wait, StoppedError after `stop`."""
        if self._stopping.is_set():
            raise StoppedError
        if self._orders.qsize() >= self._capacity:
            raise RenderQueueFullError(self._capacity)
        self._orders.put(order)

    def pause(self, *, paused: bool) -> None:
        """Have orders that are not live wait, between two windows too, or let them go on. From any thread."""
        if paused:
            self._going.clear()
        else:
            self._going.set()

    def stop(self) -> None:
        """End the threads after the windows that they compute; orders that are not done fail. Idempotent."""
        self._stopping.set()
        self._phonemizer.close()
        with contextlib.suppress(queue.Empty):
            while True:
                order = self._orders.get_nowait()
                if order is not None:
                    self._post(RenderEnded(order.job.id, time.monotonic(), error=StoppedError()))
        for _ in self.threads:
            self._orders.put(None)

    def free(self) -> None:
        """Free the voices, once the threads have ended; what a thread that hangs uses is left to it."""
        self._voices.free_unused()

    def _work(self) -> None:
        """Render until stopped; in each thread."""
        give_way()
        synthesizer: Synthesizer | None = None
        while True:
            try:
                order = self._orders.get(timeout=None if synthesizer is None else self._idle_s)
            except queue.Empty:
                synthesizer = None
                self._voices.free_unused()
                continue
            if order is None:
                return
            if synthesizer is None:
                try:
                    synthesizer = self._synthesizer()
                except (SpeechError, DeviceError) as error:
                    self._post(RenderEnded(order.job.id, time.monotonic(), error=error))
                    continue
            self._post(self._render(order, synthesizer))

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
            while not (cut or order.live or self._going.wait(_PAUSE_POLL_S)):
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
