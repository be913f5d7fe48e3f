"""Hermes, the protocol of Rhasspy: a voice and a loudspeaker for its dialogues.

Each `say` has one end: `sayFinished` once the last sample has been heard or somebody ended it, or else an error; each
sound the same. Whom an answer is for travels with the command, so that it finds its way even after a restart.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from daemon.bridges import hermes_messages as hermes
from daemon.bridges.line import Line
from daemon.commands import Control, MuteSet, Speak, VoicesGet, VolumeSet
from daemon.config import Config
from daemon.errors import PayloadError
from daemon.events import Cancelled, Event, Expired, Failed, Finished, Rejected, Superseded, Voices
from daemon.inbox import ControlReceived, Inbox, Origin, PayloadRefused, SpeakReceived
from daemon.mqtt_types import Received
from daemon.payloads import make_command, parse_command
from device.clip import LONGEST_S, read_wav
from device.errors import ClipError
from device.format import Samples, seconds

_MARK: Final = "hermes "
"""Begins the routes that are ours."""

_MOST_WAITING_S: Final = 2 * LONGEST_S
"""Of sound that waits or plays: 46 MB. The queue's own bounds are for texts."""


_Asked: TypeAlias = Literal["say", "voices", "play", "nothing"]

_ASKED: Final[Mapping[str, _Asked]] = {
    hermes.SAY: "say",
    hermes.TOGGLE_ON: "nothing",
    hermes.TOGGLE_OFF: "nothing",
    **dict.fromkeys(hermes.GET_VOICES, "voices"),
    **dict.fromkeys(hermes.SET_VOLUME, "nothing"),
}
"""The topics that are heard, but for those of sounds, and what is asked there."""


class _Route(hermes.Message):
    """Whom an answer is for."""

    asked: _Asked
    site_id: str = "default"
    id: str | None = None
    session_id: str | None = None
    topic: str = ""
    """Of an answer that may go to more than one."""


class Hermes:
    """One of the bridges."""

    def __init__(self, config: Config, post: Callable[[Inbox], None]) -> None:
        """Prepare, connect to nothing. BrokerConfigError where the configuration is of no use."""
        self._sites = frozenset(config.hermes.site_ids)
        self._largest = config.hermes.max_wav_mb * 2**20
        self._max_text_chars = config.limits.max_text_chars
        self._post = post
        self._clips: dict[str, float] = {}
        """Command -> seconds of the sound that it holds. For two threads, with the lock."""
        self._lock = threading.Lock()
        filters = (*_ASKED, *(hermes.play_filter(site) for site in sorted(self._sites)))
        self._line = Line(config, "hermes", filters, self, post, largest=self._largest)

    def start(self) -> None:
        """Connect in the background."""
        self._line.start()

    def stop(self) -> None:
        """Disconnect. Idempotent."""
        self._line.stop()

    def connected(self) -> None:
        """Do nothing: nothing is to be told."""

    def published(self, _number: int) -> None:
        """Do nothing: nobody waits for it."""

    def received(self, message: Received) -> None:
        """Make a command of a message, or a refusal; what concerns other sites is passed over."""
        topic, played = message.topic, hermes.parse_play(message.topic)
        if played is not None and played[0] in self._sites:
            self._play(_Route(asked="play", site_id=played[0], id=played[1]), message)
            return
        if topic not in _ASKED:
            message.acknowledge()
            return
        route = _Route(asked=_ASKED[topic])
        try:
            route = route.model_copy(update={"site_id": hermes.parse(hermes.Sited, message.payload).site_id})
            if route.site_id not in self._sites:
                message.acknowledge()
                return
            _check_fresh(message)
            command: Speak | Control
            if topic == hermes.SAY:
                say = hermes.parse(hermes.Say, message.payload)
                route = route.model_copy(update={"id": say.id, "session_id": say.session_id})
                command = self._speak(say)
            elif topic in hermes.GET_VOICES:
                wanted = hermes.parse(hermes.GetVoices, message.payload)
                route = route.model_copy(update={"id": wanted.id, "topic": topic.replace("getVoices", "voices")})
                command = VoicesGet()
            elif topic in hermes.SET_VOLUME:
                volume = hermes.parse(hermes.SetVolume, message.payload).volume
                command = make_command(VolumeSet, {"volume": volume})
            else:
                command = MuteSet(muted=topic == hermes.TOGGLE_OFF)
        except PayloadError as error:
            # Of what names no site, only one device on the broker shall complain.
            if route.site_id in self._sites:
                self._refuse(error, route, message)
            else:
                message.acknowledge()
            return
        if isinstance(command, Speak):
            self._post(SpeakReceived(command, time.monotonic(), _origin(route), message.acknowledge))
        else:
            self._post(ControlReceived(command, _origin(route), message.acknowledge))

    def told(self, event: Event, origin: Origin) -> None:
        """Answer whoever asked in our words."""
        if not origin.route.startswith(_MARK):
            return
        route = _Route.model_validate_json(origin.route[len(_MARK) :])
        match event:
            case Finished(id=command_id) | Cancelled(id=command_id) | Superseded(id=command_id):
                self._forget(command_id)
                self._tell_finished(route)
            case Failed(id=command_id, reason=reason):
                self._forget(command_id)
                self._tell_error(route, reason)
            case Expired(id=command_id):
                self._forget(command_id)
                self._tell_error(route, "it was not begun in time")
            case Rejected(id=command_id, reason=reason):
                self._forget(command_id)
                self._tell_error(route, reason)
            case Voices(voices=voices):
                entries = tuple(hermes.VoiceEntry(voice_id=one.name, description=one.language) for one in voices)
                answer = hermes.VoicesMessage(voices=entries, id=route.id, site_id=route.site_id)
                self._line.publish(route.topic, answer.to_json())
            case _:
                pass

    def _speak(self, say: hermes.Say) -> Speak:
        fields = {
            "id": _new_id(),
            "text": say.text,
            "language": say.lang.replace("_", "-").lower() if say.lang else None,
            "session": say.session_id or None,
            "volume": 1.0 if say.volume is None else say.volume,
        }
        return parse_command(Speak, json.dumps(fields).encode(), max_text_chars=self._max_text_chars)

    def _play(self, route: _Route, message: Received) -> None:
        command = Speak(id=_new_id(), text="", cache=False)
        try:
            _check_fresh(message)
            clip = self._read(message.payload)
            self._reserve(command.id, clip)
        except PayloadError as error:
            self._refuse(error, route, message)
        else:
            self._post(SpeakReceived(command, time.monotonic(), _origin(route), message.acknowledge, clip=clip))

    def _read(self, payload: bytes) -> Samples:
        if len(payload) > self._largest:
            raise PayloadError("too_large", f"the sound has {len(payload)} bytes, {self._largest} are allowed")
        try:
            return read_wav(payload)
        except ClipError as error:
            raise PayloadError("sound", str(error)) from error

    def _reserve(self, command_id: str, clip: Samples) -> None:
        """Take note of the memory that a sound takes. PayloadError where it is too much."""
        with self._lock:
            if sum(self._clips.values()) + seconds(clip.size) > _MOST_WAITING_S:
                raise PayloadError("queue_full", f"{_MOST_WAITING_S:.0f} s of sound wait already")
            self._clips[command_id] = seconds(clip.size)

    def _forget(self, command_id: str | None) -> None:
        with self._lock:
            self._clips.pop(command_id or "", None)

    def _refuse(self, error: PayloadError, route: _Route, message: Received) -> None:
        self._post(PayloadRefused(error, _origin(route), message.acknowledge))

    def _tell_finished(self, route: _Route) -> None:
        if route.asked == "say":
            done = hermes.SayFinished(site_id=route.site_id, id=route.id, session_id=route.session_id)
            self._line.publish(hermes.SAY_FINISHED, done.to_json())
        elif route.asked == "play":
            played = hermes.PlayFinished(id=route.id, session_id=route.session_id)
            self._line.publish(hermes.play_finished(route.site_id), played.to_json())

    def _tell_error(self, route: _Route, reason: str) -> None:
        message = hermes.ErrorMessage(
            error=reason, site_id=route.site_id, context=route.id, session_id=route.session_id
        )
        spoken = route.asked in {"say", "voices"}
        self._line.publish(hermes.TTS_ERROR if spoken else hermes.PLAY_ERROR, message.to_json())


def _origin(route: _Route) -> Origin:
    return Origin(route=_MARK + route.to_json())


def _check_fresh(message: Received) -> None:
    if message.retained:
        raise PayloadError("retained", "a retained message would be heard at each reconnect: publish it without")


def _new_id() -> str:
    """Make a command's id: those of Hermes need not differ, so that the second would pass for a repetition."""
    return f"hermes-{uuid.uuid4().hex}"
