"""The two files of a Piper voice: where they are, and whether they are what they should be."""

from __future__ import annotations

import base64
import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engines.digest import sha256
from engines.errors import VoiceError
from engines.pack_info import LengthScale, NoiseScale

MARKS: Final = "_^$"
"""Symbols that every voice has: between phonemes, and at a sentence's beginning and end."""


class NoSuchPackageError(VoiceError):
    """A voice was named that is neither a file nor an installed package."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"is neither a file nor an installed package: `pip install {name}` first?")


class _Part(BaseModel):
    """A part of the JSON, in which null means the same as no such key."""

    model_config = ConfigDict(protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:  # noqa: ANN401  whatever the file holds
        return {key: value for key, value in data.items() if value is not None} if isinstance(data, dict) else data


class _Audio(_Part):
    sample_rate: Annotated[int, Field(gt=0)]


class _Espeak(_Part):
    voice: str = ""


class _Inference(_Part):
    noise_scale: NoiseScale = 0.667
    length_scale: LengthScale = 1.0
    noise_w: NoiseScale = 0.8


class PiperConfig(_Part):
    """The part that matters here of a voice's `.onnx.json`."""

    audio: _Audio
    espeak: _Espeak = _Espeak()
    inference: _Inference = _Inference()
    phoneme_type: str = "espeak"
    phoneme_id_map: dict[str, list[int]]
    num_speakers: Annotated[int, Field(ge=0)] = 1
    """VITS itself says 0 of a voice that has just one."""
    speaker_id_map: dict[str, int] = {}
    default_speaker_id: int = 0
    vowel_clusters: list[list[str]] | None = None
    """Phonemes that this voice takes as one, such as a, ɪ -> aɪ."""


@dataclass(frozen=True, slots=True)
class Source:
    """The two files of a voice, and what they must hash to where somebody said so."""

    model: Path
    expected: Mapping[Path, str]
    """File -> SHA-256."""

    @property
    def config(self) -> Path:
        """The JSON file that belongs beside the model."""
        return self.model.with_name(self.model.name + ".json")

    @property
    def name(self) -> str:
        """What Piper calls the voice."""
        return self.model.stem


def find(where: str) -> Source:
    """Find the voice that a path or the name of an installed package means. VoiceError where there is none."""
    try:
        model = _find_file(where)
    except OSError as error:
        raise VoiceError(where, f"cannot be read: {error.strerror}") from error
    return _find_in_package(where) if model is None else Source(model, {})


def _find_file(where: str) -> Path | None:
    """Give the model that a path means; None where it means no path."""
    path = Path(where)
    if path.is_dir():
        return _only_model(where, sorted(path.glob("*.onnx")))
    if path.suffix == ".json" and path.stem.endswith(".onnx"):
        path = path.with_suffix("")
    if path.suffix != ".onnx" and not path.exists():
        return None
    if not path.is_file():
        raise VoiceError(str(path), "does not exist")
    return path


def _only_model(where: str, models: list[Path]) -> Path:
    if len(models) == 1:
        return models[0]
    if not models:
        raise VoiceError(where, "holds no .onnx file")
    raise VoiceError(where, f"holds {len(models)} voices: name one of {', '.join(str(m) for m in models)}")


def _find_in_package(name: str) -> Source:
    """Find a voice in an installed distribution; the hashes in its RECORD are expected of the files."""
    try:
        files = importlib.metadata.files(name) or []
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise NoSuchPackageError(name) from None
    located = {Path(str(file.locate())): file for file in files if file.name.endswith((".onnx", ".onnx.json"))}
    model = _only_model(name, sorted(path for path in located if path.suffix == ".onnx"))
    expected = {}
    for path in (model, model.with_name(model.name + ".json")):
        record = located.get(path)
        if record is not None and record.hash is not None and record.hash.mode == "sha256":
            padded = record.hash.value + "=" * (-len(record.hash.value) % 4)
            expected[path] = base64.urlsafe_b64decode(padded).hex()
    return Source(model, expected)


def read_config(path: Path) -> PiperConfig:
    """Read a voice's JSON file. VoiceError says in one sentence what is wrong with it."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise VoiceError(str(path), "is missing: a voice is two files, download this one too") from None
    except OSError as error:
        raise VoiceError(str(path), f"cannot be read: {error.strerror}") from error
    if raw.lstrip()[:1] == b"<":
        raise VoiceError(str(path), "is a web page, not a voice's JSON: download the raw file")
    try:
        config = PiperConfig.model_validate(json.loads(raw))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise VoiceError(str(path), f"is not a Piper voice's JSON: {where}: {first['msg']}") from error
        raise VoiceError(str(path), f"is not JSON: {error}") from error
    if config.phoneme_type not in {"espeak", "text"}:
        raise VoiceError(
            str(path), f"wants phonemes of type {config.phoneme_type[:40]!r}: only espeak and text are known"
        )
    if config.phoneme_type == "espeak" and not config.espeak.voice:
        raise VoiceError(str(path), "names no espeak voice")
    absent = [symbol for symbol in MARKS if not config.phoneme_id_map.get(symbol)]
    if absent:
        raise VoiceError(str(path), f"has no id for {' '.join(absent)} in its phoneme_id_map")
    return config


def check_hashes(source: Source) -> dict[str, str]:
    """Hash both files; gives name -> SHA-256. VoiceError where one is not what its package promises."""
    hashes = {}
    for path in (source.model, source.config):
        try:
            hashes[path.name] = sha256(path)
        except OSError as error:
            raise VoiceError(str(path), f"cannot be read: {error.strerror}") from error
        if source.expected.get(path, hashes[path.name]) != hashes[path.name]:
            raise VoiceError(
                str(path), "is not the file that its package promises (its SHA-256 differs): install it again"
            )
    return hashes
