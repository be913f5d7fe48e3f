"""A voice on disk: one folder with graphs and what a caller must know of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from engines.errors import VoiceError
from engines.pack_info import AnyInfo, KokoroInfo, PackInfo

REVISION: Final = 7
"""Counts up with every change by which the same files give another pack: they are then imported again when asked."""

INFO_FILE: Final = "pack.json"
ACOUSTIC_FILE: Final = "acoustic.onnx"
VOCODER_FILE: Final = "vocoder.onnx"
KOKORO_FILE: Final = "kokoro.onnx"
KOKORO_INT8_FILE: Final = "kokoro.int8.onnx"
STYLES_FILE: Final = "styles.npy"

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")
"""Of a pack; what fits leaves no folder."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack of the VITS family that was found whole."""

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
class KokoroPack:
    """A pack of the Kokoro family that was found whole."""

    folder: Path
    info: KokoroInfo

    @property
    def styles(self) -> Path:
        """The table of each style: float32 [speakers, lengths, numbers of a style]."""
        return self.folder / STYLES_FILE

    def graph(self, precision: str) -> Path:
        """Give the graph from phonemes to sound: 'int8' as its maker quantised it, else in float."""
        return self.folder / (KOKORO_INT8_FILE if precision == "int8" else KOKORO_FILE)


AnyPack: TypeAlias = Pack | KokoroPack


@dataclass(frozen=True, slots=True)
class BrokenPack:
    """A folder that should hold a pack and does not."""

    folder: Path
    reason: str


def check_name(name: str) -> str:
    """Give `name` back if it can name a pack; VoiceError otherwise. Nothing that passes leaves the packs' folder."""
    if not NAME.fullmatch(name):
        raise VoiceError(name[:100], "is no voice name: use letters, digits and _ . + -, a letter or digit first")
    return name


def pack_of(folder: Path, info: AnyInfo) -> AnyPack:
    """Give what a folder with this description is."""
    return KokoroPack(folder, info) if isinstance(info, KokoroInfo) else Pack(folder, info)
