from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from device.format import PERIOD
from engines.fixed_windows import WindowShape, default_shapes, fixed_plan, window_shape
from engines.resampling import HALF_TAPS, block_size
from engines.windows import Margins, Speed, output_frames

RATES = st.sampled_from([16_000, 22_050, 24_000, 44_100, 48_000])
HOPS = st.sampled_from([128, 256, 320, 512])
MARGINS = st.builds(Margins, *[st.integers(0, 40)] * 4)
SPEEDS = st.builds(Speed, st.floats(0, 0.2), st.floats(1e-6, 0.1))
MEDIUM = Margins(13, 15, 10, 10)
QUICK = Speed(0.001, 0.0004)
CAPACITY = 192_000


def medium_shapes() -> list[WindowShape]:
    return default_shapes(hop=256, rate=22_050, margins=MEDIUM, capacity=CAPACITY)


@given(
    latent_frames=st.integers(1, 2_000),
    rate=RATES,
    hop=HOPS,
    margins=MARGINS,
    speed=SPEEDS,
    payloads=st.sets(st.integers(1, 300), min_size=1, max_size=4),
    frugal=st.booleans(),
    held=st.integers(0, 48_000),
)
def test_windows_emit_every_frame_once_with_enough_context(  # noqa: PLR0913  all that a plan depends on
    *,
    latent_frames: int,
    rate: int,
    hop: int,
    margins: Margins,
    speed: Speed,
    payloads: set[int],
    frugal: bool,
    held: int,
) -> None:
    sizes = [margins.frames + payload for payload in sorted(payloads)]
    try:
        shapes = [window_shape(size, hop=hop, rate=rate, margins=margins) for size in sizes]
    except ValueError:
        assume(False)  # noqa: FBT003  the payload was too small for one period
    block_in, block_out = block_size(rate)
    emitted = 0
    ended = False
    shape_of_voice = {"hop": hop, "rate": rate}
    for window in fixed_plan(
        latent_frames, margins=margins, speed=speed, shapes=shapes, frugal=frugal, held=held, **shape_of_voice
    ):
        assert not ended
        shape = next(shape for shape in shapes if shape.frames == window.stop - window.start)
        assert (window.crop_start, window.stop - window.start - window.crop_stop) == shape.crop
        gan_start, gan_stop = window.start + window.crop_start, window.start + window.crop_stop
        assert gan_start >= 0, "what comes before the utterance is a mask of the flow only"
        first = gan_start * hop + int(window.block_starts[0])
        assert first * block_out == emitted * block_in, "begins where the one before ended"
        count = window.block_starts.size
        assert count <= shape.blocks
        assert (window.block_starts[1:] - window.block_starts[:-1] == block_in).all()
        assert window.block_starts[0] >= 0
        assert window.block_starts[-1] < shape.gan_frames * hop
        after = first + count * block_in
        assert gan_start == 0 or (first - HALF_TAPS) // hop - gan_start >= margins.gan_left
        assert gan_stop >= latent_frames or gan_stop - -(-(after + HALF_TAPS) // hop) >= margins.gan_right
        if window.last:
            assert gan_stop >= latent_frames
            assert 0 < window.frames <= count * block_out
        else:
            assert window.frames == count * block_out
            assert window.frames % PERIOD == 0
        ended = window.last
        emitted += window.frames
    assert ended
    assert emitted == output_frames(latent_frames, hop, rate)


@given(rate=RATES, hop=HOPS, margins=MARGINS, capacity=st.integers(10 * PERIOD, CAPACITY))
def test_default_sizes_fit_a_buffer(rate: int, hop: int, margins: Margins, capacity: int) -> None:
    try:
        shapes = default_shapes(hop=hop, rate=rate, margins=margins, capacity=capacity)
    except ValueError:
        assume(False)  # noqa: FBT003  the buffer was smaller than the margins
    frames = [shape.frames for shape in shapes]
    assert frames == sorted(set(frames))
    assert 1 <= len(shapes) <= 4
    assert all(shape.blocks * block_size(rate)[1] <= capacity for shape in shapes)


def test_the_default_voice_has_four_sizes() -> None:
    assert [shape.frames for shape in medium_shapes()] == [64, 96, 176, 352]


def test_a_size_that_the_margins_use_up_is_refused() -> None:
    with pytest.raises(ValueError, match="margins take 48"):
        window_shape(50, hop=256, rate=22_050, margins=MEDIUM)


@given(latent_frames=st.integers(1, 2_000), held=st.sampled_from([0, 10_560]))
def test_a_window_is_ready_before_the_one_before_is_played(latent_frames: int, held: int) -> None:
    windows = list(
        fixed_plan(latent_frames, hop=256, rate=22_050, margins=MEDIUM, speed=QUICK, shapes=medium_shapes(), held=held)
    )
    assert held or windows[0].stop - windows[0].start == 64, "the first sound is early"
    for played, computed in pairwise(windows):
        cost_s = QUICK.overhead_s + QUICK.frame_s * (computed.stop - computed.start)
        assert cost_s <= (played.frames - (held if played is windows[0] else 0)) / 48_000


def test_a_slow_device_begins_with_a_larger_window_and_a_hopeless_one_with_the_largest() -> None:
    def first(speed: Speed) -> int:
        windows = fixed_plan(1_000, hop=256, rate=22_050, margins=MEDIUM, speed=speed, shapes=medium_shapes())
        window = next(windows)
        return window.stop - window.start

    assert first(Speed(0.005, 0.002)) > 64
    assert first(Speed(1.0, 0.1)) == 352


@pytest.mark.parametrize(("frames", "most"), [(100, 2.1), (227, 1.6), (310, 1.4), (1_200, 1.3)])
def test_little_is_computed_beside_what_is_heard(frames: int, most: float) -> None:
    """By multiply-adds, of which HiFi-GAN has 0.71 per frame and the flow the rest."""
    windows = fixed_plan(frames, hop=256, rate=22_050, margins=MEDIUM, speed=QUICK, shapes=medium_shapes())
    cost = sum(0.29 * (w.stop - w.start) + 0.71 * (w.crop_stop - w.crop_start) for w in windows)
    assert cost <= most * frames


def test_frugal_windows_are_never_more_work() -> None:
    def work(frames: int, *, frugal: bool) -> int:
        sizes = {"hop": 256, "rate": 22_050, "margins": MEDIUM, "speed": QUICK, "shapes": medium_shapes()}
        return sum(window.stop - window.start for window in fixed_plan(frames, frugal=frugal, **sizes))

    works = [(work(frames, frugal=False), work(frames, frugal=True)) for frames in range(20, 700, 20)]
    assert all(frugal <= quick for quick, frugal in works)
    assert any(frugal < quick for quick, frugal in works)
