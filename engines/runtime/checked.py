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
        self._make_safer = safer
        self._safer: Engine | None = None
        self._audible = audible
        self._fell_back = False
        self._closed = False

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
        return self._checked(lambda engine: engine.run(feeds), feeds)

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        """See `Engine.run_into`."""

        def compute(engine: Engine) -> Samples:
            engine.run_into(feeds, output)
            return output

        self._checked(compute, feeds)

    def close(self) -> None:
        """See `Engine.close`."""
        self._closed = True
        self._engine.close()
        if self._safer is not None:
            self._safer.close()

    def _checked(self, compute: Callable[[Engine], NDArray[np.float32]], feeds: Feeds) -> NDArray[np.float32]:
        if self._closed:
            raise EngineError(self.backend, "is closed")
        if self._fell_back:
            return self._sound(self._engine, compute, feeds)
        try:
            return self._sound(self._engine, compute, feeds)
        except EngineError as error:
            reason = error
        if self._safer is None:
            self._safer = self._make_safer()
        result = self._sound(self._safer, compute, feeds)  # fails as well where the inputs were wrong: nobody's fault
        _LOG.error("%s; %s %s takes over until the next start", reason, self._safer.backend, self._safer.precision)
        self._engine.close()
        self._engine, self._fell_back = self._safer, True
        return result

    def _sound(
        self, engine: Engine, compute: Callable[[Engine], NDArray[np.float32]], feeds: Feeds
    ) -> NDArray[np.float32]:
        """Compute; EngineError where what comes out is no sound."""
        output = compute(engine)
        if not math.isfinite(float(output.sum(dtype=np.float64))):
            raise EngineError(f"{engine.backend} {engine.precision}", "gave values that are no numbers")
        if not output.any() and self._audible(feeds):
            raise EngineError(f"{engine.backend} {engine.precision}", "gave nothing but zeros")
        return output
