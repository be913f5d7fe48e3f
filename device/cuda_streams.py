"""Streams with priorities, and graphs recorded from them: what PyCUDA does not have, by cuda.bindings.

All of it is for the thread that owns the context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from device.cuda_calls import NON_BLOCKING, Driver, call, errors_of


class Stream(Protocol):
    """A queue of work for the GPU, never the default one. Implementations: with and without cuda.bindings."""

    handle: int
    """As the driver knows it; never 0."""
    priority: int
    """Lower numbers go first, 0 is the driver's default and the last."""
    closed: bool

    def synchronize(self) -> None:
        """Wait until all that was enqueued is done; other Python threads run meanwhile. CudaError if it failed."""

    def close(self) -> None:
        """Wait for its work, free it. Idempotent."""


def make_stream(driver: Driver, *, urgent: bool) -> Stream:
    """Make a stream; `urgent` work goes before that of all others on this GPU."""
    if driver.bindings is None:
        return PlainStream(driver.pycuda)
    return PriorityStream(driver.bindings, urgent=urgent)


class PriorityStream:
    """A `Stream` by cuda.bindings."""

    def __init__(self, bindings: Any, *, urgent: bool) -> None:  # noqa: ANN401  a module without types
        self._bindings = bindings
        least, greatest = call(bindings.cuCtxGetStreamPriorityRange)
        self.priority: int = greatest if urgent else least
        self._stream = call(bindings.cuStreamCreateWithPriority, NON_BLOCKING, self.priority)
        self.handle: int = int(self._stream)
        self.closed = False

    def synchronize(self) -> None:
        """See `Stream.synchronize`."""
        call(self._bindings.cuStreamSynchronize, self._stream)

    def close(self) -> None:
        """See `Stream.close`."""
        if not self.closed:
            self.closed = True
            try:
                self.synchronize()
            finally:
                call(self._bindings.cuStreamDestroy, self._stream)


class PlainStream:
    """A `Stream` by PyCUDA: of the default priority."""

    def __init__(self, pycuda: Any) -> None:  # noqa: ANN401  a module without types
        self._pycuda = pycuda
        with errors_of(pycuda):
            self._stream = pycuda.Stream(NON_BLOCKING)
        self.priority: int = 0
        self.handle: int = self._stream.handle
        self.closed = False

    def synchronize(self) -> None:
        """See `Stream.synchronize`."""
        with errors_of(self._pycuda):
            self._stream.synchronize()

    def close(self) -> None:
        """See `Stream.close`."""
        if not self.closed:
            self.closed = True
            try:
                self.synchronize()
            finally:
                del self._stream  # PyCUDA frees it with its last reference


class Graph:
    """Recorded work of a stream, at the addresses and shapes that it had then."""

    def __init__(self, bindings: Any, graph: Any, stream: Stream) -> None:  # noqa: ANN401  a module without types
        self._bindings = bindings
        self._stream = stream
        self._executable = call(bindings.cuGraphInstantiate, graph, 0)
        self.closed = False

    def launch(self) -> None:
        """Enqueue it on the stream that it was recorded from. CudaError."""
        call(self._bindings.cuGraphLaunch, self._executable, self._stream.handle)

    def close(self) -> None:
        """Free it. Idempotent. Work that has been launched runs on."""
        if not self.closed:
            self.closed = True
            call(self._bindings.cuGraphExecDestroy, self._executable)


def record(bindings: Any, stream: Stream, enqueue: Callable[[], None]) -> Graph:  # noqa: ANN401  untyped module
    """Record what `enqueue` puts on `stream`; nothing of it runs. CudaError where it cannot be recorded.

    What else `enqueue` raises is passed on. Either way the stream is as it was before.

    Thread-local mode: in the global one, any other thread that allocates memory meanwhile (TensorRT's, ONNX Runtime's)
    fails with error 900 or 906 and takes the recording with it.
    """
    call(bindings.cuStreamBeginCapture, stream.handle, _thread_local(bindings))
    try:
        enqueue()
    except BaseException:
        _, unfinished = bindings.cuStreamEndCapture(stream.handle)
        if unfinished is not None and int(unfinished):  # no graph comes out of a recording that broke
            call(bindings.cuGraphDestroy, unfinished)
        raise
    graph = call(bindings.cuStreamEndCapture, stream.handle)
    try:
        return Graph(bindings, graph, stream)
    finally:
        call(bindings.cuGraphDestroy, graph)


def _thread_local(bindings: Any) -> Any:  # noqa: ANN401  a module without types
    return bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
