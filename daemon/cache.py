"""Phrases that are said again and again, kept as they sounded.

A kiosk says the same dozen sentences all day. Their 48 kHz samples lie in one folder, a file each, named by everything
that changes the sound; saying one again costs a read. A phrase is kept once it was said twice, or if it is pinned, so
that texts which never come again never touch the disk.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import queue
import re
import shutil
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from daemon.inbox import Inbox
from daemon.worker import Worker
from device.format import PERIOD, RATE, Samples
from engines.aside import PATIENCE_S, Aside
from engines.synthesizer import Utterance
from engines.text.gaps import divided
from engines.text.phonemes import clean_text
from engines.text.script import Passage
from engines.voice import Voice

_LOG = logging.getLogger(__name__)

_T = TypeVar("_T")

_MAGIC: Final = b"speakd2\n"
_DIGEST_SIZE: Final = 32
_HEAD: Final = struct.Struct(f"<8sIII{_DIGEST_SIZE}s")
"""Magic, frames, words, sentences, SHA-256 of what follows: the first frames of words and sentences, the samples."""

_SUFFIX: Final = ".pcm"
_KEPT: Final = re.compile(r"[0-9a-f]{64}\.pcm")
_PART: Final = re.compile(r"\.[0-9a-f]{64}\.[0-9]+")
"""Names of files: a phrase; one that is being written, by which process."""

_MOST_WAITING: Final = 60 * RATE
"""Frames that may wait to be written, 11 MB: a disk that stalls for longer costs phrases, and nothing else."""

_SEEN: Final = 1000
"""Phrases of which it is remembered that they were said once."""

LONGEST_CHARS: Final = 1000
"""Longer texts are not even looked up: they last for more than `LONGEST_S`."""

LONGEST_S: Final = 20
"""Longer utterances are no phrases: they would push out a hundred that are."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase as it sounded, and where its words and sentences begin, in frames."""

    samples: Samples
    words: tuple[int, ...] = ()
    sentences: tuple[int, ...] = ()


def key_of(utterance: Utterance, voice: Voice, readings: str) -> str:
    """Name a phrase by all that decides how it sounds. `readings`: see `Synthesizer.fingerprint`."""
    delivery = utterance.delivery
    parts = (
        voice.info.model_dump_json(),  # the hashes of its files too
        voice.fingerprint,
        _espeak_version(),
        [_content(passage) for passage in divided(utterance.script, delivery.gaps).passages],
        readings,
        delivery.speaker,
        delivery.length_scale,
        delivery.noise_scale,
        delivery.noise_w,
        delivery.gain,
        (delivery.gaps.sentence, delivery.gaps.paragraph),
        repr(delivery.mix),
        utterance.seed,
        voice.backend,
        voice.precision,
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _content(passage: Passage) -> tuple[object, ...]:
    spans = [clean_text(span) if isinstance(span, str) else repr(span) for span in passage.spans]
    return spans, passage.pause_s, passage.rate, passage.gain, passage.voice, passage.language, passage.opens


@functools.cache
def _espeak_version() -> str:
    """Give the version of the package that espeak-ng comes in: another one may pronounce otherwise."""
    return importlib.metadata.version("piper-tts")


@dataclass(frozen=True, slots=True)
class _Proof:
    """What a file was like when its content was last compared with its hash."""

    state: tuple[int, ...]
    """What the kernel changes with the file."""
    total: int
    """The sum of its 64-bit words: damage below the file system changes nothing else."""

    @classmethod
    def of(cls, status: os.stat_result, content: bytes) -> _Proof:
        """Take it from a file."""
        words = np.frombuffer(content, "<u8", len(content) // 8)
        state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return cls(state, int(words.sum(dtype=np.uint64)) ^ int.from_bytes(content[8 * words.size :], "little"))


class PhraseCache:
    """Samples of phrases on the disk, bounded by size and by what is free.

    One thread asks, another may `put`. Whatever goes wrong with the disk costs a phrase, never an utterance: it is
    logged and the phrase computed, also where the disk does not answer.
    """

    def __init__(self, folder: Path, *, limit_bytes: int, keep_free_bytes: int, patience_s: float = PATIENCE_S) -> None:
        """Take stock of what is there. `patience_s`: how long that may hold up whoever asks, and a `get` too."""
        self._folder = folder
        self._limit = limit_bytes
        self._keep_free = keep_free_bytes
        self._patience_s = patience_s
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._total = 0
        self._said: OrderedDict[str, None] = OrderedDict()
        self._pinned: set[str] = set()
        self._proofs: dict[str, _Proof] = {}
        """Of those that were read since the start."""
        self._lock = threading.Lock()  # guards the five above; never held across reading or writing
        self._aside = Aside("phrases")
        self._answers = True
        self._known = False
        """Whether stock was taken."""
        self._patiently(self._load)

    def __len__(self) -> int:
        """Give how many phrases are kept."""
        return len(self._sizes)

    def pin(self, key: str) -> None:
        """Keep this phrase at its first saying and for as long as the process lives."""
        with self._lock:
            self._pinned.add(key)

    def get(self, key: str) -> Phrase | None:
        """Give a phrase, or None."""
        with self._lock:
            if key not in self._sizes:
                return None
            self._sizes.move_to_end(key)
        return self._patiently(lambda: self._read(key))

    def wants(self, key: str) -> bool:
        """Tell whether a phrase that is about to be computed shall be kept: if it is pinned, or said again."""
        with self._lock:
            if key in self._sizes:
                return False
            if key in self._pinned or key in self._said:
                return True
            self._said[key] = None
            if len(self._said) > _SEEN:
                self._said.popitem(last=False)
            return False

    def put(self, key: str, phrase: Phrase) -> None:
        """Keep a phrase, whole or not at all; others that were not said for long make room."""
        if not self._known:
            return
        content = _pack(phrase)
        temporary = self._folder / f".{key}.{os.getpid()}"
        try:
            if len(content) > self._limit or shutil.disk_usage(self._folder).free - len(content) < self._keep_free:
                return
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._folder / (key + _SUFFIX))
        except OSError as error:
            _LOG.warning("a phrase cannot be kept: %s", error)
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            return
        self._count(key, len(content))
        self._make_room()

    def _patiently(self, work: Callable[[], _T]) -> _T | None:
        """Have the disk asked; None where it does not answer in time."""
        try:
            result = self._aside.do(work, self._patience_s)
        except TimeoutError:
            if self._answers:
                _LOG.warning("the phrase cache %s does not answer: phrases are computed meanwhile", self._folder)
            self._answers = False
            return None
        self._answers = True
        return result

    def _read(self, key: str) -> Phrase | None:
        """Give a phrase that is there as it was written; else it is dropped. In the thread aside."""
        try:
            with (self._folder / (key + _SUFFIX)).open("rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                content = file.readall()
            proof, known = _Proof.of(status, content), self._proofs.get(key)
            phrase = _unpack(content, trusted=proof == known)
        except (OSError, ValueError) as error:
            _LOG.warning("a kept phrase cannot be read and is dropped: %s", error)
            self._count(key, None)
            self._delete([key])
            return None
        if proof != known:
            with self._lock:
                if key in self._sizes:
                    self._proofs[key] = proof
        return phrase

    def _load(self) -> None:
        """Take stock of what is there, first written first, and clear what an interrupted write left.

        Only of what has our names: the folder is the owner's choice.
        """
        found: list[tuple[float, str, int]] = []
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for path in self._folder.iterdir():
                if _PART.fullmatch(path.name):
                    path.unlink(missing_ok=True)
                elif _KEPT.fullmatch(path.name):
                    status = path.stat()
                    found.append((status.st_mtime, path.stem, status.st_size))
        except OSError as error:
            _LOG.warning("the phrase cache %s cannot be used: %s", self._folder, error)
        for _, key, size in sorted(found):
            self._count(key, size)
        self._make_room()
        self._known = True

    def _count(self, key: str, size: int | None) -> None:
        """Take note of how large a phrase is, as the last one that was said; None: it is gone."""
        with self._lock:
            self._total -= self._sizes.pop(key, 0)
            self._proofs.pop(key, None)
            if size is not None:
                self._sizes[key] = size
                self._total += size

    def _make_room(self) -> None:
        """Delete those that were not said for longest; pinned ones last."""
        gone = []
        with self._lock:
            if self._total > self._limit:
                for key in sorted(self._sizes, key=self._pinned.__contains__):
                    if self._total <= self._limit:
                        break
                    gone.append(key)
                    self._total -= self._sizes.pop(key)
                    self._proofs.pop(key, None)
        self._delete(gone)

    def _delete(self, keys: list[str]) -> None:
        for key in keys:
            try:
                (self._folder / (key + _SUFFIX)).unlink(missing_ok=True)
            except OSError as error:  # noqa: PERF203  each file for itself
                _LOG.warning("a kept phrase cannot be deleted: %s", error)


class Keeper(Worker):
    """The thread that writes phrases to the disk, so that no utterance waits for it."""

    def __init__(self, cache: PhraseCache, post: Callable[[Inbox], None]) -> None:
        super().__init__("cache", post)
        self._cache = cache
        self._waiting: queue.SimpleQueue[tuple[str, Phrase] | None] = queue.SimpleQueue()
        self._put = 0  # frames that ever waited, and that were written: each is counted by one thread
        self._taken = 0

    def keep(self, key: str, phrase: Phrase) -> None:
        """Queue a phrase, from one thread; its array is the keeper's from now on. One too many is given up."""
        if self._put - self._taken <= _MOST_WAITING:
            self._put += phrase.samples.size
            self._waiting.put((key, phrase))

    def stop(self) -> None:
        """End once all that waits is written. From any thread."""
        self._waiting.put(None)

    def work(self) -> None:
        """Write what comes until stopped."""
        while (item := self._waiting.get()) is not None:
            self.pulse.wake()
            self._cache.put(*item)
            self._taken += item[1].samples.size
            self.pulse.rest()


def pieces(samples: Samples, capacity: int) -> Iterator[Samples]:
    """Cut a phrase into views of whole periods that fit a buffer of `capacity` frames; the last one has the rest."""
    size = capacity // PERIOD * PERIOD
    for start in range(0, samples.size, size):
        yield samples[start : start + size]


def _pack(phrase: Phrase) -> bytes:
    places = np.array([*phrase.words, *phrase.sentences], dtype="<u4").tobytes()
    data = places + phrase.samples.astype("<f4").tobytes()
    counts = (phrase.samples.size, len(phrase.words), len(phrase.sentences))
    return _HEAD.pack(_MAGIC, *counts, hashlib.sha256(data).digest()) + data


def _unpack(content: bytes, *, trusted: bool = False) -> Phrase:
    """Give the phrase; ValueError where it is none. `trusted`: its hash was compared before."""
    if len(content) < _HEAD.size:
        raise ValueError("it is too short")
    magic, frames, words, sentences, digest = _HEAD.unpack_from(content)
    data = memoryview(content)[_HEAD.size :]
    marks = words + sentences
    is_whole = magic == _MAGIC and len(data) == 4 * (marks + frames)
    if not is_whole or not (trusted or hashlib.sha256(data).digest() == digest):
        raise ValueError("its content is not what was written")
    places = np.frombuffer(data[: 4 * marks], dtype="<u4").tolist()
    samples = np.frombuffer(data[4 * marks :], dtype="<f4").astype(np.float32, copy=False)
    return Phrase(samples, tuple(places[:words]), tuple(places[words:]))
