"""Import Kokoro: check the model, rewrite its graph, compare, measure how loud each style is, write the packs.

Needs onnx and some seconds per style; the daemon itself never loads this module.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from numpy.typing import NDArray

from device.format import Samples
from engines.corpus import CALIBRATION
from engines.errors import EngineError, GraphError, VoiceError
from engines.kokoro import FRAMES_PER_DURATION, STYLE_NUMBERS, STYLE_ROWS, KokoroVoice, Styles
from engines.kokoro_backends import measure_precision
from engines.kokoro_graph import RATE, prepare
from engines.loudness import measure_loudness
from engines.pack import KOKORO_FILE, KOKORO_INT8_FILE, STYLES_FILE, BrokenPack, KokoroPack, check_name
from engines.pack_info import KOKORO_LUFS, KokoroInfo
from engines.pack_store import PackStore
from engines.runtime.ort import OrtEngine
from engines.text.phonemes import Phonemizer, sentences_of
from engines.vits import Delivery

REVISION: Final = 3
"""Counts up with every change by which the same files give other packs."""

LANGUAGES: Final[Mapping[str, tuple[str, str]]] = {
    "a": ("en-us", "en-us"),
    "b": ("en-gb", "en-gb-x-rp"),
    "e": ("es", "es"),
    "f": ("fr", "fr"),
    "h": ("hi", "hi"),
    "i": ("it", "it"),
    "p": ("pt-br", "pt-br"),
}
"""First letter of a style's name -> the end of its pack's name, and espeak-ng's voice."""

_REFUSED: Final = {"j": "Japanese", "z": "Chinese"}

_SENTENCES: Final = CALIBRATION[:3]
"""By which loudness is measured, some 10 s of speech. espeak-ng reads them by the rules of each language."""

_PHONEMIZER_TIMEOUT_S: Final = 30.0

_LENGTHS: Final = 0.05
"""How much longer or shorter speech in float may be than in INT8: 0.5 % was seen."""

_LARGEST_STYLE: Final = 100.0
"""The norm of a row; those of all 54 styles are at most 4 to 13."""

Progress = Callable[[str], None]
"""Told in a few words what begins now."""


@dataclass(frozen=True, slots=True)
class KokoroSource:
    """The files that packs are made of, whole and checked by whoever read them."""

    model: bytes
    vocabulary: Mapping[str, int]
    """Sign -> id."""
    styles: Mapping[str, bytes]
    """Name -> float32 [510, 256], little-endian."""
    hashes: Mapping[str, str]
    """File name -> SHA-256; of a style under its name."""


def import_kokoro(
    source: KokoroSource,
    store: PackStore,
    styles: Sequence[str],
    *,
    name: str = "kokoro",
    progress: Progress = lambda _: None,
) -> list[KokoroPack]:
    """Make a pack for each language of `styles` in `store`; all packs have all styles, so that any can be blended.

    Packs of the very same files are given as they are. VoiceError where a style is not there, its language cannot be
    spoken, or a file is not as Kokoro has it; nothing is written then.
    """
    check_name(name)
    languages = _languages(styles, source.styles)
    tables = np.stack([_table(style, source.styles[style]) for style in styles])
    hashes = {file: digest for file, digest in source.hashes.items() if file not in source.styles or file in styles}
    known = _known(store, [f"{name}-{end}" for end, _ in languages.values()], styles, hashes)
    if known is not None:
        return known
    progress("rewriting the graph")
    quantised, floating = _rewritten(source.model)
    info = KokoroInfo(
        family="kokoro",
        revision=REVISION,
        name=name,
        language=next(iter(languages.values()))[1],
        phoneme_type="espeak",
        phoneme_ids={sign: [number] for sign, number in source.vocabulary.items()},
        sample_rate=RATE,
        speaker_count=len(styles),
        speaker_names={style: number for number, style in enumerate(styles)},
        default_speaker=0,
        length_scale=1.0,
        gains=[1.0] * len(styles),
        sources=hashes,
        files={},
    )
    gains = _gains(info, tables, quantised, floating, progress)
    return _write(store, info.model_copy(update={"gains": gains}), languages, tables, (floating, quantised), progress)


def _languages(styles: Sequence[str], there: Mapping[str, bytes]) -> dict[str, tuple[str, str]]:
    """Give the first style of each language, and the language; in order."""
    if not styles:
        raise VoiceError("kokoro", f"has no voice without styles: name some of {', '.join(sorted(there))}")
    found: dict[str, tuple[str, str]] = {}
    for style in styles:
        if style not in there:
            raise VoiceError(f"the style {style[:50]!r}", f"is not there: there are {', '.join(sorted(there))}")
        if style[0] in _REFUSED:
            raise VoiceError(
                f"the style {style}",
                f"is {_REFUSED[style[0]]}, which espeak-ng has no phonemes of that Kokoro was trained on",
            )
        if style[0] not in LANGUAGES:
            raise VoiceError(f"the style {style}", f"is of no known language: it begins with none of {[*LANGUAGES]}")
        language = LANGUAGES[style[0]]
        if language not in found.values():
            found[style] = language
    return found


def _table(style: str, content: bytes) -> NDArray[np.float32]:
    if len(content) != STYLE_ROWS * STYLE_NUMBERS * 4:
        raise VoiceError(f"the style {style}", f"has {len(content)} bytes, not those of {STYLE_ROWS} rows of floats")
    table = np.frombuffer(content, "<f4").astype(np.float32).reshape(STYLE_ROWS, STYLE_NUMBERS)
    norms = np.linalg.norm(table, axis=1)
    if not np.isfinite(norms).all() or norms.max() > _LARGEST_STYLE:
        raise VoiceError(f"the style {style}", "holds numbers that no style has: get the file again")
    return table


def _known(
    store: PackStore, names: Sequence[str], styles: Sequence[str], hashes: Mapping[str, str]
) -> list[KokoroPack] | None:
    """Give the packs if all are there, of the same files and styles."""
    infos = {pack.info.name: pack.info for pack in store.list() if not isinstance(pack, BrokenPack)}
    for name in names:
        info = infos.get(name)
        if not isinstance(info, KokoroInfo) or info.revision != REVISION or info.sources != hashes:
            return None
        if tuple(info.speaker_names) != tuple(styles):
            return None
    return [pack for name in names if isinstance(pack := store.open(name), KokoroPack)]


def _rewritten(model: bytes) -> tuple[bytes, bytes]:
    try:
        quantised, floating = prepare(onnx.load_model_from_string(model))
        onnx.checker.check_model(floating)
    except (DecodeError, GraphError, onnx.checker.ValidationError, ValueError, KeyError) as error:
        raise VoiceError("the model", f"is not Kokoro's graph: {error}") from error
    return quantised.SerializeToString(), floating.SerializeToString()


def _gains(info: KokoroInfo, tables: Styles, quantised: bytes, floating: bytes, progress: Progress) -> list[float]:
    """Speak with each style, in its own language; gives the factors that make them equally loud."""
    progress("comparing the graphs")
    gains = []
    try:
        with closing(Phonemizer(_PHONEMIZER_TIMEOUT_S)) as phonemizer:
            with closing(OrtEngine(quantised)) as engine:
                expected = _spoken(KokoroVoice(info, tables, engine), phonemizer, info.language, 0)
            with closing(OrtEngine(floating)) as engine:
                found = _spoken(KokoroVoice(info, tables, engine), phonemizer, info.language, 0)
                if not abs(found.size - expected.size) <= _LENGTHS * expected.size:
                    raise VoiceError("the model", f"speaks {found.size / expected.size:.2f} times as long in float")
                for style, number in info.speaker_names.items():
                    progress(f"measuring how loud {style} is")
                    spoken = info.model_copy(update={"language": LANGUAGES[style[0]][1]})
                    sound = _spoken(KokoroVoice(spoken, tables, engine), phonemizer, spoken.language, number)
                    loudness = measure_loudness(sound)
                    if loudness is None:
                        raise VoiceError(f"the style {style}", "makes no sound")
                    gains.append(10 ** ((KOKORO_LUFS - loudness) / 20))
    except EngineError as error:
        raise VoiceError("the model", f"cannot be run: {error}") from error
    return gains


def _spoken(voice: KokoroVoice, phonemizer: Phonemizer, language: str, speaker: int) -> Samples:
    """Say some sentences. VoiceError where the durations are not those of the sound."""
    rng, delivery, parts = np.random.default_rng(0), Delivery(speaker=speaker), []
    for text in _SENTENCES:
        for phonemes in sentences_of(phonemizer.phonemize(text, language), max_phonemes=STYLE_ROWS):
            for piece in voice.speak(voice.ids(phonemes)[0], delivery, rng, capacity=FRAMES_PER_DURATION).pieces:
                part = np.empty(piece.needed, np.float32)
                piece.render(part)
                parts.append(part)
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _write(
    store: PackStore,
    info: KokoroInfo,
    languages: Mapping[str, tuple[str, str]],
    tables: Styles,
    graphs: tuple[bytes, bytes],
    progress: Progress,
) -> list[KokoroPack]:
    """Write a pack for each language; all but the first share its files."""
    buffer = io.BytesIO()
    np.save(buffer, tables, allow_pickle=False)
    files: dict[str, bytes | Path] = {
        KOKORO_FILE: graphs[0],
        KOKORO_INT8_FILE: graphs[1],
        STYLES_FILE: buffer.getvalue(),
    }
    digests = {file: hashlib.sha256(data).hexdigest() for file, data in files.items() if isinstance(data, bytes)}
    packs: list[KokoroPack] = []
    for style, (end, language) in languages.items():
        name = f"{info.name}-{end}"
        own = {
            "name": name,
            "language": language,
            "default_speaker": info.speaker_names[style],
            "files": digests,
        }
        progress(f"writing {name}")
        packs.append(store.put(name, info.model_copy(update=own), files))
        files = {file: packs[0].folder.resolve() / file for file in files}
    progress("measuring in which precision it is quickest here")
    measure_precision(packs, threads=0)
    return packs
