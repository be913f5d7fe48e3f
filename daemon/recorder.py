"""What was said last, as Opus files with their text beside them, for support cases."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import re
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
_NAME: Final = re.compile(rf"([0-9]{{6,}})-.+({re.escape(_SOUND)}|{re.escape(_TEXT)})")
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
        self._behind = False

    def tape(
        self, said: Said, chunks: Iterator[AudioChunk], stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[AudioChunk]:
        """Pass chunks on, and have a copy of each recorded; waits for nothing. `stopped`: that they end too early."""
        if self._is_behind():
            yield from chunks
            return
        self._items.put(said)
        whole = False
        try:
            lost = False
            for chunk in chunks:
                lost = lost or self._is_behind()
                if not lost:
                    self._put += chunk.samples.size
                    self._items.put(chunk.samples.copy())
                yield chunk
            whole = not lost and not stopped()
        finally:
            self._items.put(_End(whole))

    def _is_behind(self) -> bool:
        """Tell whether the disk is too slow to wait for, and say so once until it is not."""
        behind = self._put - self._taken > _MOST_WAITING
        if behind and not self._behind:
            _LOG.warning("the disk with %s is too slow: what is said now is not recorded", self._folder)
        self._behind = behind
        return behind

    def stop(self) -> None:
        """End once all that waits is written."""
        self._items.put(None)

    def work(self) -> None:
        """Write what comes until stopped."""
        self.pulse.wake()
        self._clear()
        self.pulse.rest()
        while (item := self._items.get()) is not None:
            if isinstance(item, Said):
                self.pulse.wake()
                try:
                    self._record(item)
                except (OSError, DeviceError) as error:
                    _LOG.warning("what was said is not recorded: %s", error)
                self.pulse.rest()
        self._encoders.close()

    def _clear(self) -> None:
        """Clear what an interrupted write left, and tell at once of a folder that cannot be."""
        try:
            self._make_folder()
            # By our names: the folder is the owner's choice, and others call theirs so too.
            for part in (*self._folder.glob(f".[0-9]*-*{_PART}"), *self._folder.glob(f"[0-9]*-*{_TEXT}.*{_PART}")):
                part.unlink()
        except OSError as error:
            _LOG.warning("the folder of recordings %s cannot be used: %s", self._folder, error)

    def _make_folder(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=_ONLY_OURS)

    def _record(self, said: Said) -> None:
        """Write one recording, whole or not at all; take all of its samples in any case."""
        frames, end = 0, _End(whole=False)
        items = self._rest()
        part = self._folder / _PART
        try:
            # Each time: a disk of the network may come later than we, and with what it had before.
            self._make_folder()
            name = f"{max(self._recordings(), default=0) + 1:06d}-{file_name(said.id)}"
            part = self._folder / f".{name}{_PART}"
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
            # Half a character, which UTF-8 cannot hold, becomes what JSON writes it as.
            content = json.dumps(beside, ensure_ascii=False).encode(errors="backslashreplace")
            write_whole(self._folder / (name + _TEXT), content)
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
            self.pulse.rest()  # it waits for whoever speaks, not for the disk
            item = self._items.get()
            self.pulse.wake()
            if isinstance(item, _End):
                yield item
                return
            if item is None or isinstance(item, Said):  # cannot be: each recording has an end
                raise RuntimeError("a recording has no end")
            self._taken += item.size
            yield item

    def _make_room(self) -> None:
        """Delete the oldest, and texts without a sound."""
        with contextlib.suppress(OSError):
            recordings = self._recordings()
            whole = sorted(number for number, files in recordings.items() if any(f.suffix == _SOUND for f in files))
            for number in recordings.keys() - set(whole[-self._keep :]):
                for path in recordings[number]:
                    path.unlink(missing_ok=True)

    def _recordings(self) -> dict[int, list[Path]]:
        """Give the files of each recording that is there, by its number."""
        found: dict[int, list[Path]] = {}
        for path in self._folder.iterdir():
            if name := _NAME.fullmatch(path.name):
                found.setdefault(int(name[1]), []).append(path)
        return found
