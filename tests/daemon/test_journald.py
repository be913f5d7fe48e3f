"""What the journal gets: real fields, and a text that cannot forge any."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.journald import JournalHandler, handler


class Journal:
    """Takes what systemd's journal takes."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(5)

    def record(self) -> dict[str, str]:
        """Read one datagram as sd_journal_send(3)'s protocol has it."""
        rest, fields = self.socket.recv(1 << 20), {}
        while rest:
            name, _, rest = rest.partition(b"\n")
            assert b"=" not in name
            size = int.from_bytes(rest[:8], "little")
            fields[name.decode()] = rest[8 : 8 + size].decode()
            assert rest[8 + size : 9 + size] == b"\n"
            rest = rest[9 + size :]
        return fields


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    listening = Journal(tmp_path / "socket")
    yield listening
    listening.socket.close()


@pytest.fixture
def log(journal: Journal) -> Iterator[logging.Logger]:
    logger = logging.getLogger("daemon.ledger-of-a-test")
    sends = JournalHandler(journal.path)
    logger.addHandler(sends)
    yield logger
    logger.removeHandler(sends)


def test_a_record_has_fields_to_search_by(journal: Journal, log: logging.Logger) -> None:
    fields = {"command": "a1", "session": "tour", "stage": "audio"}
    log.warning("command %s failed", "a1", extra=fields)
    record = journal.record()
    assert record["MESSAGE"] == "command a1 failed"
    assert record["PRIORITY"] == "4"
    assert (record["SPEAKD_COMMAND"], record["SPEAKD_SESSION"], record["SPEAKD_STAGE"]) == ("a1", "tour", "audio")
    assert record["SYSLOG_IDENTIFIER"] == "speakd"
    assert "test_journald" in record["CODE_FILE"]


def test_what_is_not_known_is_no_field(journal: Journal, log: logging.Logger) -> None:
    log.error("failed", extra={"command": "a1", "session": None})
    assert not {"SPEAKD_SESSION", "SPEAKD_STAGE"} & set(journal.record())


def test_text_from_outside_forges_nothing(journal: Journal, log: logging.Logger) -> None:
    log.warning("rejected: %s", "x\nPRIORITY=0\x1b[31m\x00\ud800", extra={"command": "a\n_UID=0"})
    record = journal.record()
    assert record["PRIORITY"] == "4"
    assert "_UID" not in record
    assert "\x1b" not in record["MESSAGE"]
    assert "\x00" not in record["MESSAGE"]


def test_an_exception_comes_with_its_trace(journal: Journal, log: logging.Logger) -> None:
    try:
        int("no such thing")
    except ValueError:
        log.exception("died")
    message = journal.record()["MESSAGE"]
    assert message.startswith("died\nTraceback")
    assert message.endswith("no such thing'")


def test_what_the_journal_does_not_take_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    JournalHandler(str(tmp_path / "nobody")).emit(
        logging.LogRecord("x", logging.INFO, "x.py", 1, "still told", None, None)
    )
    assert capsys.readouterr().err == "still told\n"


def test_only_where_stderr_is_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "log").open("w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        stat = (tmp_path / "log").stat()
        assert handler("") is None
        assert handler("1:2") is None
        assert isinstance(handler(f"{stat.st_dev}:{stat.st_ino}"), JournalHandler)
