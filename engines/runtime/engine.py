"""What runs a graph, whoever runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.format import Samples

Feeds: TypeAlias = Mapping[str, NDArray[np.generic]]
"""Input name -> C-contiguous array of the graph's own element type."""


class Engine(Protocol):
    """A graph, ready to run. One thread at a time uses it; `abandon` is for any other.

    Implementations: ONNX Runtime; TensorRT on a Jetson. Every method but `close` and `abandon` raises EngineError.
    """

    @property
    def backend(self) -> str:
        """Who really computes: 'onnxruntime-cpu', ..."""

    @property
    def precision(self) -> str:
        """In what: 'fp32', ..."""

    def run(self, feeds: Feeds) -> dict[str, NDArray[np.float32]]:
        """Compute every output, by name, into memory of its own, which stays the caller's."""

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        """Compute the first output straight into `output`, which must have just its size."""

    def abandon(self) -> None:
        """Have the run that is under way, if any, end soon with EngineError; the next one is none the worse.

        An engine whose runs are over in some milliseconds anyway need do nothing.
        """

    def close(self) -> None:
        """Free the graph. Idempotent."""
