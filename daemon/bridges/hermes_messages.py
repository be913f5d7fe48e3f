"""The messages of the Hermes protocol that concern a voice and a loudspeaker, and their topics.

As rhasspy-hermes 0.6 has them (`rhasspyhermes.tts`, `rhasspyhermes.audioserver`): the same fields, null where they say
nothing. Two topics begin with `rhasspy/` there and with `hermes/` in its documentation: both are heard.
"""

from __future__ import annotations

from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from daemon.errors import PayloadError

SAY: Final = "hermes/tts/say"
SAY_FINISHED: Final = "hermes/tts/sayFinished"
TTS_ERROR: Final = "hermes/error/tts"
GET_VOICES: Final = ("rhasspy/tts/getVoices", "hermes/tts/getVoices")
TOGGLE_ON: Final = "hermes/audioServer/toggleOn"
TOGGLE_OFF: Final = "hermes/audioServer/toggleOff"
SET_VOLUME: Final = ("rhasspy/audioServer/setVolume", "hermes/audioServer/setVolume")
PLAY_ERROR: Final = "hermes/error/audioServer/play"

_PLAY_FORM: Final = ("hermes", "audioServer", "", "playBytes", "")


def play_filter(site_id: str) -> str:
    """Give the filter of the sounds to play at a site."""
    return f"hermes/audioServer/{site_id}/playBytes/+"


def play_finished(site_id: str) -> str:
    """Give the topic that tells the end of a sound."""
    return f"hermes/audioServer/{site_id}/playFinished"


def parse_play(topic: str) -> tuple[str, str] | None:
    """Give the site and the request that a topic of a sound names; None for any other topic."""
    parts = topic.split("/")
    form = [part if wanted else "" for part, wanted in zip(parts, _PLAY_FORM, strict=False)]
    return (parts[2], parts[4]) if len(parts) == len(_PLAY_FORM) and tuple(form) == _PLAY_FORM else None


class Message(BaseModel):
    """What every message may carry. Unknown fields are passed over: Hermes has grown some."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False
    )

    def to_json(self) -> str:
        """Give the payload."""
        return self.model_dump_json(by_alias=True)


class Sited(Message):
    """A message that concerns one site."""

    site_id: str = "default"


class Say(Sited):
    """Say a text."""

    text: str
    lang: str | None = None
    """Such as `it_IT`."""
    id: str | None = None
    """Of the request; comes back in the answer."""
    session_id: str | None = None
    volume: float | None = None
    """Factor, 0 to 1."""


class SayFinished(Sited):
    """It was said, or somebody ended it."""

    id: str | None = None
    session_id: str | None = None


class ErrorMessage(Sited):
    """It was not said, or not played."""

    error: str
    context: str | None = None
    """The request's id."""
    session_id: str | None = None


class GetVoices(Sited):
    """Ask which voices there are."""

    id: str | None = None


class VoiceEntry(Message):
    """One of them."""

    voice_id: str
    description: str | None = None


class VoicesMessage(Sited):
    """The answer."""

    voices: tuple[VoiceEntry, ...]
    id: str | None = None


class PlayFinished(Message):
    """A sound has been played, or somebody ended it."""

    id: str | None = None
    session_id: str | None = None


class Toggle(Sited):
    """Have the loudspeaker speak, or not."""


class SetVolume(Sited):
    """Set the loudspeaker's volume."""

    volume: float
    """Factor, 0 to 1."""


M = TypeVar("M", bound=Message)


def parse(kind: type[M], payload: bytes) -> M:
    """Read a payload. PayloadError names what is wrong."""
    try:
        return kind.model_validate_json(payload or b"{}")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PayloadError("field" if where else "json", f"{where}: {first['msg']}".removeprefix(": ")) from None
