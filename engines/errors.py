"""What can go wrong between a text and its samples."""

from __future__ import annotations

import signal
from typing import Final

from device.errors import one_line

EXCERPT_CHARACTERS: Final = 40
"""Enough to find the text again, too little to flood a log or to give a long message away."""


class SpeechError(Exception):
    """Root of every error raised in `engines`."""


class LoudnessError(SpeechError):
    """The loudness of sounds could not be measured."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the loudness of sounds cannot be measured: {reason}")


class PhonemizerUnavailableError(SpeechError):
    """The phonemizer's process cannot be started at all."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the phonemizer cannot be started: {reason}")


class GraphError(SpeechError):
    """A graph is not of the shape that the surgery expects."""


class EngineError(SpeechError):
    """A graph cannot be loaded or run."""

    def __init__(self, graph: str, reason: str) -> None:
        self.graph = graph
        self.reason = reason
        super().__init__(f"{graph} {reason}")


class AbandonedError(EngineError):
    """Whoever wanted the result wants it no more (`Engine.abandon`)."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "was abandoned")


class SynthesisError(SpeechError):
    """A voice was given a text and gave no usable sound."""

    def __init__(self, voice: str, reason: str) -> None:
        self.voice = voice
        self.reason = reason
        super().__init__(f"voice {voice}: {reason}")


class VoiceError(SpeechError):
    """A voice, or a file of one, cannot be used. The text names it and says what to do."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name} {reason}")


class SpeakerError(SpeechError):
    """A voice has no such speaker."""

    def __init__(self, voice: str, speaker: int | str, count: int, names: tuple[str, ...] = ()) -> None:
        self.voice = voice
        self.speaker = speaker
        known = f"0 to {count - 1}" + (f" or {', '.join(names[:10])}{', …' * (len(names) > 10)}" if names else "")  # noqa: PLR2004
        shown = excerpt(speaker) if isinstance(speaker, str) else speaker
        super().__init__(
            f"voice {voice} has no speaker {shown}: " + (f"it has {known}" if count > 1 else "it has just 0")
        )


class WatermarkError(SpeechError):
    """The watermark cannot be had. The text says what to do."""


class StyleError(SpeechError):
    """A style is not there, cannot be blended, or is none at all."""

    def __init__(self, style: str, reason: str) -> None:
        self.style = style
        self.reason = reason
        super().__init__(f"{excerpt(style)} {reason}")


class PhonemizerDiedError(SpeechError):
    """The phonemizer's process ended instead of answering. The next call starts a new one."""

    def __init__(self, returncode: int, text: str) -> None:
        self.returncode = returncode
        """As `subprocess` gives it: the exit status, or a signal's number below zero."""
        self.excerpt = excerpt(text)
        how = _signal_name(-returncode) if returncode < 0 else f"exit status {returncode}"
        super().__init__(f"the phonemizer died ({how}) on {self.excerpt!r}")


class PhonemizerTimeoutError(SpeechError):
    """The phonemizer did not answer in time and was killed. The next call starts a new one."""

    def __init__(self, timeout_s: float, text: str) -> None:
        self.timeout_s = timeout_s
        self.excerpt = excerpt(text)
        super().__init__(f"the phonemizer gave no answer within {timeout_s:g} s to {self.excerpt!r}")


class PhonemizerClosedError(SpeechError):
    """The phonemizer was closed while a call waited or before it began."""

    def __init__(self) -> None:
        super().__init__("the phonemizer is closed")


class UnknownEspeakVoiceError(SpeechError):
    """espeak-ng has no voice of this name: the voice pack names one that this installation lacks."""

    def __init__(self, voice: str) -> None:
        self.voice = voice
        super().__init__(f"espeak-ng has no voice {excerpt(voice)!r}")


class SsmlError(SpeechError):
    """A document is no SSML, does what is refused, or is too much."""

    def __init__(self, code: str, reason: str, line: int, column: int) -> None:
        self.code = code
        """`ssml`: not well-formed; `ssml_unsafe`: with a document type or entities; `ssml_limit`: too much; `style`: a
        style that is none."""
        self.reason = reason
        self.line = line
        """From 1."""
        self.column = column
        """From 0."""
        super().__init__(f"the SSML cannot be used (line {line}, column {column}): {reason}")


def excerpt(text: str) -> str:
    """Return the first characters of a text from outside, fit for one line of a log."""
    cut = text[:EXCERPT_CHARACTERS]
    return one_line(cut) + ("…" if len(text) > len(cut) else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name of their own
        return f"signal {number}"


class RatingUnavailableError(SpeechError):
    """The graph that rates speech is not installed."""

    def __init__(self) -> None:
        super().__init__("speech cannot be rated: the package speechmos is not installed (pip install 'speakd[check]')")
