"""What was said last, as Opus files with their text beside them, for support cases."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from daemon.inbox import Inbox
from daemon.outputs import file_name
from daemon.worker import Worker
from device.errors import DeviceError
from device.format import RATE, Samples, seconds
from device.memory import AudioChunk
from device.opus import EncoderPool, OpusSettings
from device.opus_sink import OpusSink
from engines.durable import flush_file, write_whole

_LOG = logging.getLogger(__name__)

_SOUND: Final = ".opus"
_TEXT: Final = ".json"
_PART: Final = ".part"
_ONLY_OURS: Final = 0o700

_MOST_WAITING: Final = 60 * RATE
"""Frames that may wait to be written, 11 MB: a disk that stalls for longer costs a recording, and nothing else."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is written beside the sound."""

    id: str
    text: str
    voice: str


@dataclass(frozen=True, slots=True)
class _End:
    whole: bool


class Recorder(Worker):
    """The thread that writes. `tape` is for the engine thread, `stop` for any."""

    def __init__(self, folder: Path, keep: int, settings: OpusSettings, post: Callable[[Inbox], None]) -> None:
        super().__init__("recorder", post)
        self._folder = folder
        self._keep = keep
        self._settings = settings
        self._encoders = EncoderPool()
        self._items: queue.SimpleQueue[Said | Samples | _End | None] = queue.SimpleQueue()
        self._put = 0  # frames that ever waited, and that were taken: each is counted by one thread
        self._taken = 0
        self._number = 0

    def tape(
        self, said: Said, chunks: Iterator[AudioChunk], stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[AudioChunk]:
        """Pass chunks on, and have a copy of each recorded; waits for nothing. `stopped`: that they end too early."""
        self._items.put(said)
        whole = False
        try:
            lost = False
            for chunk in chunks:
                lost = lost or self._put - self._taken > _MOST_WAITING
                if not lost:
                    self._put += chunk.samples.size
                    self._items.put(chunk.samples.copy())
                yield chunk
            whole = not lost and not stopped()
        finally:
            self._items.put(_End(whole))

    def stop(self) -> None:
        """End once all that waits is written."""
        self._items.put(None)

    def work(self) -> None:
        """Write what comes until stopped."""
        self._prepare()
        while (item := self._items.get()) is not None:
            if isinstance(item, Said):
                try:
                    self._record(item)
                except (OSError, DeviceError) as error:
                    _LOG.warning("what was said is not recorded: %s", error)
        self._encoders.close()

    def _prepare(self) -> None:
        """Go on counting from what is there, and clear what an interrupted write left."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=_ONLY_OURS)
            # By our names: the folder is the owner's choice, and others call theirs so too.
            for part in (*self._folder.glob(f".[0-9]*-*{_PART}"), *self._folder.glob(f"[0-9]*-*{_TEXT}.*{_PART}")):
                part.unlink()
            numbers = [path.name.split("-")[0] for path in self._folder.glob(f"*{_SOUND}")]
            self._number = max((int(number) for number in numbers if number.isdecimal()), default=0)
        except OSError as error:
            _LOG.warning("the folder of recordings %s cannot be used: %s", self._folder, error)

    def _record(self, said: Said) -> None:
        """Write one recording, whole or not at all; take all of its samples in any case."""
        self._number += 1
        name = f"{self._number:06d}-{file_name(said.id)}"
        part = self._folder / f".{name}{_PART}"
        frames, end = 0, _End(whole=False)
        items = self._rest()
        try:
            with contextlib.closing(OpusSink(part, self._settings, encoders=self._encoders)) as sink:
                sink.open()
                for item in items:
                    if isinstance(item, _End):
                        end = item
                    else:
                        sink.write(item)
                        frames += item.size
                sink.finish()
            beside = {
                "id": said.id,
                "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                "text": said.text,
                "voice": said.voice,
                "audio_s": round(seconds(frames), 3),
                "whole": end.whole,
            }
            write_whole(self._folder / (name + _TEXT), json.dumps(beside, ensure_ascii=False).encode())
            flush_file(part)
            part.replace(self._folder / (name + _SOUND))
        finally:
            for _ in items:
                pass
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            self._make_room()

    def _rest(self) -> Iterator[Samples | _End]:
        """Give the samples of the recording that has begun, and its end."""
        while True:
            item = self._items.get()
            if isinstance(item, _End):
                yield item
                return
            if item is None or isinstance(item, Said):  # cannot be: each recording has an end
                raise RuntimeError("a recording has no end")
            self._taken += item.size
            yield item

    def _make_room(self) -> None:
        """Delete the oldest."""
        with contextlib.suppress(OSError):
            sounds = sorted(self._folder.glob(f"[0-9]*{_SOUND}"))
            kept = {path.stem for path in sounds[-self._keep :]}
            for path in self._folder.glob("[0-9]*"):
                if path.suffix in {_SOUND, _TEXT} and path.stem not in kept:
                    path.unlink(missing_ok=True)
