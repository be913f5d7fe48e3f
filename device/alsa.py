"""The loudspeaker, through ALSA. The only module that knows alsaaudio."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import numpy as np

from device.errors import SinkError
from device.format import CHANNELS, PERIOD, RATE, Samples, is_samples, seconds

HALF_PERIOD: Final = PERIOD // 2
"""Frames per ALSA period, 10 ms. PulseAudio says in steps of a period how much it has taken, and takes as much at once:
with 20 ms `pending` was as coarse."""

PERIODS: Final = 12
"""ALSA periods in the card's buffer, 120 ms. With eight busy processes on two cores a `write` that had to wait 20 ms
came back after up to 54 ms (PulseAudio's null sink, ordinary priority). The room is for those who want to fill it; the
player keeps `pending` lower, so that what it stops is silent soon."""

DRAIN_MARGIN_S: Final = 5.0
"""What a healthy device may need beyond its own buffer to play out: PulseAudio keeps up to 2 s of its own, a
Bluetooth link half a second, a suspended card wakes up first. Only a broken one ever makes us wait this long."""

NO_PROGRESS_LIMIT: Final = 50
"""Consecutive results without a frame taken before a device counts as stuck. One underrun behind PulseAudio gives
-EPIPE twice in a row; with `NO_ROOM_WAIT_S` between results of 0 this is half a second."""

NO_ROOM_WAIT_S: Final = 0.01
"""Half a period. A blocking PCM should never say 0; if it does, asking again at once would only heat the core."""

NO_CARD_ADVICE: Final = "`aplay -L` lists the names there are; `--output file.wav` works without a card"


class AlsaSink:
    """A `Sink` on an ALSA playback device, blocking, float32 straight from the given memory.

    `xruns` counts the times the card ran dry between two writes of one utterance. Failures raise SinkError; after
    one, close and open again: the card may have come back under the same name.

    Two things the binding does not let us bound: `write` waits for a sound server that hangs as long as it hangs (a
    card in the kernel that stops gives EIO), and `open` and `drop` keep the interpreter's lock while they wait for one.
    """

    def __init__(self, device: str = "default") -> None:
        self.xruns = 0
        self._device = device
        self._name = f"alsa {device}"
        self._details = ""
        self._alsa: Any = None
        self._pcm: Any = None
        self._buffer = 0
        self._silence: Samples = np.zeros(0, np.float32)
        self._queued = 0  # frames taken since the device last stood still

    @property
    def description(self) -> str:
        """The device, and once open what it agreed to."""
        return self._name + self._details

    @property
    def pending(self) -> int:
        """See `Sink.pending`. 0 where the device has run dry, or does not say."""
        if self._pcm is None:
            return 0
        try:
            room = int(self._pcm.avail())
        except self._alsa.ALSAAudioError:
            return 0  # whatever is wrong, the next write meets it
        return max(0, self._buffer - room) if room >= 0 else 0

    def open(self) -> None:
        """See `Sink.open`."""
        if self._pcm is not None:
            return
        try:
            import alsaaudio  # noqa: PLC0415  a machine without a loudspeaker needs no binding
        except ImportError as error:
            raise SinkError(self._name, f"no ALSA binding: {error}", "install pyalsaaudio and libasound2") from error
        self._alsa = alsaaudio
        try:
            pcm = alsaaudio.PCM(
                type=alsaaudio.PCM_PLAYBACK,
                mode=alsaaudio.PCM_NORMAL,
                device=self._device,
                rate=RATE,
                channels=CHANNELS,
                format=alsaaudio.PCM_FORMAT_FLOAT_LE,
                periodsize=HALF_PERIOD,
                periods=PERIODS,
            )
            info = pcm.info()
        except alsaaudio.ALSAAudioError as error:
            raise SinkError(self._name, f"cannot be opened: {error}", NO_CARD_ADVICE) from error
        self._refuse_other_formats(pcm, info)
        self._silence = np.zeros(int(info["period_size"]), np.float32)
        self._buffer = int(info["buffer_size"])
        self._queued = 0
        self._pcm = pcm
        self._details = f" ({RATE} Hz, float32, mono, {self._buffer} frames in periods of {info['period_size']})"

    def write(self, samples: Samples) -> None:
        """See `Sink.write`. The device reads the given memory itself."""
        pcm = self._opened()
        if not is_samples(samples):
            raise SinkError(self._name, "takes contiguous mono float32 only")
        if len(samples):
            self.xruns += self._write_all(pcm, samples)
            self._queued += len(samples)

    def drain(self) -> None:
        """See `Sink.drain`. SinkError where the device does not finish in time; it is closed then."""
        pcm = self._opened()
        if not self._queued:
            return
        # A card plays whole periods: what follows the last frame in its ring would be old sound.
        pad = -self._queued % len(self._silence)
        for last_try in (False, True):
            # A device that ran dry refuses to drain until it has been given frames again. Nothing was missing: this
            # is no xrun. `drop` would get it out of that state too, but takes what a sound server still has to play.
            if pcm.state() == self._alsa.PCM_STATE_XRUN:
                pad = len(self._silence)
            if pad:
                self._write_all(pcm, self._silence[:pad])
            try:
                self._bounded(pcm.drain)
            except self._alsa.ALSAAudioError as error:
                if last_try or pcm.state() != self._alsa.PCM_STATE_XRUN:
                    raise SinkError(self._name, f"cannot finish playing: {error}") from error
            else:
                break
        self._queued = 0

    def drop(self) -> None:
        """See `Sink.drop`."""
        pcm = self._opened()
        try:
            pcm.drop()
        except self._alsa.ALSAAudioError as error:
            raise SinkError(self._name, f"cannot be stopped: {error}") from error
        self._queued = 0

    def close(self) -> None:
        """See `Sink.close`. The binding plays out what is queued, so `drop` first where that is not wanted."""
        pcm, self._pcm = self._pcm, None
        self._details = ""
        if pcm is not None:
            with suppress(SinkError, self._alsa.ALSAAudioError):
                self._bounded(pcm.close)

    def _opened(self) -> Any:  # noqa: ANN401  alsaaudio has no types
        if self._pcm is None:
            raise SinkError(self._name, "is not open")
        return self._pcm

    def _refuse_other_formats(self, pcm: Any, info: dict[str, Any]) -> None:  # noqa: ANN401
        # The binding ignores what the device refuses, and goes on with whatever came out instead.
        wanted = {"rate": RATE, "channels": CHANNELS, "format_name": "FLOAT_LE"}
        differs = [
            f"{key.removesuffix('_name')} {info[key]} instead of {value}"
            for key, value in wanted.items()
            if info[key] != value
        ]
        if differs:
            pcm.close()
            advice = "use a device that converts: plughw:CARD=... instead of hw:..., or default"
            raise SinkError(self._name, f"the device insists on {'; '.join(differs)}", advice)

    def _write_all(self, pcm: Any, samples: Samples) -> int:  # noqa: ANN401
        """Write until the device has taken everything; give the number of underruns that were met."""
        rest = samples.data
        underruns = 0
        fruitless = 0
        dry = False
        while rest:
            try:
                taken = pcm.write(rest)
            # SystemError: some versions return NULL without an exception set.
            except (self._alsa.ALSAAudioError, SystemError) as error:
                raise SinkError(self._name, f"stopped taking frames: {error}") from error
            if taken is not None and taken > 0:
                rest = rest[taken:]
                fruitless = 0
                dry = False
                continue
            fruitless += 1
            if fruitless > NO_PROGRESS_LIMIT:
                raise SinkError(self._name, f"took no frames in {fruitless} attempts (last result {taken})")
            if taken == -errno.EPIPE:
                # The binding has prepared the stream again. Some plugins repeat themselves: that is still one gap.
                underruns += not dry
                dry = True
            elif taken:
                raise SinkError(self._name, f"stopped taking frames: {os.strerror(-taken)}")
            else:
                threading.Event().wait(NO_ROOM_WAIT_S)
        return underruns

    def _bounded(self, call: Callable[[], object]) -> None:
        """Run a call of the binding that waits for the device without any limit of its own.

        SinkError where it outlasts the buffered time and a margin. The device then belongs to the stuck thread, and
        is freed when that call ever returns.
        """
        failures: list[Exception] = []

        def run() -> None:
            try:
                call()
            except Exception as error:  # noqa: BLE001  handed over to the caller's thread
                failures.append(error)

        limit_s = seconds(self._buffer) + DRAIN_MARGIN_S
        thread = threading.Thread(target=run, name="alsa-wait", daemon=True)
        thread.start()
        thread.join(limit_s)
        if thread.is_alive():
            self._pcm = None
            raise SinkError(self._name, f"did not finish playing within {limit_s:.1f} s")
        if failures:
            raise failures[0]
