"""The engine thread with real engines: what it hands on, what it keeps, and that no sample is copied on the way."""

from __future__ import annotations

import contextlib
import queue
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulators import tiny_voice
from simulators.random_watermark import random_watermark

from daemon.cache import Keeper, PhraseCache
from daemon.framing import Framing
from daemon.inbox import Inbox, PlaybackEnded, RealtimeAnswer, SynthesisEnded
from daemon.job import Job
from daemon.phrases import Kept
from daemon.player import Player
from daemon.synthesis import Engines, Order, SynthesisThread
from device.bell import bell
from device.format import PERIOD, RATE, Samples
from device.memory import HostBufferPool
from device.null import NullSink
from device.opus import OpusEncoder
from device.opus_sink import OpusSink
from engines import calibration, importer, piper
from engines.backends import Wanted
from engines.casting import Wish
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.runtime.engine import Feeds
from engines.runtime.ort import OrtEngine
from engines.shelf import Preferences, VoiceShelf
from engines.synthesizer import Synthesizer
from engines.text import reading
from engines.text.phonemes import Phonemizer
from engines.vits import VitsVoice
from engines.watermark_files import Watermark
from engines.windows import Speed

TIMEOUT_S = 60
TEXT = "the quick brown fox jumps over the lazy dog and then does it again"

QUIET = Wish(gain=0.25)
"""A volume at which no peak is limited, which depends on the sizes of the pieces."""


class RecordingSink(NullSink):
    """Takes all at once; remembers what, and from where."""

    def __init__(self) -> None:
        super().__init__(paced=False)
        self.heard: list[Samples] = []
        self.addresses: list[int] = []
        self.recording = True

    def write(self, samples: Samples) -> None:
        super().write(samples)
        if self.recording:
            self.heard.append(samples.copy())
            self.addresses.append(samples.ctypes.data)


class Voice:
    """Engine thread, player and cache over a tiny voice."""

    def __init__(
        self,
        folder: Path,
        store: PackStore,
        phrases: tuple[str, ...] = (),
        watermark: Watermark | None = None,
        *,
        capacity: int,
    ) -> None:
        self.posted: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        self.sink = RecordingSink()
        self.precedence = Precedence()
        self.pool = HostBufferPool(buffers=6, capacity=capacity, limit_bytes=2**24)
        self.phonemizer = Phonemizer(TIMEOUT_S)
        self.cache = PhraseCache(folder / "phrases", limit_bytes=2**24, keep_free_bytes=0, patience_s=TIMEOUT_S)
        self.keeper = Keeper(self.cache, self.posted.put)
        self.player = Player(self.sink, self.posted.put)
        shelf = VoiceShelf(store, Preferences(engine=Wanted(threads=1, learns=False)))  # its speed is made up
        self.engine = SynthesisThread(
            lambda: Engines(
                Synthesizer(self.phonemizer, self.pool, self.precedence, watermark=watermark), shelf, shelf.close
            ),
            self.player,
            Kept(self.cache, self.keeper, phrases),
            self.posted.put,
            self.precedence,
        )
        for thread in (self.player, self.keeper, self.engine):
            thread.start()

    def say(self, text: str = TEXT, *, cache: bool = True, gain: float = 0.25) -> tuple[SynthesisEnded, Samples]:
        """At a volume at which no peak is limited, which depends on the sizes of the pieces."""
        return self.order(Order(Job("x"), text, cache=cache, wish=Wish(gain=gain)))

    def order(self, order: Order) -> tuple[SynthesisEnded, Samples]:
        self.sink.heard.clear()
        self.sink.addresses.clear()
        self.engine.say(order)
        done = None
        while True:
            message = self.posted.get(timeout=TIMEOUT_S)
            if isinstance(message, SynthesisEnded):
                done = message
            elif isinstance(message, PlaybackEnded):
                assert message.error is None
                assert done is not None
                return done, np.concatenate(self.sink.heard) if self.sink.heard else np.zeros(0, np.float32)
            else:
                assert isinstance(message, RealtimeAnswer) or type(message).__name__ in {
                    "AudioState",
                    "PlaybackStarted",
                }

    def until_kept(self, count: int) -> None:
        for _ in range(TIMEOUT_S * 50):
            if len(self.cache) >= count:
                return
            with contextlib.suppress(queue.Empty):
                self.posted.get(timeout=0.02)
        raise AssertionError(f"{len(self.cache)} phrases are kept")

    def close(self) -> None:
        for thread in (self.engine, self.keeper, self.player):
            thread.stop()
            thread.join(TIMEOUT_S)
        self.phonemizer.close()
        assert self.pool.free == self.pool.size


Make = Callable[..., Voice]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PackStore:
    """A tiny voice that is as quick on each machine: what is measured here would decide on its windows."""
    folder = tmp_path_factory.mktemp("tiny")
    store = PackStore(folder / "packs")
    pack = importer.import_voice(piper.find(str(tiny_voice.write(folder))), store)
    calibration.keep_speed(pack, f"{calibration.processor(1)}, onnxruntime-cpu fp32", Speed(0.005, 0.0016))
    return store


@pytest.fixture
def make(tmp_path: Path, store: PackStore) -> Iterator[Make]:
    with contextlib.ExitStack() as stack:

        def run(*phrases: str, watermark: Watermark | None = None, capacity: int = 20 * PERIOD) -> Voice:
            voice = Voice(tmp_path, store, phrases, watermark, capacity=capacity)
            return stack.enter_context(contextlib.closing(voice))

        yield run


def test_the_second_saying_is_kept_and_the_third_is_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = make()
    first, _ = voice.say()
    second, sound = voice.say()
    voice.until_kept(1)
    written = periods_written(monkeypatch)
    third, again = voice.say()
    assert [first.cached, second.cached, third.cached] == [False, False, True]
    np.testing.assert_array_equal(again[PERIOD:], sound[PERIOD:])  # after the ramp that what begins with a jump gets
    assert third.audio_s == second.audio_s
    assert not written, "nothing is computed"


def test_a_marked_phrase_is_kept_with_its_mark(make: Make) -> None:
    voice = make(watermark=random_watermark())
    voice.say()
    second, sound = voice.say()
    voice.until_kept(1)
    third, again = voice.say()
    assert third.cached
    np.testing.assert_array_equal(again[PERIOD:], sound[PERIOD:])
    assert second.mark_s
    assert third.mark_s == 0


def test_another_volume_is_another_recording(make: Make) -> None:
    voice = make()
    for _ in range(2):
        voice.say(gain=0.3)
    voice.until_kept(1)
    assert not voice.say(gain=0.2)[0].cached
    assert voice.say(gain=0.3)[0].cached


def test_a_command_may_do_without(make: Make) -> None:
    voice = make()
    for _ in range(2):
        voice.say()
    voice.until_kept(1)
    assert not voice.say(cache=False)[0].cached
    for _ in range(3):
        voice.say("something else", cache=False)
    assert len(voice.cache) == 1


@pytest.mark.parametrize("start", [0, 1000])
def test_a_sound_from_outside_is_played_as_it_is(make: Make, start: int) -> None:
    voice = make()
    frames = 50 * PERIOD + 7  # more than all buffers of the pool hold
    clip = (0.5 * np.sin(np.linspace(0, 20 * np.pi, frames))).astype(np.float32)
    done, heard = voice.order(Order(Job("x", start=start), "", cache=False, clip=clip))
    # What begins in the middle is faded in.
    np.testing.assert_array_equal(heard[PERIOD:], clip[start:][PERIOD:])
    assert heard.size == clip.size - start
    assert done.audio_s == pytest.approx(clip.size / RATE)
    assert len(voice.cache) == 0


@pytest.mark.parametrize("times", [1, 3])
def test_chimes_are_around_the_speech_whether_it_is_kept_or_not(make: Make, times: int) -> None:
    voice = make()
    silence = np.zeros(PERIOD, np.float32)  # speech that begins with a jump gets a ramp where nothing is before it
    quiet = Framing.of(silence, silence, overlap_ms=0)
    _, alone = voice.order(Order(Job("y"), TEXT, wish=QUIET, cache=False, framing=quiet, seed=5))
    speech = alone[PERIOD:-PERIOD]
    framing = Framing.of(bell("attention"), bell("done"), overlap_ms=60)
    for saying in range(times):
        if saying == 2:
            voice.until_kept(1)
        job = Job("x")
        done, heard = voice.order(Order(job, TEXT, wish=QUIET, cache=times > 1, framing=framing, seed=5))
    assert done.cached is (times > 1)
    assert heard.size == framing.extra + speech.size
    assert done.audio_s == pytest.approx(heard.size / RATE)
    assert job.sentences[0] == framing.lead
    middle = slice(framing.lead + framing.tail.size, framing.lead + speech.size - framing.overlap)
    np.testing.assert_allclose(heard[middle], speech[framing.tail.size : -framing.overlap], atol=1e-4)
    np.testing.assert_array_equal(heard[: framing.lead], framing.head)
    np.testing.assert_array_equal(heard[framing.lead + speech.size :], bell("done")[framing.overlap :])


def test_what_goes_on_has_no_second_chime(make: Make) -> None:
    voice = make()
    framing = Framing.of(bell("attention"), None, overlap_ms=0)
    whole = Job("x")
    _, heard = voice.order(Order(whole, TEXT, wish=QUIET, cache=False, framing=framing, seed=5))
    again = Job("x", start=whole.words[2])
    _, rest = voice.order(Order(again, TEXT, wish=QUIET, cache=False, framing=framing, seed=5))
    assert again.words == whole.words
    np.testing.assert_allclose(rest[PERIOD:], heard[whole.words[2] :][PERIOD:], atol=1e-4)


@pytest.mark.parametrize("marked", [False, True])
def test_what_goes_on_in_its_closing_chime_goes_on_just_there(make: Make, *, marked: bool) -> None:
    voice = make(watermark=random_watermark() if marked else None)
    framing = Framing.of(None, bell("done"), overlap_ms=60)
    for _ in range(3):  # the third one is kept
        whole = Job("x")
        _, heard = voice.order(Order(whole, TEXT, wish=QUIET, cache=True, framing=framing, seed=5))
    (end,) = whole.last_word_end
    assert heard.size == end + framing.after.size - framing.overlap
    for cache in (False, True):
        for start in (end - framing.overlap // 2, end + RATE // 10, heard.size):
            assert whole.resume_at(start) == (start if start >= end else whole.words[-1])
            again = Job("x", start=start)
            done, rest = voice.order(Order(again, TEXT, wish=QUIET, cache=cache, framing=framing, seed=5))
            np.testing.assert_allclose(rest[PERIOD:], heard[start:][PERIOD:], atol=1e-4)
            assert done.audio_s == pytest.approx(heard.size / RATE)


def test_pinned_phrases_are_there_before_they_are_said(make: Make) -> None:
    voice = make("welcome to the museum", "the museum closes in ten minutes")
    voice.until_kept(2)
    assert voice.say("welcome to the museum", gain=1.0)[0].cached


def test_a_pinned_phrase_is_prepared_by_the_voice_of_its_language(tmp_path: Path) -> None:
    store = PackStore(tmp_path / "packs")
    for name, language in {"a": "en-us", "b": "de"}.items():
        importer.import_voice(piper.find(str(tiny_voice.write(tmp_path, name, language=language))), store)
    text = "Der Akku ist fast leer."
    with contextlib.closing(Voice(tmp_path, store, (text,), capacity=20 * PERIOD)) as voice:
        voice.until_kept(1)
        done = voice.say(text, gain=1.0)[0]
    assert (done.voice, done.cached) == ("b", True)


def test_a_pinned_phrase_that_kills_the_phonemizer_costs_itself_only(
    make: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "without_long_words", str)  # it keeps espeak-ng from what it cannot bear
    voice = make("s'" * 72, "welcome to the museum")
    voice.until_kept(1)
    assert any("cannot be prepared" in record.getMessage() for record in caplog.records)
    assert voice.engine.is_alive()
    assert voice.say("welcome to the museum", gain=1.0)[0].cached


def periods_written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give a list that fills with the address of each period that a vocoder writes, 128-byte aligned buffers first."""
    addresses: list[int] = []
    run_into = OrtEngine.run_into

    def recording(engine: OrtEngine, feeds: Feeds, output: Samples) -> None:
        start = output.ctypes.data
        assert start % 128 == 0
        addresses.extend(range(start, start + output.nbytes, PERIOD * 4))
        run_into(engine, feeds, output)

    monkeypatch.setattr(OrtEngine, "run_into", recording)
    return addresses


def test_what_the_engine_writes_is_what_the_sink_reads(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """No copy in between: each period that reaches the sink lies where the vocoder's output was bound to."""
    voice = make()
    voice.say(cache=False)  # loads the voice, and may measure it
    written = periods_written(monkeypatch)
    voice.say(cache=False)
    heard = [address for address in voice.sink.addresses if address in set(written)]
    assert len(voice.sink.addresses) - len(heard) <= 2, "a ramp at each end"
    assert len(heard) > 20
    # The last window of a sentence may hold a little more than is played of it.
    assert heard == written[: len(heard)]
    assert len(written) - len(heard) <= 1


def test_what_the_engine_writes_is_what_opus_reads(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    voice = make()
    text = f"{TEXT}. {TEXT.capitalize()}."  # across the end of a sentence too
    voice.say(text, cache=False)
    encoded: list[int] = []
    encode = OpusEncoder.encode

    def recording(encoder: OpusEncoder, samples: Samples) -> memoryview:
        encoded.append(samples.ctypes.data)
        return encode(encoder, samples)

    monkeypatch.setattr(OpusEncoder, "encode", recording)
    sink = OpusSink(tmp_path / "said.opus")
    sink.open()
    monkeypatch.setattr(voice.sink, "write", sink.write)
    written = periods_written(monkeypatch)
    silence = Framing.of(np.zeros(PERIOD, np.float32), None, overlap_ms=0)  # else this voice would begin with a jump
    voice.order(Order(Job("x"), text, wish=QUIET, cache=False, framing=silence))
    whole = len(encoded)
    sink.close()  # what does not fill a packet comes through a buffer of its own
    assert whole > 40
    assert len(set(encoded[:whole]) - set(written)) <= 2, "the silence, and the ramp behind"
    assert len(written) - whole <= 2, "at most a period at each sentence's end is not played"


def test_a_steady_chunk_allocates_no_sample_memory(make: Make) -> None:
    """Once warm, a whole utterance of 10 s (2 MB) leaves no block of a period's size (3.8 kB) behind in Python."""
    voice = make()
    voice.sink.recording = False
    text = TEXT * 4
    for _ in range(2):
        done, _ = voice.say(text, cache=False)
    assert done.audio_s > 5
    taken: list[int] = []
    before = 0
    acquire = voice.pool.acquire

    def watching(timeout_s: float):  # noqa: ANN202
        # From one chunk to the next: what numpy took for samples, for however short a time, would be in the peak.
        nonlocal before
        taken.append(tracemalloc.get_traced_memory()[1] - before)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        return acquire(timeout_s)

    voice.pool.acquire = watching
    tracemalloc.start()
    try:
        voice.say(text, cache=False)
        base = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    chunks = taken[3:]
    assert len(chunks) > 5
    # In the middle: where a sentence's latents come or go, the one chunk in between sees 58 kB.
    assert np.median(chunks) < PERIOD * 4, "not even a period, where a chunk's samples take up to 77 kB"
    assert base < 2**20


def test_what_is_rendered_waits_while_speech_is_computed_and_not_while_it_is_played(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    voice = make()
    voice.say(cache=False)
    turn, computing, played = threading.Event(), threading.Event(), threading.Event()
    run_into, write = OrtEngine.run_into, voice.sink.write

    def watched(engine: OrtEngine, feeds: Feeds, output: Samples) -> None:
        if not computing.is_set():
            computing.set()
            assert not turn.wait(0.1), "nobody patient goes on meanwhile"
        run_into(engine, feeds, output)

    def held(samples: Samples) -> None:
        assert played.wait(TIMEOUT_S)
        write(samples)

    def patient() -> None:
        assert computing.wait(TIMEOUT_S)
        voice.precedence.wait_turn()
        turn.set()

    monkeypatch.setattr(OrtEngine, "run_into", watched)
    monkeypatch.setattr(voice.sink, "write", held)
    renderer = threading.Thread(target=patient, daemon=True)
    renderer.start()
    speaking = threading.Thread(target=voice.say, args=(f"{TEXT}. " * 5,), kwargs={"cache": False}, daemon=True)
    speaking.start()
    assert turn.wait(TIMEOUT_S), "no buffer is free, as nothing is played, so the engine thread only waits"
    played.set()
    speaking.join(TIMEOUT_S)
    assert not speaking.is_alive()


def test_a_frugal_voice_takes_fewer_windows_and_sounds_the_same(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = make(capacity=200 * PERIOD)
    windows: list[bool] = []
    run_into = OrtEngine.run_into

    def counted(engine: OrtEngine, feeds: Feeds, output: Samples) -> None:
        windows.append(True)
        run_into(engine, feeds, output)

    monkeypatch.setattr(OrtEngine, "run_into", counted)
    counts, sounds = [], []
    for frugal in (False, True):
        voice.engine.be_frugal(frugal=frugal)
        windows.clear()
        order = Order(Job("x"), TEXT, wish=QUIET, cache=False, seed=5)
        sounds.append(voice.order(order)[1])
        counts.append(len(windows))
    assert counts[1] < counts[0]
    np.testing.assert_allclose(sounds[1], sounds[0], rtol=0, atol=1e-3)


def test_memory_that_was_given_back_is_taken_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = make()
    order = Order(Job("x"), TEXT, cache=False, seed=5)
    expected = voice.order(order)[1]
    shrunk: list[bool] = []
    options = OrtEngine._options

    def watched(engine: OrtEngine, feeds: Feeds) -> object:
        made = options(engine, feeds)
        with contextlib.suppress(RuntimeError):  # raised for a key that was not set
            shrunk.append(made.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0")
        return made

    given_back = threading.Event()
    give_back = Synthesizer.give_back

    def told(synthesizer: Synthesizer, loaded: VitsVoice) -> None:
        give_back(synthesizer, loaded)
        given_back.set()

    monkeypatch.setattr(OrtEngine, "_options", watched)
    monkeypatch.setattr(Synthesizer, "give_back", told)
    voice.engine.give_back()
    assert given_back.wait(TIMEOUT_S)
    np.testing.assert_array_equal(voice.order(replace(order, job=Job("x")))[1], expected)
    assert shrunk == [True, True], "both engines, and only while it gives back"
    assert voice.pool.free == voice.pool.size
