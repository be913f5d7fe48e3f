"""What the configuration wants of the loudspeaker."""

from __future__ import annotations

from collections.abc import Callable

from daemon.config import Config, journal_file
from daemon.ducking import Ducking
from daemon.inbox import Inbox
from daemon.level import Level, Night
from daemon.loudspeaker import Manners
from device.mixer import Mixer


def manners_of(config: Config) -> Manners:
    """Say how a loudspeaker, which is no file, is to be treated."""
    audio = config.audio
    return Manners(
        keeps=True,
        idle_close_s=float(audio.idle_close_s),
        wake_s=audio.wake_ms / 1000,
        wake_after_s=float(audio.wake_after_s),
        clicks=True,
    )


def level_of(config: Config) -> Level:
    """Make what decides how loud it is; the mixer is not asked for anything yet."""
    audio = config.audio
    mixer = Mixer(audio.mixer, audio.device) if audio.mixer and audio.output == "alsa" else None
    night = None
    if audio.night:
        begin, end = audio.night.split("-")
        night = Night(_minutes(begin), _minutes(end), audio.night_volume)
    return Level(mixer, night)


def ducking_of(config: Config, post: Callable[[Inbox], None]) -> Ducking | None:
    """Make what turns other programs' sound down, where that is wanted."""
    audio = config.audio
    if not audio.duck_db or audio.output != "alsa":
        return None
    return Ducking(audio.duck_db, journal_file(config).with_name("ducked.json"), post)


def _minutes(time_of_day: str) -> int:
    hours, minutes = time_of_day.split(":")
    return int(hours) * 60 + int(minutes)
