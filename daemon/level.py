"""How loud: from the volume that people set to the factor on the samples."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from device.errors import MixerError
from device.mixer import Mixer

_LOG = logging.getLogger(__name__)

_LOUDNESS: Final = math.log2(10) / 2
"""Sounds seem half as loud with a tenth of the power, 10 dB less (Stevens' law, for speech as well as for tones):
volume 0.5 is heard as half of volume 1, and each step of a slider as one step. 0.5 to this is -10 dB."""


def gain_of(volume: float) -> float:
    """Give the factor on the samples for a volume of 0 to 2: 0 is silence, 1 the voice's own level, 2 twice that.

    Below 1 the volume is how loud it seems (`_LOUDNESS`); above, each step adds as many dB, 6 in all: more would only
    be cut off at full scale.
    """
    if volume >= 1:
        return math.pow(2, volume - 1)
    return math.pow(volume, _LOUDNESS)


@dataclass(frozen=True, slots=True)
class Night:
    """A time of day with a largest volume."""

    start_min: int
    """Minutes since midnight, local time; it may be later than `end_min`."""
    end_min: int
    volume: float

    def limit(self, local: time.struct_time) -> float:
        """Give the largest volume at this moment; infinite by day."""
        now = local.tm_hour * 60 + local.tm_min
        if self.start_min <= self.end_min:
            night = self.start_min <= now < self.end_min
        else:
            night = now >= self.start_min or now < self.end_min
        return self.volume if night else float("inf")


class Level:
    """The loudspeaker's volume. `set` is for any thread, everything else for the player's.

    While it plays, the player does not wait for a card's control: through PulseAudio that took 5 to 10 ms, and with a
    load of eight on two cores 11 of 40 steps of the volume were heard as gaps.
    """

    def __init__(
        self,
        mixer: Mixer | None = None,
        night: Night | None = None,
        localtime: Callable[[], time.struct_time] = time.localtime,
    ) -> None:
        """`mixer`: the card's own control, which takes what it can. It is asked for nothing before `settle`."""
        self.gain = 1.0
        """The factor on the samples, as last settled."""
        self.changed = False
        """Whether `settle` or `follow` has something to do."""
        self._wanted = (1.0, False)
        self._mixer = mixer
        self._night = night
        self._localtime = localtime
        self._told = ""
        self._hand: threading.Thread | None = None

    def set(self, volume: float, *, muted: bool = False) -> None:
        """Want a volume from now on."""
        self._wanted = (volume, muted)
        self.changed = True

    def settle(self) -> None:
        """Bring about what is wanted, as far as the night allows: now, and again with each utterance.

        So a clock that is set, or a card that forgot its volume while it was away, is right again with the next words.
        """
        if self._hand is not None:
            self._hand.join()
            self._hand = None
        self._settle()

    def follow(self) -> None:
        """As `settle`, but wait for no card: `gain` becomes what it shall be once the card's control is set."""
        if self._mixer is None:
            self._settle()
        elif self._hand is None or not self._hand.is_alive():
            self._hand = threading.Thread(target=self._chase, name="mixer", daemon=True)
            self._hand.start()

    def _chase(self) -> None:
        while self.changed:
            self._settle()

    def _settle(self) -> None:
        self.changed = False
        volume, muted = self._wanted
        if self._night is not None:
            volume = min(volume, self._night.limit(self._localtime()))
        if muted:
            volume = 0.0
        if self._mixer is None or not self._in_hardware(self._mixer, min(volume, 1.0)):
            self.gain = gain_of(volume)
        else:
            self.gain = gain_of(volume) if volume > 1 or volume == 0 else 1.0

    def _in_hardware(self, mixer: Mixer, volume: float) -> bool:
        """Set the card's control; where that fails, say so once, and leave the volume to us."""
        try:
            mixer.set(volume, gain_of(volume))
        except MixerError as error:
            if str(error) != self._told:
                self._told = str(error)
                _LOG.warning("the volume is set in software: %s", error)
            return False
        self._told = ""
        return True
