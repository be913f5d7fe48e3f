"""Whether speech waits for a loudspeaker that was lost."""

from __future__ import annotations

import math


class Hold:
    """For the speaker's thread; times are seconds of `time.monotonic`."""

    def __init__(self, wait_s: float) -> None:
        """Wait for `wait_s` at the longest, from when it was lost; 0: nothing waits."""
        self._wait_s = wait_s
        self._lost = False
        self._found_at = -math.inf
        self._until = -math.inf
        self._over = False
        self._proved = True

    @property
    def until(self) -> float:
        """When what waits goes on all the same, and fails if it must; infinite where nothing waits."""
        return self._until if self._lost and not self._over else math.inf

    def output_is(self, problem: str, now: float) -> None:
        """Take note that the output is lost, or (empty) there again.

        Only one that has proved itself is waited for anew: something was heard of it, or it stayed for long.
        """
        if problem and not self._lost and (self._proved or now - self._found_at >= self._wait_s):
            self._until = now + self._wait_s
            self._proved = False
        elif not problem and self._lost:
            self._found_at = now
        self._lost = bool(problem)
        self._over = self._over and self._lost

    def heard(self) -> None:
        """Take note that an utterance came to its end."""
        self._proved = True

    def holds(self, now: float) -> bool:
        """Tell whether nothing is to be begun now."""
        self._over = self._lost and now >= self._until
        return self._lost and not self._over

    def may_wait(self, now: float, *, heard: bool) -> bool:
        """Tell whether an utterance that lost its loudspeaker waits; `heard`: some of it was, in this go."""
        if heard and self._wait_s:
            self._until = now + self._wait_s
        return now < self._until
