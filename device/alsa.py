"""The loudspeaker, through ALSA: whatever rate, channels, format and periods a card agrees to."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from device.alsa_binding import alsaaudio
from device.alsa_layout import OURS, Converter, Layout, candidates
from device.alsa_library import TRIAL_S, Trial, hush
from device.alsa_names import advice, by_id, id_at, place_of
from device.errors import SinkError
from device.format import PERIOD, RATE, Samples, is_samples, seconds

_LOG = logging.getLogger(__name__)

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

_BUSY: Final = "stop the program that plays to it, or use a device that several may play to, such as default"
_HANGS: Final = "the sound server or the driver behind it hangs: restart that"
_CONVERT: Final = "use a device that converts: plughw:CARD=... instead of hw:..., or default"


class AlsaSink:
    """A `Sink` on an ALSA playback device, blocking: float32 mono at 48 kHz straight from the given memory.

    A card that insists on another rate, format or number of channels gets those, converted. `underruns` counts the
    times the card ran dry between two writes of one utterance. Failures raise SinkError; after one, close and open
    again: the card may have come back under the same name. A name by index means the card that had it when it was
    first opened, wherever that is later.

    Two things the binding does not let us bound: `write` waits for a sound server that hangs as long as it hangs (a
    card in the kernel that stops gives EIO), and `drop` keeps the interpreter's lock while it waits for one. So does
    its opening; hence each is tried out first, where a server that hangs costs `TRIAL_S` and nobody else.
    """

    def __init__(self, device: str = "default") -> None:
        self.underruns = 0
        self._device = device
        self._target: str | None = None  # by the card's id, once that is known
        self._name = f"alsa {device}"
        self._details = ""
        self._alsa: Any = None
        self._pcm: Any = None
        self._trial = Trial()
        self._layout = OURS
        self._converter: Converter | None = None
        self._buffer = 0  # in the device's frames, as are the two below
        self._period = HALF_PERIOD
        self._silence = memoryview(b"")
        self._queued = 0  # frames taken since the device last stood still
        self._sounding = False

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
        return self._in_our_frames(max(0, self._buffer - room)) if room >= 0 else 0

    @property
    def period(self) -> int:
        """See `Sink.period`."""
        return self._in_our_frames(self._period)

    def open(self) -> None:
        """See `Sink.open`."""
        if self._pcm is not None:
            return
        binding = self._alsa = alsaaudio(self._name)
        hush()
        device = self._stable_name()
        self._try_out(device)
        try:
            pcm, info, layout = self._agree(device)
        except binding.ALSAAudioError as error:
            raise SinkError(self._name, f"cannot be opened: {error}", advice(binding.cards())) from error
        self._layout = layout
        self._converter = None if layout == OURS else Converter(layout)
        self._period = int(info["period_size"])
        self._buffer = int(info["buffer_size"])
        self._silence = memoryview(bytes(self._period * layout.frame_bytes))
        self._stand_still()
        self._pcm = pcm
        self._details = f" ({layout}, {self._buffer} frames in periods of {self._period})"

    def check(self) -> None:
        """See `Sink.check`. A card that was unplugged tells; a sound server that ended does not."""
        pcm = self._opened()
        try:
            gone = pcm.state() == self._alsa.PCM_STATE_DISCONNECTED
        except self._alsa.ALSAAudioError as error:
            raise SinkError(self._name, f"is gone: {error}") from error
        if gone:
            raise SinkError(self._name, "is gone: it was unplugged, or its server has dropped us")

    def write(self, samples: Samples) -> None:
        """See `Sink.write`. A device that takes what we have reads the given memory itself."""
        pcm = self._opened()
        if not is_samples(samples):
            raise SinkError(self._name, "takes contiguous mono float32 only")
        if not len(samples):
            return
        self._sounding = True
        if self._converter is None:
            self.underruns += self._write_all(pcm, samples.data.cast("B"))
        else:
            for piece in self._converter.pieces(samples):
                self.underruns += self._write_all(pcm, piece)

    def drain(self) -> None:
        """See `Sink.drain`. SinkError where the device does not finish in time; it is closed then."""
        pcm = self._opened()
        if not self._sounding:
            return
        if self._converter is not None:
            for piece in self._converter.rest():
                self.underruns += self._write_all(pcm, piece)
        # A card plays whole periods: what follows the last frame in its ring would be old sound.
        pad = -self._queued % self._period
        for last_try in (False, True):
            # A device that ran dry refuses to drain until it has been given frames again. Nothing was missing: this
            # is no underrun. `drop` would get it out of that state too, but takes what a server still has to play.
            if pcm.state() == self._alsa.PCM_STATE_XRUN:
                pad = self._period
            if pad:
                self._write_all(pcm, self._silence[: pad * self._layout.frame_bytes])
            try:
                self._bounded(pcm.drain)
            except self._alsa.ALSAAudioError as error:
                if last_try or pcm.state() != self._alsa.PCM_STATE_XRUN:
                    raise SinkError(self._name, f"cannot finish playing: {error}") from error
            else:
                break
        self._stand_still()

    def drop(self) -> None:
        """See `Sink.drop`."""
        pcm = self._opened()
        try:
            pcm.drop()
        except self._alsa.ALSAAudioError as error:
            raise SinkError(self._name, f"cannot be stopped: {error}") from error
        if self._converter is not None:
            self._converter.forget()
        self._stand_still()

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

    def _stand_still(self) -> None:
        self._queued = 0
        self._sounding = False

    def _in_our_frames(self, frames: int) -> int:
        return frames if self._layout.rate == RATE else frames * RATE // self._layout.rate

    def _stable_name(self) -> str:
        """Give the device's name, by the id of its card where the configuration has an index."""
        index = place_of(self._device)
        if self._target is None and index is not None and (card := id_at(self._alsa, index)) is not None:
            self._target = by_id(self._device, card)
            _LOG.warning(
                'audio.device = "%s" is a place that another card may have after the next start: write "%s", the card '
                "that has it now",
                self._device,
                self._target,
            )
        return self._target or self._device

    def _try_out(self, device: str) -> None:
        """SinkError where the device cannot be opened, or hangs."""
        match self._trial.open(device):
            case 0:
                return
            case None:
                raise SinkError(self._name, f"does not answer within {TRIAL_S:g} s", _HANGS)
            case busy if busy == -errno.EBUSY:
                raise SinkError(self._name, "cannot be opened: it is in use", _BUSY)
            case refused:
                reason = os.strerror(-refused)
                raise SinkError(self._name, f"cannot be opened: {reason}", advice(self._alsa.cards()))

    def _agree(self, device: str) -> tuple[Any, dict[str, Any], Layout]:
        """Open the device in the first layout that it really takes.

        The binding ignores what a device refuses and goes on with whatever comes out, so that is read back.
        """
        pcm, info = self._open_as(device, OURS)
        if _is(info, OURS):
            return pcm, info, OURS
        found = f"{info['rate']} Hz, {info['format_name']}, {info['channels']} channels"
        offered = list(candidates(pcm.getformats(), pcm.getratebounds(), int(info["channels"])))
        pcm.close()
        for layout in offered:
            pcm, info = self._open_as(device, layout)
            if _is(info, layout):
                return pcm, info, layout
            pcm.close()
        raise SinkError(self._name, f"the device insists on {found}, and on no format that we can make", _CONVERT)

    def _open_as(self, device: str, layout: Layout) -> tuple[Any, dict[str, Any]]:
        binding = self._alsa
        pcm = binding.PCM(
            type=binding.PCM_PLAYBACK,
            mode=binding.PCM_NORMAL,
            device=device,
            rate=layout.rate,
            channels=layout.channels,
            format=getattr(binding, f"PCM_FORMAT_{layout.form}"),
            periodsize=HALF_PERIOD * layout.rate // RATE,
            periods=PERIODS,
        )
        return pcm, pcm.info()

    def _write_all(self, pcm: Any, rest: memoryview) -> int:  # noqa: ANN401
        """Write bytes until the device has taken all of them; give the number of underruns that were met."""
        frame_bytes = self._layout.frame_bytes
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
                rest = rest[taken * frame_bytes :]
                self._queued += taken
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


def _is(info: dict[str, Any], layout: Layout) -> bool:
    return (info["rate"], info["channels"], info["format_name"]) == (layout.rate, layout.channels, layout.form)
