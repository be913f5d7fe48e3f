"""An engine that is not believed: narrow types overflow on inputs that no calibration has seen."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from device.format import Samples
from engines.errors import EngineError
from engines.runtime.engine import Engine, Feeds

_LOG = logging.getLogger(__name__)


class CheckedEngine:
    """An `Engine` whose every output is looked at. At the first bad one a safer engine takes over, for good.

    Bad is what is no number, or nothing but zeros, or an engine's failure. What the safer one gives is looked at too.
    """

    def __init__(
        self, engine: Engine, safer: Callable[[], Engine], *, audible: Callable[[Feeds], bool] = lambda _: True
    ) -> None:
        """Own `engine`; `safer` makes the other one when it is needed; `audible`: whether zeros would be wrong."""
        self._engine = engine
        self._safer = safer
        self._audible = audible
        self._fell_back = False

    @property
    def backend(self) -> str:
        """Who computes now."""
        return self._engine.backend

    @property
    def precision(self) -> str:
        """In what it is computed now."""
        return self._engine.precision

    def run(self, feeds: Feeds) -> NDArray[np.float32]:
        """See `Engine.run`."""
        result: list[NDArray[np.float32]] = []

        def compute() -> NDArray[np.float32]:
            result[:] = [self._engine.run(feeds)]
            return result[0]

        self._checked(compute, feeds)
        return result[0]

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        """See `Engine.run_into`."""

        def compute() -> Samples:
            self._engine.run_into(feeds, output)
            return output

        self._checked(compute, feeds)

    def close(self) -> None:
        """See `Engine.close`."""
        self._engine.close()

    def _checked(self, compute: Callable[[], NDArray[np.float32]], feeds: Feeds) -> None:
        if not self._fell_back:
            try:
                reason = self._fault(compute(), feeds)
            except EngineError as error:
                reason = str(error)
            if not reason:
                return
            self._fall_back(reason)
        reason = self._fault(compute(), feeds)
        if reason:
            raise EngineError(self.backend, f"in {self.precision} {reason}")

    def _fall_back(self, reason: str) -> None:
        before = f"{self.backend} {self.precision}"
        safer = self._safer()
        self._engine.close()
        self._engine, self._fell_back = safer, True
        _LOG.error("%s %s: %s %s takes over until the next start", before, reason, self.backend, self.precision)

    def _fault(self, output: NDArray[np.float32], feeds: Feeds) -> str:
        if not math.isfinite(float(output.sum(dtype=np.float64))):
            return "gave values that are no numbers"
        if self._audible(feeds) and not output.any():
            return "gave nothing but silence"
        return ""
