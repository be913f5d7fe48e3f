from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daemon.rates import RateLimiter


@given(st.lists(st.floats(0, 2), max_size=60), st.integers(1, 10), st.floats(0.1, 10))
def test_nobody_gets_more_than_the_rate_and_a_burst(waits: list[float], burst: int, per_s: float) -> None:
    limiter = RateLimiter(per_s, burst)
    now = allowed = 0.0
    for wait in waits:
        now += wait
        allowed += limiter.allows("a", now)
        assert allowed <= burst + now * per_s + 1e-6


def test_whoever_keeps_to_the_rate_is_never_refused() -> None:
    limiter = RateLimiter(10, 1)
    assert all(limiter.allows("a", 0.101 * number) for number in range(1000))


def test_each_sender_has_an_allowance_of_his_own_and_memory_is_bounded() -> None:
    limiter = RateLimiter(1, 1)
    assert all(limiter.allows(str(number), 0.0) for number in range(5000))
    assert not limiter.allows("4999", 0.0)
    assert len(limiter._buckets) <= 1000
