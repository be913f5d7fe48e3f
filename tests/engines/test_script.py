"""Scripts to samples: pauses, manners, marks, sounds and voices."""

from __future__ import annotations

import numpy as np
import pytest

from device.format import PERIOD, RATE, Samples
from device.memory import HostBufferPool
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.text.reading import Front
from engines.text.script import Passage
from engines.text.ssml import parse
from engines.vits import Delivery, VitsVoice

BELL: Samples = np.full(5 * RATE, 0.25, np.float32)


@pytest.fixture
def synthesizer(phonemizer: Phonemizer) -> Synthesizer:
    pool = HostBufferPool(buffers=4, capacity=48_000, limit_bytes=2**24)
    return Synthesizer(phonemizer, pool, front=Front(clip={"bell": BELL}.get))


def said(synthesizer: Synthesizer, voice: VitsVoice, inside: str, start: int = 0) -> tuple[Samples, Tally]:
    tally = Tally()
    parts = []
    utterance = Utterance(parse(f"<speak>{inside}</speak>"), Delivery(noise_w=0.0, gain=0.2), seed=1, volume=0.5)
    for chunk in synthesizer.chunks(utterance, voice, tally, start=start):
        parts.append(chunk.samples.copy())
        chunk.release()
    return np.concatenate(parts) if parts else np.zeros(0, np.float32), tally


def longest_silence(samples: Samples) -> int:
    changes = np.flatnonzero(np.diff(np.concatenate(([0], samples == 0, [0])).astype(np.int8)))
    return int((changes[1::2] - changes[::2]).max(initial=0))


def test_a_break_of_500_ms_is_as_long_in_the_samples(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    with_break, tally = said(synthesizer, tiny, 'Hello there. <break time="500ms"/> Goodbye then.')
    without, _ = said(synthesizer, tiny, "Hello there. Goodbye then.")
    assert with_break.size == tally.frames == without.size + RATE // 2
    assert RATE // 2 <= longest_silence(with_break) <= RATE // 2 + PERIOD


def test_a_pause_that_is_no_whole_period_costs_at_most_one(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    samples, _ = said(synthesizer, tiny, '<break time="1231ms"/>')
    assert RATE * 1.231 <= samples.size < RATE * 1.231 + PERIOD
    assert not samples.any()


def test_volume_and_rate_of_prosody_are_in_the_samples(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    usual, _ = said(synthesizer, tiny, "welcome to the museum")
    quiet, _ = said(synthesizer, tiny, '<prosody volume="50">welcome to the museum</prosody>')
    slow, _ = said(synthesizer, tiny, '<prosody rate="50%">welcome to the museum</prosody>')
    np.testing.assert_allclose(quiet, usual / 2, atol=1e-6)
    assert slow.size > 1.5 * usual.size  # durations are whole frames, so not just twice


def test_emphasis_is_slower_and_louder(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    usual, _ = said(synthesizer, tiny, "stop")
    strong, _ = said(synthesizer, tiny, '<emphasis level="strong">stop</emphasis>')
    assert strong.size > usual.size
    assert strong.std() > 1.1 * usual.std()


def test_a_phoneme_and_a_sub_change_what_is_said(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    whole, _ = said(synthesizer, tiny, "say five now")
    sub, _ = said(synthesizer, tiny, 'say <sub alias="five">V</sub> now')
    phoneme, _ = said(synthesizer, tiny, 'say <phoneme ph="fˈaɪv">V</phoneme> now')
    other, _ = said(synthesizer, tiny, 'say <phoneme ph="wˈʌn">V</phoneme> now')
    np.testing.assert_array_equal(sub, whole)
    np.testing.assert_array_equal(phoneme, whole)
    assert other.size != whole.size or np.abs(other - whole).max() > 0.001


def test_a_mark_is_where_its_word_begins(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    inside = '<mark name="first"/>One two <mark name="third"/>three.<break time="1s"/><mark name="after"/>Four'
    samples, tally = said(synthesizer, tiny, inside + '<mark name="end"/>')
    assert {name: frame for frame, name in tally.marks} == {
        "first": tally.words[0],
        "third": tally.words[2],
        "after": tally.words[3],
        "end": samples.size,
    }
    assert tally.words[3] - tally.words[2] > RATE


def test_a_sound_is_played_where_it_stands_and_its_text_said_where_there_is_none(
    synthesizer: Synthesizer, tiny: VitsVoice
) -> None:
    text, _ = said(synthesizer, tiny, "one.")
    samples, tally = said(synthesizer, tiny, 'one.<prosody volume="50"><audio src="bell">ding</audio></prosody>')
    assert tally.warnings == []
    assert samples[-BELL.size :] == pytest.approx(np.full(BELL.size, 0.0625), abs=1e-6)
    assert samples.size - BELL.size == -(-text.size // PERIOD) * PERIOD
    spoken, tally = said(synthesizer, tiny, '<audio src="gong">one.</audio>')
    np.testing.assert_array_equal(spoken, text)
    assert "gong" in tally.warnings[0]


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_it_goes_on_from_any_frame(synthesizer: Synthesizer, tiny: VitsVoice, part: float) -> None:
    inside = (
        'Hello there.<break time="1500ms"/><audio src="bell"/>'
        '<prosody rate="slow">how <mark name="m"/>are</prosody> you.<break time="20ms"/>'
    )
    whole, tally = said(synthesizer, tiny, inside)
    start = int(part * whole.size)
    rest, again = said(synthesizer, tiny, inside, start=start)
    np.testing.assert_allclose(rest, whole[start:], atol=1e-5)
    assert (again.frames, again.marks, again.sentences) == (tally.frames, tally.marks, tally.sentences)


def test_passages_may_have_other_voices(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    asked: list[tuple[str, str | None]] = []

    def cast(passage: Passage) -> tuple[VitsVoice, Delivery]:
        asked.append((passage.voice, passage.language))
        return tiny, Delivery()

    script = parse('<speak>a<voice name="joe">b</voice><lang xml:lang="de">c</lang></speak>')
    for chunk in synthesizer.chunks(Utterance(script), cast, Tally()):
        chunk.release()
    assert asked == [("", None), ("joe", None), ("", "de")]


@pytest.mark.parametrize("inside", ["", " ", "<p/>", "<break strength='none'/>", "🙂", "<mark name='a'/>"])
def test_nothing_to_say_is_no_error(synthesizer: Synthesizer, tiny: VitsVoice, inside: str) -> None:
    samples, _ = said(synthesizer, tiny, inside)
    assert samples.size == 0
