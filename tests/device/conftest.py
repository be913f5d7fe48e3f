from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulators.cuda_driver import SimulatedDriver


@pytest.fixture
def driver(cuda_driver: SimulatedDriver) -> Iterator[SimulatedDriver]:
    """Give the simulated driver, and see that the test leaves nothing in it.

    Somebody else, as TensorRT does, keeps the primary context: what is not freed by name stays.
    """
    with cuda_driver.retained():
        before = (cuda_driver.objects, cuda_driver.context_references, cuda_driver.stack_depth)
        yield cuda_driver
        assert (cuda_driver.objects, cuda_driver.context_references, cuda_driver.stack_depth) == before
