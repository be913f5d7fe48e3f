"""The log as systemd's journal takes it: a record with fields, so that `journalctl SPEAKD_COMMAND=…` finds one command.

The protocol is systemd's "native" one: a datagram of lines KEY=value; a value of several lines goes with its length.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from typing import Final

_SOCKET: Final = "/run/systemd/journal/socket"

_PRIORITIES: Final = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""Level -> syslog(3); what is below is 7."""

_FIELDS: Final = ("command", "session", "stage")
"""What a log call may give in `extra`: fields SPEAKD_COMMAND and so on."""

_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

_LONGEST: Final = 32768
"""Bytes of one message: a datagram has its limit, and nobody reads more."""


def handler(stream_id: str | None = None, socket_path: str = _SOCKET) -> logging.Handler | None:
    """Give what logs to the journal, if stderr goes there anyway; else None: a terminal, a file, a container's log.

    `stream_id` is `$JOURNAL_STREAM`, by which systemd tells.
    """
    told = os.environ.get("JOURNAL_STREAM", "") if stream_id is None else stream_id
    try:
        stat = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return None
    if told != f"{stat.st_dev}:{stat.st_ino}":
        return None
    return JournalHandler(socket_path)


class JournalHandler(logging.Handler):
    """Sends records with their fields; what the journal does not take goes to stderr, which it reads as well."""

    def __init__(self, socket_path: str = _SOCKET) -> None:
        super().__init__()
        self._path = socket_path

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record. Like every handler it raises nothing."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
                opened.sendto(_datagram(record, self._text(record)), self._path)
        except OSError:
            sys.stderr.write(f"{self._text(record)}\n")
        except Exception:  # noqa: BLE001  a wrong log call: logging's own way to tell
            self.handleError(record)

    def _text(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + (self.formatter or logging.Formatter()).formatException(record.exc_info)
        return _CONTROL.sub(" ", text)


def _datagram(record: logging.LogRecord, text: str) -> bytes:
    fields = {
        "MESSAGE": text,
        "PRIORITY": str(next((priority for level, priority in _PRIORITIES if record.levelno >= level), 7)),
        "SYSLOG_IDENTIFIER": "speakd",
        "LOGGER": record.name,
        "THREAD_NAME": record.threadName or "",
        "CODE_FILE": record.pathname,
        "CODE_LINE": str(record.lineno),
        "CODE_FUNC": record.funcName or "",
    }
    for name in _FIELDS:
        value = getattr(record, name, None)
        if value is not None:
            fields[f"SPEAKD_{name.upper()}"] = _CONTROL.sub(" ", str(value))
    return b"".join(_line(name, value) for name, value in fields.items())


def _line(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "replace")[:_LONGEST]
    return name.encode() + b"\n" + len(data).to_bytes(8, "little") + data + b"\n"
