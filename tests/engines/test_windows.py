from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.format import PERIOD
from engines.resampling import HALF_TAPS, block_size
from engines.windows import Margins, Speed, output_frames, payloads, plan

RATES = st.sampled_from([16_000, 22_050, 24_000, 44_100, 48_000])
MARGINS = st.builds(Margins, *[st.integers(0, 40)] * 4)
SPEEDS = st.builds(Speed, st.floats(0, 0.2), st.floats(1e-6, 0.1))

MEDIUM = Margins(14, 14, 10, 10)
FRAME_S = 256 / 22_050


@given(
    latent_frames=st.integers(1, 2_000),
    rate=RATES,
    hop=st.sampled_from([128, 256, 320, 512]),
    margins=MARGINS,
    speed=SPEEDS,
    capacity=st.integers(PERIOD, 96_000),
    frugal=st.booleans(),
    held=st.integers(0, 48_000),
)
def test_windows_emit_every_frame_once_with_enough_context(  # noqa: PLR0913  all that a plan depends on
    *, latent_frames: int, rate: int, hop: int, margins: Margins, speed: Speed, capacity: int, frugal: bool, held: int
) -> None:
    block_in, block_out = block_size(rate)
    emitted = 0
    ended = False
    shape = {"hop": hop, "rate": rate}
    for window in plan(
        latent_frames, margins=margins, speed=speed, capacity=capacity, frugal=frugal, held=held, **shape
    ):
        assert not ended
        assert 0 <= window.start < window.stop <= latent_frames
        assert 0 <= window.crop_start < window.crop_stop <= window.stop - window.start
        gan_start, gan_stop = window.start + window.crop_start, window.start + window.crop_stop
        assert window.start == 0 or window.crop_start >= margins.flow_left
        assert window.stop == latent_frames or window.stop - gan_stop >= margins.flow_right
        first = gan_start * hop + int(window.block_starts[0])
        assert first * block_out == emitted * block_in, "begins where the one before ended"
        count = window.block_starts.size
        assert count * block_out <= capacity
        assert (window.block_starts[1:] - window.block_starts[:-1] == block_in).all()
        after = first + count * block_in
        assert gan_start == 0 or (first - HALF_TAPS) // hop - gan_start >= margins.gan_left
        assert gan_stop == latent_frames or gan_stop - -(-(after + HALF_TAPS) // hop) >= margins.gan_right
        if window.last:
            assert window.stop == gan_stop == latent_frames
            assert 0 < window.frames <= count * block_out
        else:
            assert window.frames == count * block_out
            assert window.frames % PERIOD == 0
        ended = window.last
        emitted += window.frames
    assert ended
    assert emitted == output_frames(latent_frames, hop, rate)


@given(latent_frames=st.integers(1, 3_000), most=st.integers(1, 1_000), speed=SPEEDS, margins=MARGINS)
def test_payloads_add_up(latent_frames: int, most: int, speed: Speed, margins: Margins) -> None:
    sizes = payloads(latent_frames, most, margins, speed, FRAME_S)
    assert sum(sizes) == latent_frames
    assert min(sizes) > 0
    assert max(sizes) <= most


@given(latent_frames=st.integers(1, 3_000), speed=SPEEDS, margins=MARGINS, held=st.integers(0, 100))
def test_a_window_is_ready_before_the_one_before_is_played(
    latent_frames: int, speed: Speed, margins: Margins, held: int
) -> None:
    most = 10_000
    sizes = payloads(latent_frames, most, margins, speed, FRAME_S, held=held)
    assert sum(sizes) == latent_frames
    if len(sizes) > 1:
        sizes[0] -= held
    for played, computed in pairwise(sizes):
        assert speed.overhead_s + (computed + margins.frames) * speed.frame_s <= played * FRAME_S


def test_a_quick_device_begins_small_and_a_slow_one_larger() -> None:
    quick, slow, hopeless = (
        payloads(1_000, 2_000, MEDIUM, Speed(0.001, frame_s), FRAME_S)[0] for frame_s in (0.0002, 0.003, FRAME_S)
    )
    assert quick <= 16
    assert 16 < slow < 150
    assert hopeless == 1_000


def test_a_short_text_begins_at_once() -> None:
    assert payloads(95, 500, MEDIUM, Speed(0.001, 0.0008), FRAME_S)[0] <= 24


@pytest.mark.parametrize(
    ("frames", "frame_s", "most"), [(227, 0.0002, 1.15), (310, 0.0002, 1.2), (310, 0.0004, 1.2), (1_200, 0.0004, 1.15)]
)
def test_a_whole_sentence_costs_little_more_than_one_pass(frames: int, frame_s: float, most: float) -> None:
    """By multiply-adds, of which HiFi-GAN has 0.71 per frame and the flow the rest; the time grows by less."""
    speed = Speed(0.001, frame_s)
    windows = list(plan(frames, hop=256, rate=22_050, margins=MEDIUM, speed=speed, capacity=240_000))
    cost = sum(0.29 * (w.stop - w.start) + 0.71 * (w.crop_stop - w.crop_start) for w in windows)
    assert len(windows) > 1
    assert cost <= most * frames


@given(latent_frames=st.integers(1, 3_000), speed=SPEEDS)
def test_frugal_windows_are_no_more_work_and_sound_begins_no_later_than_bearable(
    latent_frames: int, speed: Speed
) -> None:
    quick, frugal = (payloads(latent_frames, 1_000, MEDIUM, speed, FRAME_S, frugal=frugal) for frugal in (False, True))
    assert len(frugal) <= len(quick)
    assert frugal[0] <= max(quick[0], 1.25 * (quick[0] + 96)) or len(frugal) == len(quick) == 1


def test_a_sentence_takes_a_window_less_where_nobody_is_in_a_hurry() -> None:
    quick, frugal = (
        payloads(320, 340, MEDIUM, Speed(0.002, 0.0005), FRAME_S, frugal=frugal) for frugal in (False, True)
    )
    assert (len(quick), len(frugal)) == (3, 2)
