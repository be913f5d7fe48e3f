"""The worker process: what it says, and that whatever becomes of it stays there."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from piper.phonemize_espeak import ESPEAK_DATA_DIR, EspeakPhonemizer

import engines.text.phonemes
from engines.errors import (
    PhonemizerClosedError,
    PhonemizerDiedError,
    PhonemizerTimeoutError,
    PhonemizerUnavailableError,
    UnknownEspeakVoiceError,
)
from engines.text.phonemes import Clause, Phonemizer, sentences_of
from engines.text.sentences import blocks

PATIENT_S = 60.0
SOON_S = 0.1
WORKER = Path(engines.text.phonemes.__file__).with_name("espeak_worker.py")
HELLO = [Clause("həlˈoʊ", ",", ends_sentence=False), Clause("wˈɜːld", ".", ends_sentence=True)]


@pytest.fixture
def phonemizer() -> Iterator[Phonemizer]:
    phonemizer = Phonemizer(PATIENT_S)
    yield phonemizer
    phonemizer.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Phonemizer]:
    phonemizer = Phonemizer(PATIENT_S)
    yield phonemizer
    phonemizer.close()


def children() -> set[int]:
    """Zombies are among them."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for children in lists for pid in children.read_text().split()}


def descriptors() -> set[str]:
    return {f"{fd.name} {fd.readlink()}" for fd in Path("/proc/self/fd").iterdir() if fd.exists()}


def start(phonemizer: Phonemizer) -> int:
    """Start a new worker and return its process id."""
    before = children()
    assert phonemizer.phonemize("Hello, world.", "en-us") == HELLO
    (pid,) = children() - before
    return pid


def said(clauses: list[Clause]) -> list[str]:
    return ["".join(sentence) for sentence in sentences_of(clauses, max_phonemes=500)]


@pytest.mark.parametrize(
    ("voice", "text"),
    [
        ("en-us", "Hello, world."),
        ("en-us", "The little bottle is at 40 %; bring it to room 3: now!"),
        ("en-us", "Are you there? I can't see you. Dr. Smith's robot said “yes”."),
        ("en-us", "No mark at the end"),
        ("de", "Der Akku ist fast leer, bitte räumen Sie den Weg."),
        ("de", "Können Sie mich hören? Der Computer ist im Download-Modus!"),
        ("de", "Zimmer 3: links; Zimmer 4: rechts."),
        ("de", "Füße, Größe, Übermut und 21 Bäume"),
        ("fr", "Le robot arrive dans 5 minutes, attendez-moi."),
        ("fr", "Où êtes-vous ? Je suis à l'entrée !"),
        ("fr", "Un bon vin blanc ; un garçon français."),
        ("fr", "Le parking est en streaming"),
    ],
)
def test_phonemes_are_those_of_piper(shared: Phonemizer, voice: str, text: str) -> None:
    expected = ["".join(sentence) for sentence in EspeakPhonemizer().phonemize(voice, text)]
    assert said(shared.phonemize(text, voice)) == expected


def test_language_switches_are_not_spoken(shared: Phonemizer) -> None:
    (sentence,) = said(shared.phonemize("le parking est en streaming", "fr"))
    assert sentence == "lə- pˈɑːkɪŋ ɛt ɑ̃ stɹˈiːmɪŋ"


def test_lines_and_ellipses_make_a_pause(shared: Phonemizer) -> None:
    assert said(shared.phonemize("List:\nApple\nPear", "en-us")) == ["lˈɪst: ˈæpəl.", "pˈɛɹ"]
    assert said(shared.phonemize("wait... go", "en-us")) == ["wˈeɪt, ɡˈoʊ"]


def test_nothing_is_lost_behind_a_nul_or_a_question(shared: Phonemizer) -> None:
    assert said(shared.phonemize("one\0two", "en-us")) == said(shared.phonemize("one two", "en-us"))
    assert said(shared.phonemize("Ready? Go now.", "en-us")) == ["ɹˈɛdi?", "ɡˌoʊ nˈaʊ."]


@pytest.mark.parametrize("text", ["", "   ", "...", "…", "\u200b", "\0", "?!", "\ufffd", "()"])
def test_nothing_to_say_is_no_sentence(shared: Phonemizer, text: str) -> None:
    assert said(shared.phonemize(text, "en-us")) == []


def test_an_emoji_has_a_name(shared: Phonemizer) -> None:
    assert said(shared.phonemize("🙂", "en-us")) == ["slˈaɪtli smˈaɪlɪŋ fˈeɪs"]


@pytest.mark.parametrize("max_chars", [700, 20_000])
def test_a_text_without_a_stop_comes_in_bounded_pieces(shared: Phonemizer, max_chars: int) -> None:
    texts = blocks("word " * 4000, max_chars=max_chars)
    pieces = [piece for text in texts for piece in said(shared.phonemize(text, "en-us"))]
    assert max(len(piece) for piece in pieces) <= 500
    assert " ".join(pieces).split() == ["wˈɜːd"] * 4000


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=120), voice=st.sampled_from(["en-us", "de", "fr"]))
def test_any_bytes_are_survived(shared: Phonemizer, data: bytes, voice: str) -> None:
    for sentence in said(shared.phonemize(data.decode(errors="replace"), voice)):
        assert not set(sentence) & set("()\0\n")


@pytest.mark.parametrize("repeats", [68, 72, 1000])
def test_a_text_that_overflows_espeak_harms_no_other(phonemizer: Phonemizer, repeats: int) -> None:
    # piper-tts 1.8: text is lost from 68 on, SIGSEGV comes from 72 on; another version may well live.
    with contextlib.suppress(PhonemizerDiedError):
        phonemizer.phonemize("s'" * repeats, "en-us")
    assert phonemizer.phonemize("Hello, world.", "en-us") == HELLO


def test_a_worker_that_died_between_calls_costs_nothing(phonemizer: Phonemizer) -> None:
    pid = start(phonemizer)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert start(phonemizer) != pid


def test_a_worker_that_dies_during_a_call_fails_that_call(phonemizer: Phonemizer) -> None:
    pid = start(phonemizer)
    os.kill(pid, signal.SIGSTOP)
    killer = threading.Timer(SOON_S, os.kill, (pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(PhonemizerDiedError, match="SIGKILL") as caught:
        phonemizer.phonemize("x" * 1000, "en-us")
    killer.join()
    assert caught.value.excerpt == "x" * 40 + "…"
    assert start(phonemizer) != pid


@pytest.mark.parametrize("characters", [10, 2_000_000])  # the latter: more than a socket takes from us
def test_a_worker_that_hangs_is_killed_in_time(characters: int) -> None:
    before = children()
    phonemizer = Phonemizer(SOON_S)
    phonemizer.start()
    (pid,) = children() - before
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(PhonemizerTimeoutError, match=r"0\.1 s"):
        phonemizer.phonemize("x" * characters, "en-us")
    assert SOON_S <= time.monotonic() - began < PATIENT_S / 2
    assert children() == before
    phonemizer.start()
    assert len(children() - before) == 1
    phonemizer.close()


def test_an_unknown_voice_is_named_and_the_worker_lives(phonemizer: Phonemizer) -> None:
    pid = start(phonemizer)
    for voice in ("xx-yy", "xx\nyy", "", "a\0b", "\ud800"):
        with pytest.raises(UnknownEspeakVoiceError, match="no voice '") as caught:
            phonemizer.phonemize("Hello.", voice)
        assert caught.value.voice == voice
        assert str(caught.value).isprintable()
    assert pid in children()
    assert phonemizer.phonemize("Hello, world.", "en-us") == HELLO


def test_close_ends_a_call_that_waits(phonemizer: Phonemizer) -> None:
    pid = start(phonemizer)
    os.kill(pid, signal.SIGSTOP)
    closer = threading.Timer(SOON_S, phonemizer.close)
    closer.start()
    with pytest.raises(PhonemizerClosedError):
        phonemizer.phonemize("Hello.", "en-us")
    closer.join()
    assert pid not in children()


def test_a_closed_phonemizer_refuses(phonemizer: Phonemizer) -> None:
    phonemizer.close()
    phonemizer.close()
    with pytest.raises(PhonemizerClosedError):
        phonemizer.start()
    with pytest.raises(PhonemizerClosedError):
        phonemizer.phonemize("Hello.", "en-us")


def test_nothing_is_left_behind() -> None:
    before = children(), descriptors()
    phonemizer = Phonemizer(PATIENT_S)
    for _ in range(3):
        pid = start(phonemizer)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    start(phonemizer)
    assert len(children() - before[0]) == 1
    phonemizer.close()
    assert (children(), descriptors()) == before


def test_start_starts_and_the_call_uses_it(phonemizer: Phonemizer) -> None:
    before = children()
    phonemizer.start()
    started = children() - before
    phonemizer.start()
    assert phonemizer.phonemize("Hello, world.", "en-us") == HELLO
    assert len(started) == 1
    assert children() - before == started


def test_the_worker_is_small_and_out_of_the_reach_of_ctrl_c(phonemizer: Phonemizer) -> None:
    pid = start(phonemizer)
    loaded = Path(f"/proc/{pid}/maps").read_text()
    assert "espeakbridge" in loaded
    assert "onnxruntime" not in loaded
    assert "numpy" not in loaded
    assert os.getsid(pid) == pid
    # What C code prints goes where errors go, not into the answers.
    assert Path(f"/proc/{pid}/fd/1").readlink() == Path(f"/proc/{pid}/fd/2").readlink()


def test_without_piper_the_error_says_so(phonemizer: Phonemizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(PhonemizerUnavailableError, match="piper-tts"):
        phonemizer.start()


def test_without_an_interpreter_nothing_leaks(phonemizer: Phonemizer, monkeypatch: pytest.MonkeyPatch) -> None:
    before = children(), descriptors()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(PhonemizerUnavailableError, match="/nowhere/python"):
        phonemizer.start()
    assert (children(), descriptors()) == before


def test_a_worker_that_cannot_load_is_reported_by_its_exit_status(
    phonemizer: Phonemizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.find_spec("engines")  # a package without the extension
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: spec)
    with pytest.raises(PhonemizerDiedError, match="exit status 1"):
        phonemizer.phonemize("Hello.", "en-us")


def test_the_worker_ends_with_its_stdin() -> None:
    requests = [{"voice": "en-us", "text": "Go."}, {"voice": "none", "text": "Go."}]
    done = subprocess.run(
        [sys.executable, "-I", "-S", WORKER, ESPEAK_DATA_DIR.parent, ESPEAK_DATA_DIR],
        input="".join(json.dumps(request) + "\n" for request in requests),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=PATIENT_S,
    )
    answer, refusal = map(json.loads, done.stdout.splitlines())
    assert answer == [["ɡˈoʊ", ".", True]]
    assert "none" in refusal["error"]


def test_the_worker_ends_with_a_killed_daemon() -> None:
    program = (
        "from pathlib import Path\n"
        "from engines.text.phonemes import Phonemizer\n"
        "phonemizer = Phonemizer(60)\n"
        "phonemizer.phonemize('Hello.', 'en-us')\n"
        "print(*Path('/proc/thread-self/children').read_text().split(), flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as daemon:
        assert daemon.stdout
        worker = os.pidfd_open(int(daemon.stdout.readline()))
        daemon.kill()
        ended, _, _ = select.select([worker], [], [], PATIENT_S)
        os.close(worker)
    assert ended == [worker]
