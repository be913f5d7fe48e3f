from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from device.format import PERIOD
from engines.resampling import HALF_TAPS, block_size
from engines.windows import Margins, output_frames, plan

RATES = st.sampled_from([16_000, 22_050, 24_000, 44_100, 48_000])


@given(
    latent_frames=st.integers(1, 2_000),
    rate=RATES,
    hop=st.sampled_from([128, 256, 320, 512]),
    left=st.integers(0, 64),
    right=st.integers(0, 64),
    capacity=st.integers(PERIOD, 96_000),
)
def test_windows_emit_every_frame_once_with_enough_context(
    latent_frames: int, rate: int, hop: int, left: int, right: int, capacity: int
) -> None:
    block_in, block_out = block_size(rate)
    emitted = 0
    ended = False
    for window in plan(latent_frames, hop=hop, rate=rate, margins=Margins(left, right), capacity=capacity):
        assert not ended
        assert 0 <= window.start < window.stop <= latent_frames
        first = window.start * hop + int(window.block_starts[0])
        assert first * block_out == emitted * block_in, "begins where the one before ended"
        count = window.block_starts.size
        assert count * block_out <= capacity
        assert (window.block_starts[1:] - window.block_starts[:-1] == block_in).all()
        after = first + count * block_in
        assert window.start == 0 or (first - HALF_TAPS) // hop - window.start >= left
        assert window.stop == latent_frames or window.stop - -(-(after + HALF_TAPS) // hop) >= right
        if window.last:
            assert window.stop == latent_frames
            assert 0 < window.frames <= count * block_out
        else:
            assert window.frames == count * block_out
            assert window.frames % PERIOD == 0
        ended = window.last
        emitted += window.frames
    assert ended
    assert emitted == output_frames(latent_frames, hop, rate)


def test_the_first_window_is_small_and_they_grow() -> None:
    frames = [
        w.frames for w in plan(1_000, hop=256, rate=22_050, margins=Margins(24, 24), capacity=48_000) if not w.last
    ]
    assert frames[0] <= 10 * PERIOD
    assert frames == sorted(frames)
    assert frames[-1] == 48_000
