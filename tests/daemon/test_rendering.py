"""Render threads with real engines, a real phonemizer and plain consumers."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from simulators import tiny_voice
from simulators.random_watermark import random_watermark, random_weights

from daemon.errors import RenderQueueFullError, StoppedError
from daemon.framing import Framing
from daemon.inbox import Inbox, RenderEnded, ThreadDied
from daemon.job import Job
from daemon.render_orders import RenderOrder
from daemon.rendering import Renderers
from device.bell import bell
from device.errors import SinkError
from device.format import PERIOD, Samples
from device.memory import HostBufferPool
from device.realtime import GIVEN_WAY
from engines import importer, piper
from engines.casting import Wish
from engines.errors import EngineError, PhonemizerClosedError, PhonemizerDiedError, SpeakerError, VoiceError
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.runtime.ort import OrtEngine
from engines.shared_voices import ConcurrentVoice, SharedVoices
from engines.shelf import Preferences
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text import reading
from engines.text.phonemes import Phonemizer
from engines.vits import VitsVoice
from engines.watermark_files import Watermark
from engines.watermark_graph import marker_graph

TIMEOUT_S = 60
GAIN = 0.25
"""At which no peak has to be limited."""

WISHES = {field.name for field in dataclasses.fields(Wish)}

TEXT = "the quick brown fox jumps over the lazy dog"
DEADLY = "s'" * 72


class Consumer:
    """Takes samples, and can be made to wait or to fail."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.heard: list[Samples] = []
        self.threads: set[str] = set()
        self.niceness: set[int] = set()
        self.taking = threading.Event()
        self.proceed = threading.Event()
        self.proceed.set()
        self._error = error

    def __call__(self, samples: Samples) -> None:
        self.threads.add(threading.current_thread().name)
        self.niceness.add(os.getpriority(os.PRIO_PROCESS, 0))
        self.taking.set()
        assert self.proceed.wait(TIMEOUT_S)
        if self._error is not None:
            raise self._error
        self.heard.append(samples.copy())

    @property
    def sound(self) -> Samples:
        return np.concatenate(self.heard)


class Rig:
    def __init__(
        self,
        pack: Pack,
        *,
        threads: int = 2,
        capacity: int = 10,
        idle_s: float = TIMEOUT_S,
        watermark: Watermark | None = None,
    ) -> None:
        self.watermark = watermark
        self.pack = pack
        self.posted: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        self.loaded = threading.Semaphore(0)
        self.freed = threading.Semaphore(0)
        self.renderers = Renderers(
            SharedVoices(PackStore(pack.folder.parent), self._load),
            Phonemizer(TIMEOUT_S),
            Preferences(seed=3),
            self.posted.put,
            threads=threads,
            capacity=capacity,
            idle_s=idle_s,
            watermark=watermark,
        )
        self.renderers.start()

    def _load(self, pack: Pack) -> ConcurrentVoice:
        rig = self

        class Watched(ConcurrentVoice):
            def close(self) -> None:
                super().close()
                rig.freed.release()

        self.loaded.release()
        return Watched(pack, Precedence())

    def submit(self, take: Callable[[Samples], None], text: str = TEXT, **options: object) -> RenderOrder:
        """Order a text, at a volume at which no peak has to be limited where none is given."""
        job = Job(str(options.pop("id", "x")))
        asked = {"gain": GAIN} | {name: options.pop(name) for name in WISHES & options.keys()}
        order = RenderOrder(job, text, take, wish=Wish(**asked), **options)  # type: ignore[arg-type]
        self.renderers.submit(order)
        return order

    def ended(self) -> RenderEnded:
        message = self.posted.get(timeout=TIMEOUT_S)
        assert isinstance(message, RenderEnded), message
        return message

    def expected(self, text: str = TEXT, seed: int = 3, **options: object) -> Samples:
        """Give what the voice says alone."""
        pool = HostBufferPool(buffers=1, capacity=192_000, limit_bytes=2**20)
        options.setdefault("gain", GAIN)
        with (
            contextlib.closing(Phonemizer(TIMEOUT_S)) as phonemizer,
            contextlib.closing(VitsVoice.load(self.pack, threads=1)) as voice,
        ):
            delivery = Preferences().delivery(voice.info, **options)  # type: ignore[arg-type]
            parts = []
            synthesizer = Synthesizer(phonemizer, pool, watermark=self.watermark)
            for chunk in synthesizer.chunks(Utterance(text, delivery, seed), voice, Tally()):
                parts.append(chunk.samples.copy())
                chunk.release()
        return np.concatenate(parts)

    def close(self) -> None:
        self.renderers.stop()
        for thread in self.renderers.threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
        self.renderers.free()


Make = Callable[..., Rig]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    folder = tmp_path_factory.mktemp("tiny")
    return importer.import_voice(piper.find(str(tiny_voice.write(folder))), PackStore(folder / "packs"))


@pytest.fixture
def make(pack: Pack) -> Iterator[Make]:
    with contextlib.ExitStack() as stack:

        def rig(**options: object) -> Rig:
            return stack.enter_context(contextlib.closing(Rig(pack, **options)))  # type: ignore[arg-type]

        yield rig


def test_a_watermark_that_breaks_fails_the_command_and_no_thread(make: Make) -> None:
    graph = OrtEngine(marker_graph(random_weights()), threads=1)
    graph.close()
    rig = make(watermark=Watermark(graph, "broken"), threads=1)
    for name in ("a", "b"):
        rig.submit(Consumer(), id=name)
        ended = rig.ended()
        assert (ended.id, type(ended.error)) == (name, EngineError)


def test_several_at_once_are_each_marked_as_if_alone(make: Make) -> None:
    rig = make(watermark=random_watermark())
    consumers = [Consumer() for _ in range(3)]
    for consumer in consumers:
        rig.submit(consumer)
    assert all(rig.ended().mark_s for _ in consumers)
    expected = rig.expected()
    for consumer in consumers:
        np.testing.assert_allclose(consumer.sound, expected, atol=1e-4)


def test_a_rendered_command_has_its_chimes(make: Make) -> None:
    rig, consumer = make(), Consumer()
    framing = Framing.of(bell("attention"), bell("done"), overlap_ms=60)
    rig.submit(consumer, framing=framing)
    ended = rig.ended()
    expected = rig.expected()
    assert ended.error is None
    assert consumer.sound.size == framing.extra + expected.size
    np.testing.assert_array_equal(consumer.sound[: framing.lead], framing.head)
    alone = expected[framing.tail.size : -framing.overlap]
    np.testing.assert_allclose(consumer.sound[framing.lead + framing.tail.size :][: alone.size], alone, atol=1e-4)


def test_no_peak_of_a_loud_one_is_above_the_ceiling(make: Make) -> None:
    rig, consumer = make(), Consumer()
    rig.submit(consumer, gain=4.0)
    assert rig.ended().error is None
    assert np.abs(rig.expected(gain=4.0)).max() > 2, "it would not be a test else"
    assert 0.8 < np.abs(consumer.sound).max() <= 10 ** (-1 / 20)


def test_an_order_gives_all_samples_in_order(make: Make) -> None:
    rig, consumer = make(), Consumer()
    rig.submit(consumer, gain=0.4, rate=1.25, id="a")
    ended = rig.ended()
    assert (ended.id, ended.error) == ("a", None)
    expected = rig.expected(gain=0.4, rate=1.25)
    np.testing.assert_allclose(consumer.sound, expected, rtol=0, atol=1e-4)
    assert ended.audio_s == expected.size / 48_000
    assert ended.compute_s > 0
    assert expected.size < rig.expected().size, "it is faster"


def test_the_same_seed_gives_the_same_samples_in_any_thread(make: Make) -> None:
    rig = make()
    consumers = [Consumer() for _ in range(3)]
    for consumer, seed in zip(consumers, (7, 7, 8), strict=True):
        rig.submit(consumer, seed=seed)
    assert all(rig.ended().error is None for _ in consumers)
    first, second, other = (consumer.sound for consumer in consumers)
    np.testing.assert_array_equal(first, second)
    assert first.size != other.size or np.abs(first - other).max() > 1e-3


def test_several_are_rendered_at_once_behind_what_is_heard(make: Make) -> None:
    rig = make()
    slow = [Consumer(), Consumer()]
    for consumer in slow:
        consumer.proceed.clear()
        rig.submit(consumer)
    assert all(consumer.taking.wait(TIMEOUT_S) for consumer in slow), "both at the same time"
    for consumer in slow:
        consumer.proceed.set()
    assert all(rig.ended().error is None for _ in slow)
    assert slow[0].threads != slow[1].threads
    here = os.getpriority(os.PRIO_PROCESS, 0)
    assert slow[0].niceness == {min(19, here + GIVEN_WAY)}


def test_a_stopped_job_ends_within_a_window(make: Make) -> None:
    rig, consumer = make(), Consumer()
    consumer.proceed.clear()
    order = rig.submit(consumer, f"{TEXT}. " * 20)
    assert consumer.taking.wait(TIMEOUT_S)
    order.job.stopped.set()
    consumer.proceed.set()
    ended = rig.ended()
    assert ended.error is None
    assert len(consumer.heard) == 1
    assert ended.audio_s == consumer.sound.size / 48_000


def test_what_was_stopped_while_it_waited_takes_nothing(make: Make) -> None:
    rig, first, second = make(threads=1), Consumer(), Consumer()
    first.proceed.clear()
    rig.submit(first, id="first")
    assert first.taking.wait(TIMEOUT_S)
    rig.submit(second, id="second").job.stopped.set()
    first.proceed.set()
    assert [rig.ended().id, rig.ended().id] == ["first", "second"]
    assert not second.heard


@pytest.mark.parametrize("error", [SinkError("x.wav", "is full"), OSError(28, "No space left on device")])
def test_a_consumer_that_fails_ends_its_own_order_only(error: Exception, make: Make) -> None:
    rig, consumer = make(threads=1), Consumer()
    rig.submit(Consumer(error))
    rig.submit(consumer)
    assert rig.ended().error is error
    assert rig.ended().error is None
    np.testing.assert_allclose(consumer.sound, rig.expected(), rtol=0, atol=1e-4)


def test_a_consumer_that_breaks_is_heard_of(make: Make) -> None:
    rig = make(threads=1)
    rig.submit(Consumer(ZeroDivisionError()))
    died = rig.posted.get(timeout=TIMEOUT_S)
    assert isinstance(died, ThreadDied)
    assert isinstance(died.error, ZeroDivisionError)


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"voice": "nobody"}, VoiceError), ({"speaker": 9}, SpeakerError), ({"text": DEADLY}, PhonemizerDiedError)],
)
def test_an_order_that_cannot_be_done_harms_no_other(
    options: dict[str, object], kind: type[Exception], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "without_long_words", str)  # it keeps espeak-ng from what it cannot bear
    rig, consumer = make(), Consumer()
    rig.submit(Consumer(), id="bad", **options)  # type: ignore[arg-type]
    rig.submit(consumer, id="good")
    ended = {message.id: message.error for message in (rig.ended(), rig.ended())}
    assert isinstance(ended["bad"], kind)
    # Both may have been with the phonemizer, which the deadly text ended.
    assert ended["good"] is None or isinstance(ended["good"], PhonemizerDiedError)
    rig.submit(consumer)
    assert rig.ended().error is None


def test_nothing_to_pronounce_is_done_at_once(make: Make) -> None:
    rig, consumer = make(), Consumer()
    rig.submit(consumer, "...")
    ended = rig.ended()
    assert (ended.error, ended.audio_s) == (None, 0.0)
    assert not consumer.heard


def test_more_than_may_wait_is_refused(make: Make) -> None:
    rig, consumer = make(threads=1, capacity=2), Consumer()
    consumer.proceed.clear()
    rig.submit(consumer)
    assert consumer.taking.wait(TIMEOUT_S)
    rig.submit(consumer)
    rig.submit(consumer)
    with pytest.raises(RenderQueueFullError, match="2 utterances wait"):
        rig.submit(consumer)
    consumer.proceed.set()
    assert all(rig.ended().error is None for _ in range(3))


def test_each_order_ends_once_when_the_service_stops(make: Make) -> None:
    rig, consumer = make(threads=1), Consumer()
    consumer.proceed.clear()
    rig.submit(consumer, f"{TEXT}. " * 5, id="computing")
    assert consumer.taking.wait(TIMEOUT_S)
    rig.submit(consumer, id="waiting")
    rig.renderers.stop()
    rig.renderers.stop()
    consumer.proceed.set()
    ended = {message.id: message.error for message in (rig.ended(), rig.ended())}
    assert set(ended) == {"computing", "waiting"}
    assert all(error is not None for error in ended.values())
    assert isinstance(ended["waiting"], StoppedError)
    for thread in rig.renderers.threads:
        thread.join(TIMEOUT_S)
    assert rig.posted.empty()
    with pytest.raises(StoppedError):
        rig.submit(consumer)


def test_voices_are_loaded_by_the_first_order_and_freed_when_none_comes(make: Make) -> None:
    rig, consumer = make(threads=1, idle_s=0.05), Consumer()
    assert not rig.loaded.acquire(timeout=0.2)
    rig.submit(consumer)
    assert rig.ended().error is None
    assert rig.loaded.acquire(timeout=0)
    assert rig.freed.acquire(timeout=TIMEOUT_S)
    rig.submit(consumer)
    assert rig.ended().error is None
    assert rig.loaded.acquire(timeout=0)


def test_chunks_are_whole_periods_but_the_last(make: Make) -> None:
    rig, consumer = make(), Consumer()
    rig.submit(consumer, f"{TEXT}. {TEXT.capitalize()}.")
    assert rig.ended().error is None
    assert len(consumer.heard) >= 2
    assert all(part.size % PERIOD == 0 for part in consumer.heard[:-1])


def test_while_paused_files_wait_and_what_is_listened_to_does_not(make: Make) -> None:
    rig, file, stream = make(), Consumer(), Consumer()
    rig.renderers.pause(paused=True)
    rig.submit(file, id="file", live=False)
    rig.submit(stream, id="stream")
    assert rig.ended().id == "stream"
    assert not file.heard
    rig.renderers.pause(paused=False)
    assert (ended := rig.ended()).id == "file"
    assert ended.error is None
    np.testing.assert_array_equal(file.sound, stream.sound)


def test_what_is_listened_to_does_not_wait_for_files_that_wait_in_their_middle(make: Make) -> None:
    rig, file, stream = make(threads=1), Consumer(), Consumer()
    file.proceed.clear()
    text = f"{TEXT}. {TEXT.capitalize()}."
    rig.submit(file, text, id="file", live=False)
    assert file.taking.wait(TIMEOUT_S)
    rig.renderers.pause(paused=True)
    file.proceed.set()
    rig.submit(stream, id="stream")
    assert rig.ended().id == "stream"
    rig.renderers.pause(paused=False)
    assert rig.ended().id == "file"
    np.testing.assert_allclose(file.sound, rig.expected(text), rtol=0, atol=1e-4)
    np.testing.assert_allclose(stream.sound, rig.expected(), rtol=0, atol=1e-4)


def test_what_waits_is_taken_back_at_once_whatever_the_threads_are_at(make: Make) -> None:
    rig, first, second = make(threads=1), Consumer(), Consumer()
    first.proceed.clear()
    begun = rig.submit(first, id="first")
    assert first.taking.wait(TIMEOUT_S)
    assert rig.renderers.drop(rig.submit(second, id="second").job)
    assert not rig.renderers.drop(begun.job), "it has begun"
    assert rig.ended().id == "second"
    first.proceed.set()
    assert rig.ended().id == "first"
    assert rig.posted.empty()
    assert not second.heard


def test_what_is_cancelled_or_stopped_does_not_wait_for_the_end_of_a_pause(make: Make) -> None:
    rig = make(threads=1)
    rig.renderers.pause(paused=True)
    cancelled, stopped = Consumer(), Consumer()
    order = rig.submit(cancelled, id="cancelled", live=False)
    assert rig.renderers.drop(order.job)
    assert not rig.renderers.drop(order.job)
    assert (ended := rig.ended()).id == "cancelled"
    assert ended.error is None
    rig.submit(stopped, id="stopped", live=False)
    rig.renderers.stop()
    # Both are told as 'stopped': it depends on whether it was already being read.
    assert isinstance(rig.ended().error, StoppedError | PhonemizerClosedError)
    assert not cancelled.heard + stopped.heard
