"""An engine for work that can wait."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import Samples
from engines.precedence import Precedence
from engines.runtime.engine import Engine, Feeds


class PatientEngine:
    """An `Engine` that lets urgent ones compute first. As many threads may use it as may use the one inside."""

    def __init__(self, engine: Engine, precedence: Precedence) -> None:
        """Own `engine`."""
        self._engine: Final = engine
        self._precedence: Final = precedence

    @property
    def backend(self) -> str:
        """See `Engine.backend`."""
        return self._engine.backend

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""
        return self._engine.precision

    def run(self, feeds: Feeds) -> dict[str, NDArray[np.float32]]:
        """See `Engine.run`."""
        self._precedence.wait_turn()
        return self._engine.run(feeds)

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        """See `Engine.run_into`."""
        self._precedence.wait_turn()
        self._engine.run_into(feeds, output)

    def abandon(self) -> None:
        """See `Engine.abandon`."""
        self._engine.abandon()

    def close(self) -> None:
        """See `Engine.close`."""
        self._engine.close()
