"""Engines of fixed sizes that act as one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from device.format import Samples
from engines.errors import EngineError
from engines.runtime.engine import Engine, Feeds


class SizedEngines:
    """An `Engine` that has one engine for each size of an input, and takes no other sizes. Owns them all."""

    def __init__(self, engines: Mapping[int, Engine], *, by: str) -> None:
        """Take at least one engine per size of the last axis of input `by`."""
        self._engines = dict(engines)
        self._by = by
        self._any = next(iter(engines.values()))

    @property
    def backend(self) -> str:
        """See `Engine.backend`: the same for all of them."""
        return self._any.backend

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""
        return self._any.precision

    def run(self, feeds: Feeds) -> NDArray[np.float32]:
        """See `Engine.run`."""
        return self._for(feeds).run(feeds)

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        """See `Engine.run_into`."""
        self._for(feeds).run_into(feeds, output)

    def close(self) -> None:
        """See `Engine.close`."""
        for engine in self._engines.values():
            engine.close()

    def _for(self, feeds: Feeds) -> Engine:
        sizer = feeds.get(self._by)
        size = sizer.shape[-1] if sizer is not None and sizer.ndim else 0
        engine = self._engines.get(size)
        if engine is None:
            known = ", ".join(map(str, sorted(self._engines)))
            raise EngineError(self.backend, f"has engines for {self._by} of size {known}, not {size}")
        return engine
