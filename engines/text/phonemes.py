"""Text to phonemes, and phonemes to what a Piper voice takes.

espeak-ng is C code, the text comes from a network, and one word of 140 bytes (`s's's'...`) is enough to overflow a
buffer of it: so it runs in a process of its own (`espeak_worker`), which may die without harm.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import socket
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engines.errors import (
    PhonemizerClosedError,
    PhonemizerDiedError,
    PhonemizerTimeoutError,
    PhonemizerUnavailableError,
    UnknownEspeakVoiceError,
)

_BEGIN, _END, _PAD = "^", "$", "_"  # Piper's names, in every voice's id map

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SUPERFLUOUS_ELLIPSIS: Final = re.compile(r"^…\s*|(?<=[.!?,;:])\s*…|…(?=\s*[!?,;:])")
_FINISHED_LINE: Final = re.compile("[.!?,;:。！？、，；：।؟،؛][\"'”’»›)\\]}」』】]*$")  # noqa: RUF001  marks of many scripts
_LANGUAGE_SWITCH: Final = re.compile(r"\([^()]*\)")  # "(en)", "(fr-be)": espeak-ng writes no other brackets


@dataclass(frozen=True, slots=True)
class Clause:
    """What espeak-ng says at a stretch."""

    phonemes: str
    """IPA, words separated by spaces. May be empty."""
    terminator: str
    """One of `. ! ? , : ;`, or nothing where the text had no such mark."""
    ends_sentence: bool


class Phonemizer:
    """Text to phonemes in a worker process, which is started on first use and again after it died.

    Thread-safe: calls wait for one another. `close` ends a call that waits for its answer.
    """

    def __init__(self, timeout_s: float) -> None:
        """`timeout_s`: how long one call may take, the start of a worker included."""
        self._timeout_s = timeout_s
        self._calling = threading.Lock()  # held by whoever may end a worker
        self._state = threading.Lock()  # guards the two below
        self._worker: _Worker | None = None
        self._closed = False

    def start(self) -> None:
        """Start the worker now, so that the first call need not. Does not wait until it is ready."""
        self._started()

    def phonemize(self, text: str, voice: str) -> list[Clause]:
        """Return the clauses of `text`, cleaned by `clean_text`, as the espeak-ng voice (such as "en-us") says it.

        PhonemizerDiedError or PhonemizerTimeoutError concern this call alone, the next one gets a new worker;
        UnknownEspeakVoiceError, PhonemizerUnavailableError and PhonemizerClosedError will come again.
        """
        cleaned = clean_text(text)
        request = json.dumps({"voice": voice, "text": cleaned}).encode("ascii") + b"\n"
        with self._calling:
            worker = self._started()
            try:
                reply = json.loads(worker.ask(request, self._timeout_s))
            except TimeoutError:
                self._discard(worker)
                raise PhonemizerTimeoutError(self._timeout_s, cleaned) from None
            except ConnectionError:
                returncode = self._discard(worker)
                if self._closed:
                    raise PhonemizerClosedError from None
                raise PhonemizerDiedError(returncode, cleaned) from None
            except BaseException:
                self._discard(worker)  # its answer would be taken for the next call's
                raise
        if isinstance(reply, dict):
            raise UnknownEspeakVoiceError(voice)
        return [Clause(_LANGUAGE_SWITCH.sub("", phonemes), mark, ends) for phonemes, mark, ends in reply]

    def close(self) -> None:
        """End the worker; a call that waits raises PhonemizerClosedError, and so does every later one. Idempotent."""
        with self._state:
            self._closed = True
            if self._worker is not None:
                self._worker.hang_up()
        with self._calling:
            if self._worker is not None:
                self._discard(self._worker)

    def _started(self) -> _Worker:
        with self._state:
            if self._closed:
                raise PhonemizerClosedError
            if self._worker is not None and self._worker.has_ended:  # while nobody asked it anything
                self._worker.stop()
                self._worker = None
            if self._worker is None:
                self._worker = _Worker()
            return self._worker

    def _discard(self, worker: _Worker) -> int:
        with self._state:
            self._worker = None
        return worker.stop()


class _Worker:
    """One worker process and our end of the socket that is its stdin and stdout."""

    def __init__(self) -> None:
        piper = importlib.util.find_spec("piper")  # found, never imported: that would load ONNX Runtime
        if piper is None or not piper.submodule_search_locations:
            raise PhonemizerUnavailableError("the package piper-tts is not installed")
        folder = Path(piper.submodule_search_locations[0])
        program = Path(__file__).with_name("espeak_worker.py")
        # -I -S: no site-packages to scan. Our own session: a terminal's Ctrl-C is for the daemon, which ends us.
        # A socket pair, because it can be shut down while another thread waits on it, and has time-outs.
        command = [sys.executable, "-I", "-S", str(program), str(folder), str(folder / "espeak-ng-data")]
        self._socket, theirs = socket.socketpair()
        with theirs:
            try:
                fd = theirs.fileno()
                self._process = subprocess.Popen(command, stdin=fd, stdout=fd, start_new_session=True)
            except OSError as error:
                self._socket.close()
                raise PhonemizerUnavailableError(str(error)) from error

    def ask(self, request: bytes, timeout_s: float) -> bytes:
        """Send one line, wait for one line. TimeoutError, or ConnectionError when the worker or our end is gone."""
        deadline = time.monotonic() + timeout_s
        self._socket.settimeout(timeout_s)
        self._socket.sendall(request)
        reply = bytearray()
        while not reply.endswith(b"\n"):
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise TimeoutError
            self._socket.settimeout(remaining_s)
            part = self._socket.recv(65536)
            if not part:
                raise ConnectionResetError
            reply += part
        return bytes(reply)

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def hang_up(self) -> None:
        """Wake whoever waits in `ask`. From any thread, until `stop`."""
        with contextlib.suppress(OSError):  # the worker has hung up first
            self._socket.shutdown(socket.SHUT_RDWR)

    def stop(self) -> int:
        """Kill the process if it lives, reap it, and return how it ended, as `subprocess` gives it."""
        self._process.kill()
        returncode = self._process.wait()
        self._socket.close()
        return returncode


def clean_text(text: str) -> str:
    r"""Return `text` without what espeak-ng would stumble over: NFC, no control characters but "\n".

    A NUL would end the text, a paragraph break would swallow the mark before it, a line break or an ellipsis would
    make no pause. So each line but the last ends with a mark of its own: where it had none it gets a comma if the next
    line goes on in lower case, else a full stop. An ellipsis becomes a comma, or a full stop at the end of a line.
    """
    # By way of UTF-16, two surrogates that belong together become their character, and lone ones U+FFFD (silent).
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    lines: list[str] = []
    new_paragraph = False
    for raw in unicodedata.normalize("NFC", text).splitlines():
        line = _without_ellipses(_CONTROL.sub(" ", raw).strip())
        if not line:
            new_paragraph = True
            continue
        if lines and not _FINISHED_LINE.search(lines[-1]):
            lines[-1] += "," if line[0].islower() and not new_paragraph else "."
        lines.append(line)
        new_paragraph = False
    return "\n".join(lines)


def _without_ellipses(line: str) -> str:
    line = re.sub(r"(?:\.{3,}|…)[.…]*", "…", line)
    line = _SUPERFLUOUS_ELLIPSIS.sub("", line).strip()
    # The look-behind keeps a run of spaces from being tried from each of its places.
    line = re.sub(r"(?<!\s)\s*…$", ".", line)
    return re.sub(r"(?<!\s)\s*…\s*", ", ", line)


def sentences_of(clauses: Sequence[Clause], *, max_phonemes: int, long_phonemes: int | None = None) -> list[list[str]]:
    """Return the phonemes of each sentence: NFD code points, as Piper's voices were trained on, marks included.

    A sentence of more than `max_phonemes` comes in several pieces, cut after a clause, else after a space, else
    anywhere. One of more than `long_phonemes` is cut after a clause where it can be. What holds no phoneme but marks
    and spaces is left out. ValueError where `max_phonemes` is below 1.
    """
    if max_phonemes < 1:
        raise ValueError(f"max_phonemes is {max_phonemes}")
    long_phonemes = min(long_phonemes or max_phonemes, max_phonemes)
    sentences: list[list[str]] = []
    sentence: list[str] = []
    clause_ends: list[int] = []
    for i, clause in enumerate(clauses):
        # A clause without a mark ends where espeak-ng's buffer did: its last word must not run into the next one.
        if sentence and sentence[-1] != " ":
            sentence.append(" ")
        sentence += unicodedata.normalize("NFD", clause.phonemes + clause.terminator)
        if clause.terminator and clause.terminator in ",:;":
            sentence.append(" ")
        clause_ends.append(len(sentence))
        if clause.ends_sentence or i == len(clauses) - 1:
            sentences += _pieces(sentence, clause_ends, max_phonemes, long_phonemes)
            sentence, clause_ends = [], []
    return [piece for piece in sentences if any(phoneme.isalpha() for phoneme in piece)]


def _pieces(sentence: list[str], clause_ends: list[int], most: int, long: int) -> list[list[str]]:
    pieces = []
    start = 0
    while len(sentence) - start > long:
        limit = start + most
        within = [end for end in clause_ends if start < end <= limit and end < len(sentence)]
        if not within and len(sentence) <= limit:
            break
        fitting = [end for end in within if end <= start + long] or within[:1]
        fitting = fitting or [end for end in range(start + 1, limit + 1) if sentence[end - 1] == " "]
        cut = fitting[-1] if fitting else limit
        pieces.append(sentence[start:cut])
        start = cut
    return [*pieces, sentence[start:]]


def merge_clusters(phonemes: Sequence[str], clusters: Sequence[Sequence[str]]) -> list[str]:
    """Join the phonemes that a voice takes as one, such as a, ɪ -> aɪ; the longest cluster that fits wins."""
    longest_first = sorted((list(cluster) for cluster in clusters if cluster), key=len, reverse=True)
    merged: list[str] = []
    i = 0
    while i < len(phonemes):
        size = next((len(c) for c in longest_first if list(phonemes[i : i + len(c)]) == c), 1)
        merged.append("".join(phonemes[i : i + size]))
        i += size
    return merged


def phoneme_ids(phonemes: Sequence[str], id_map: Mapping[str, Sequence[int]]) -> tuple[list[int], list[str]]:
    """Return the ids that a Piper voice takes for one sentence, and which phonemes it does not know, each once.

    Begin, pad, then each phoneme and a pad, then end. A phoneme that the voice lacks is tried by its NFD code points;
    those it lacks too are left out. KeyError where `id_map` itself lacks begin, pad or end.
    """
    pad = id_map[_PAD]
    ids = [*id_map[_BEGIN], *pad]
    unknown: dict[str, None] = {}
    for phoneme in phonemes:
        for part in [phoneme] if phoneme in id_map else unicodedata.normalize("NFD", phoneme):
            if part in id_map:
                ids += [*id_map[part], *pad]
            else:
                unknown[part] = None
    return [*ids, *id_map[_END]], list(unknown)
