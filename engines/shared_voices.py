"""Voices that several threads speak with at once, none of them in a hurry."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, Protocol

from device.heap import trim
from engines.acoustic import WholeAcoustic
from engines.batching import Batcher, RowEngine
from engines.fixed_windows import WindowShape
from engines.pack import AnyPack, Pack
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.resampling import block_size
from engines.runtime.ort import OrtEngine
from engines.runtime.patient import PatientEngine
from engines.vits import VitsVoice, acoustic_on_cpu
from engines.vocoder import FreeVocoder
from engines.vocoder_checked import CheckedVocoder
from engines.vocoder_fixed import FixedVocoder
from engines.voice import Voice
from engines.voice_memory import VoiceBudget, file_bytes, measured
from engines.windows import Speed

NOBODY_WAITS: Final = Speed(0.0, 1.0)
"""Said of a voice, it gets windows as large as they may be: no schedule would be fast enough for this one."""

_MOST_LOADED: Final = 2
"""Of those that nobody speaks with: one thread of two languages in turn loads each once."""


_RENDERED: Final = "rendered"


class SharedVoice(Protocol):
    """A loaded voice for any number of threads.

    Implementations: on engines that several threads may run, one for each family of voices; batched.
    """

    def speaking(self) -> AbstractContextManager[Voice]:
        """Give the calling thread a voice of its own for one utterance."""

    def close(self) -> None:
        """Free the engines, once nobody speaks."""


class ConcurrentVoice:
    """A `SharedVoice` on ONNX Runtime: each window is computed in the thread that asks for it.

    On two busy cores, two threads that compute a window each give 1.8 times the speech of one window on both cores,
    which wait for one another in each of its 60 convolutions. Batches, which have that wait too, give 0.9 times as much
    (tests/bench/render.py).
    """

    def __init__(self, pack: Pack, precedence: Precedence) -> None:
        """Load the pack. EngineError where that fails."""
        self._info = pack.info
        self._acoustic = _patient_acoustic(pack, precedence)
        self._vocoder = _patient_vocoder(pack, precedence)

    def speaking(self) -> AbstractContextManager[Voice]:
        """See `SharedVoice.speaking`."""
        voice = VitsVoice(self._info, self._acoustic, FreeVocoder(self._info, self._vocoder))
        voice.speed = NOBODY_WAITS
        return nullcontext(voice)

    def close(self) -> None:
        """See `SharedVoice.close`."""
        self._acoustic.close()
        self._vocoder.close()


class BatchedVoice:
    """A `SharedVoice` for a device that computes several windows in little more than the time of one.

    The acoustic part, the lesser part of the work, is computed on ONNX Runtime in the thread that asks for it. A
    window that comes out bad, or that the batcher has no engine for, is computed there too, with the rest of its
    utterance: the others and the next ones stay with the batcher.
    """

    def __init__(self, pack: Pack, precedence: Precedence, batcher: Batcher, shapes: Sequence[WindowShape]) -> None:
        """Own the batcher, which makes the vocoder's engines, once this returns. EngineError where loading fails."""
        self._pack = pack
        self._info = info = pack.info
        self._precedence = precedence
        self._acoustic = _patient_acoustic(pack, precedence)
        self._batcher = batcher
        self._lock = threading.Lock()
        self._safer: PatientEngine | None = None
        block_out = block_size(info.sample_rate)[1]
        self._rows = {shape: RowEngine(batcher, shape, shape.blocks * block_out) for shape in shapes}

    @contextmanager
    def speaking(self) -> Iterator[Voice]:
        """See `SharedVoice.speaking`."""
        vocoder = CheckedVocoder(FixedVocoder(self._info, self._rows), self._safer_vocoder)
        voice = VitsVoice(self._info, self._acoustic, vocoder)
        voice.speed = NOBODY_WAITS
        with self._batcher.member():
            yield voice

    def close(self) -> None:
        """See `SharedVoice.close`."""
        self._batcher.close()
        self._acoustic.close()
        if self._safer is not None:
            self._safer.close()

    def _safer_vocoder(self) -> FreeVocoder:
        with self._lock:
            if self._safer is None:
                self._safer = _patient_vocoder(self._pack, self._precedence)
            return FreeVocoder(self._info, self._safer)


def _patient_acoustic(pack: Pack, precedence: Precedence) -> WholeAcoustic:
    return WholeAcoustic(PatientEngine(acoustic_on_cpu(pack, threads=1), precedence))


def _patient_vocoder(pack: Pack, precedence: Precedence) -> PatientEngine:
    return PatientEngine(OrtEngine(pack.vocoder, threads=1), precedence)


@dataclass(slots=True)
class _Entry:
    voice: SharedVoice
    bytes: int
    users: int = 0


class SharedVoices:
    """Loads voices when they are asked for and keeps some for the next time. Thread-safe.

    Within the budget, which they share with what is heard: beyond it none is kept, and only what somebody renders with
    is there all the same.
    """

    def __init__(
        self, store: PackStore, load: Callable[[AnyPack], SharedVoice], budget: VoiceBudget | None = None
    ) -> None:
        self.store: Final = store
        self._load = load
        self._budget = budget or VoiceBudget(None)
        self._budget.spare = self._spare
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    @contextmanager
    def borrow(self, name: str = "") -> Iterator[Voice]:
        """Give the calling thread the voice `name`, or the first one, for one utterance.

        VoiceError or EngineError where it cannot be loaded. Others who ask meanwhile wait for that.
        """
        name = self.store.default_name(name)
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                pack = self.store.open(name)
                self._free(_MOST_LOADED, file_bytes(pack))
                entry = self._entries[name] = _Entry(*measured(pack, self._load))
            self._entries.move_to_end(name)
            entry.users += 1
            self._free(_MOST_LOADED)
        try:
            with entry.voice.speaking() as voice:
                yield voice
        finally:
            with self._lock:
                entry.users -= 1
                self._free(_MOST_LOADED)

    def free_unused(self) -> None:
        """Free all voices that nobody speaks with now."""
        with self._lock:
            self._free(0)

    def _spare(self, coming: int) -> None:
        """See `VoiceBudget.spare`. Who loads one holds the lock for long, and sees to the budget itself then."""
        if self._lock.acquire(blocking=False):
            try:
                self._free(_MOST_LOADED, coming)
            finally:
                self._lock.release()

    def _free(self, keep: int, coming: int = 0) -> None:
        """Free the longest unused, beyond so many; and while, with so many bytes to come, the budget is exceeded."""
        self._note()
        unused = [name for name, entry in self._entries.items() if not entry.users]
        gone = False
        while unused and (len(unused) > keep or self._budget.is_exceeded(coming)):
            self._entries.pop(unused.pop(0)).voice.close()
            self._note()
            gone = True
        if gone:
            trim()

    def _note(self) -> None:
        self._budget.take(_RENDERED, sum(entry.bytes for entry in self._entries.values()))
