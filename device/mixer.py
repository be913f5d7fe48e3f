"""A sound card's own volume control."""

from __future__ import annotations

import math
import os
from typing import Any, Final

from device.alsa_binding import alsaaudio
from device.alsa_library import TRIAL_S, Trial, hush
from device.alsa_names import by_id, card_of, id_at, place_of
from device.errors import MixerError, SinkError

_DB: Final = 100
"""ALSA counts hundredths of a dB."""

_QUIETEST_DB: Final = -200
_LOUDEST_DB: Final = 60
"""Beyond which no control goes: for one that knows no dB the binding gives what happened to lie in memory."""


class Mixer:
    """One control of the card that an ALSA device plays to. For one thread.

    Found anew each time: a card that was unplugged forgets what was set, and comes back with another control.
    """

    def __init__(self, control: str, device: str) -> None:
        """`control`: its name, as `amixer` lists it; `device`: the name under which the card is played to."""
        self._control = control
        self._device = device
        self._trial = Trial(controls=True)

    def set(self, volume: float, gain: float) -> None:
        """Set it to `volume` of 0 to 1, or by `gain`, the same as a factor, where the control knows dB. 0 mutes.

        1 is 0 dB, or as loud as it gets where that is less. Through PulseAudio it takes 5 ms and more. MixerError where
        there is no such control, no card, or no answer in `TRIAL_S`.
        """
        try:
            binding = alsaaudio(f"mixer {self._control}")
        except SinkError as error:
            raise MixerError(self._control, error.reason) from error
        hush()
        try:
            self._set(binding, self._open(binding), volume, gain)
        except binding.ALSAAudioError as error:
            raise MixerError(self._control, str(error)) from error

    def _open(self, binding: Any) -> Any:  # noqa: ANN401  alsaaudio has no types
        card = card_of(self._device)
        index = place_of(self._device)
        if index is not None:
            card = card_of(by_id(self._device, id_at(binding, index) or str(index)))
        device = f"hw:CARD={card}" if card else "default"
        match self._trial.open(device):
            case 0:
                pass
            case None:
                raise MixerError(self._control, f"{device} does not answer within {TRIAL_S:g} s")
            case refused:
                raise MixerError(self._control, f"{device} cannot be opened: {os.strerror(-refused)}")
        try:
            return binding.Mixer(control=self._control, device=device)
        except binding.ALSAAudioError:
            found = list(binding.mixers(device=device))
            if self._control in found:
                raise
        raise MixerError(self._control, "the card has no such control", found)

    def _set(self, binding: Any, mixer: Any, volume: float, gain: float) -> None:  # noqa: ANN401
        if not any("Playback" in capability for capability in mixer.volumecap()):
            raise MixerError(self._control, "it controls no playback")
        lowest, highest = (value / _DB for value in mixer.getrange(binding.PCM_PLAYBACK, binding.VOLUME_UNITS_DB))
        if "Playback Mute" in mixer.switchcap():
            mixer.setmute(int(volume == 0))
        if _QUIETEST_DB <= lowest < highest <= _LOUDEST_DB:
            wanted = lowest if gain == 0 else min(highest, 0.0) + 20 * math.log10(gain)
            value, units = round(max(lowest, wanted) * _DB), binding.VOLUME_UNITS_DB
        else:
            value, units = round(volume * 100), binding.VOLUME_UNITS_PERCENTAGE
        mixer.setvolume(value, binding.MIXER_CHANNEL_ALL, binding.PCM_PLAYBACK, units)
