"""The acoustic part of a voice, on one engine for sentences of any length or on several of fixed sizes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.alignment import Aligned, align
from engines.errors import EngineError
from engines.runtime.engine import Engine, Feeds

_LOG = logging.getLogger(__name__)

BUCKETS: Final = (192, 480, 1208)
"""Phoneme ids of the engines: what kiosks and robots say, a long sentence, and 600 phonemes, which nothing exceeds.

Of 38 sentences of kiosks and robots all fit the first one (longest 177 ids, median 138); prose fills the second and
third too (medians 285 and 301 of a page and a licence). A sentence costs what its bucket costs, here at most 2.5 times
its own length; more buckets would each take the weights' memory again, 14 MB as FP16, and minutes to build.
"""

_NOISE: Final = "noise_prior"
_PRIOR: Final = "prior"


class Acoustic(Protocol):
    """The acoustic part of a voice. One thread at a time uses it; EngineError where an engine fails.

    Implementations: one engine for any length; an engine for each of a few lengths.
    """

    @property
    def backend(self) -> str:
        """Who really computes."""

    @property
    def precision(self) -> str:
        """In what."""

    def aligned(self, feeds: Feeds) -> Aligned:
        """Compute latents and durations from the inputs of a pack's acoustic graph, and `noise_prior` [1, C, N]."""

    def abandon(self) -> None:
        """See `Engine.abandon`."""

    def close(self) -> None:
        """Free it. Idempotent."""


class WholeAcoustic:
    """An `Acoustic` on one engine that runs the pack's acoustic graph."""

    def __init__(self, engine: Engine) -> None:
        """Own `engine`."""
        self._engine: Final = engine

    @property
    def backend(self) -> str:
        """See `Acoustic.backend`."""
        return self._engine.backend

    @property
    def precision(self) -> str:
        """See `Acoustic.precision`."""
        return self._engine.precision

    def aligned(self, feeds: Feeds) -> Aligned:
        """See `Acoustic.aligned`."""
        inputs = {name: array for name, array in feeds.items() if name != _NOISE}
        return _align(self._engine.run(inputs)[_PRIOR][0], feeds)

    def abandon(self) -> None:
        """See `Engine.abandon`."""
        self._engine.abandon()

    def close(self) -> None:
        """See `Acoustic.close`."""
        self._engine.close()


@dataclass(frozen=True, slots=True)
class _Bucket:
    """An engine and its inputs, which are filled anew for each sentence; beyond it they may hold anything."""

    engine: Engine
    ids: NDArray[np.int64]
    noise: NDArray[np.float32]
    length: NDArray[np.int64]


class BucketedAcoustic:
    """An `Acoustic` of several engines. One thread at a time uses it.

    `whole` computes what is longer than all of them, and everything from the first time on that one of them fails or
    gives what is no number: EngineError only where `whole` fails, too.
    """

    def __init__(self, engines: Mapping[int, Engine], whole: Callable[[], Acoustic]) -> None:
        """Own, by their number of ids, engines that run the graphs of `vits_static.static_acoustic`.

        `whole` makes what runs the pack's acoustic graph, when it is first needed.
        """
        self._buckets = {
            size: _Bucket(
                engine, np.zeros((1, size), np.int64), np.zeros((1, 2, size), np.float32), np.zeros(1, np.int64)
            )
            for size, engine in sorted(engines.items())
        }
        self._make_whole = whole
        self._whole: Acoustic | None = None
        self._closed = False

    @property
    def backend(self) -> str:
        """Who computes; several where not all do the same."""
        return " and ".join(dict.fromkeys(part.backend for part in self._parts()))

    @property
    def precision(self) -> str:
        """In what; several where not all do the same."""
        return " and ".join(dict.fromkeys(part.precision for part in self._parts()))

    def aligned(self, feeds: Feeds) -> Aligned:
        """See `Acoustic.aligned`."""
        if self._closed:
            raise EngineError("the acoustic part", "is closed")
        count = feeds["input"].shape[1]
        bucket = next((bucket for size, bucket in self._buckets.items() if size >= count), None)
        if bucket is None:
            return self._by_whole(feeds)
        try:
            return _in_bucket(bucket, feeds, count)
        except EngineError as error:
            reason = error
        aligned = self._by_whole(feeds)
        _LOG.error("%s; the acoustic part is computed by %s from now on", reason, self._parts()[-1].backend)
        for other in self._buckets.values():
            other.engine.close()
        self._buckets.clear()
        return aligned

    def abandon(self) -> None:
        """See `Engine.abandon`."""
        for part in self._parts():
            part.abandon()

    def close(self) -> None:
        """See `Acoustic.close`."""
        self._closed = True
        for part in self._parts():
            part.close()

    def _by_whole(self, feeds: Feeds) -> Aligned:
        if self._whole is None:
            self._whole = self._make_whole()
        return self._whole.aligned(feeds)

    def _parts(self) -> list[Engine | Acoustic]:
        engines: list[Engine | Acoustic] = [bucket.engine for bucket in self._buckets.values()]
        return [*engines, *([] if self._whole is None else [self._whole])]


def _in_bucket(bucket: _Bucket, feeds: Feeds, count: int) -> Aligned:
    bucket.ids[:, :count] = feeds["input"]
    bucket.length[0] = count
    inputs: dict[str, NDArray[np.generic]] = {
        "input": bucket.ids,
        "input_lengths": bucket.length,
        "scales": feeds["scales"],
    }
    if "noise_duration" in feeds:
        bucket.noise[:, :, :count] = feeds["noise_duration"]
        inputs["noise_duration"] = bucket.noise
    if "sid" in feeds:
        inputs["sid"] = feeds["sid"]
    return _align(bucket.engine.run(inputs)[_PRIOR][0, :, :count], feeds)


def _align(prior: NDArray[np.float32], feeds: Feeds) -> Aligned:
    return align(prior, np.asarray(feeds[_NOISE], np.float32), float(np.asarray(feeds["scales"], np.float32)[0]))
