"""Import a Piper voice: find its two files, check them, cut the graph, measure, write the pack.

Needs onnx and some seconds; the daemon itself never loads this module.
"""

from __future__ import annotations

import base64
import bisect
import contextlib
import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from device.format import Samples
from engines.errors import EngineError, GraphError, UnknownEspeakVoiceError, VoiceError
from engines.pack import ACOUSTIC_FILE, VOCODER_FILE, Pack, PackInfo, PackStore, check_name, sha256
from engines.resampling import HALF_TAPS, block_size, filter_bank
from engines.runtime.ort import OrtEngine
from engines.text.phonemes import Phonemizer, phoneme_ids, sentences_of
from engines.vits_graph import Split, split
from engines.windows import Margins, output_frames

Progress = Callable[[str], None]
"""Told in a few words what begins now."""

_JOIN_ERROR: Final = 2e-5
"""Largest difference, of full scale 1, that a missing margin may make where it is measured.

Unmeasured speech then stays under 1e-4, which is -80 dB (default voice, 27 s of speech: 6e-5).
"""

_SPLIT_ERROR: Final = 1e-3
"""Largest difference to the undivided graph: float32 sums in another order give up to 1e-5, a wrong cut 0.1."""

_MARGIN_STEP: Final = 2
_LARGEST_MARGIN: Final = 64
"""Latent frames: farther than the receptive field of any size of Piper's models."""
_CUTS: Final = 6

_PROBE_TEXT: Final = "1 2 3 4 5 6 7 8 9 10 11 12"
"""About five seconds of speech in any language of espeak-ng."""

_PROBE_TIMEOUT_S: Final = 30.0


class NoSuchPackageError(VoiceError):
    """A voice was named that is neither a file nor an installed package."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"is neither a file nor an installed package: `pip install {name}` first?")


class _Audio(BaseModel):
    sample_rate: Annotated[int, Field(gt=0)]


class _Espeak(BaseModel):
    voice: str = ""


class _Inference(BaseModel):
    noise_scale: float = 0.667
    length_scale: float = 1.0
    noise_w: float = 0.8


class PiperConfig(BaseModel):
    """The part that matters here of a voice's `.onnx.json`."""

    model_config = ConfigDict(protected_namespaces=())

    audio: _Audio
    espeak: _Espeak = _Espeak()
    inference: _Inference = _Inference()
    phoneme_type: str = "espeak"
    phoneme_id_map: dict[str, list[int]]
    num_speakers: Annotated[int, Field(ge=1)] = 1
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
    path = Path(where)
    if path.is_dir():
        return Source(_only_model(where, sorted(path.glob("*.onnx"))), {})
    if path.suffix == ".json" and path.stem.endswith(".onnx"):
        path = path.with_suffix("")
    if path.suffix == ".onnx" or path.exists():
        if not path.is_file():
            raise VoiceError(str(path), "does not exist")
        return Source(path, {})
    return _find_in_package(where)


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


def import_voice(source: Source, store: PackStore, *, name: str = "", progress: Progress = lambda _: None) -> Pack:
    """Make a pack of `source` in `store`, or give the one that was made of the very same files before.

    VoiceError, naming the file, where anything is not as a Piper voice has it; the store is then as it was.
    """
    name = check_name(name or source.name)
    progress(f"checking {source.model.name}")
    config = read_config(source.config)
    hashes = _check_hashes(source)
    known = next((p for p in store.list() if isinstance(p, Pack) and p.info.name == name), None)
    if known is not None and known.info.sources == hashes:
        return store.get(name)
    progress("cutting the graph")
    parts = _split(source.model, config.audio.sample_rate)
    if not parts.multi_speaker and config.num_speakers > 1:
        raise VoiceError(str(source.config), f"promises {config.num_speakers} speakers but the graph has no such input")
    graphs = {ACOUSTIC_FILE: parts.acoustic.SerializeToString(), VOCODER_FILE: parts.vocoder.SerializeToString()}
    progress("comparing with the original and measuring margins")
    try:
        margins = _measure(parts, graphs, config)
    except UnknownEspeakVoiceError as error:
        raise VoiceError(str(source.config), f"cannot be used: {error}") from error
    except (EngineError, GraphError) as error:
        raise VoiceError(str(source.model), f"is not a Piper voice that can be divided: {error}") from error
    info = PackInfo(
        name=name,
        language=config.espeak.voice,
        phoneme_type="text" if config.phoneme_type == "text" else "espeak",
        phoneme_ids=config.phoneme_id_map,
        clusters=[cluster for cluster in config.vowel_clusters or [] if "".join(cluster) in config.phoneme_id_map],
        sample_rate=config.audio.sample_rate,
        hop=parts.hop,
        channels=parts.channels,
        margin_left=margins.left,
        margin_right=margins.right,
        multi_speaker=parts.multi_speaker,
        duration_noise=parts.duration_noise,
        speaker_count=config.num_speakers,
        speaker_names=config.speaker_id_map,
        default_speaker=config.default_speaker_id,
        noise_scale=config.inference.noise_scale,
        length_scale=config.inference.length_scale,
        noise_w=config.inference.noise_w,
        sources=hashes,
        files={file: _sha256_of(data) for file, data in graphs.items()},
    )
    progress("writing the pack")
    return store.put(name, info, graphs)


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
    absent = [symbol for symbol in "_^$" if not config.phoneme_id_map.get(symbol)]
    if absent:
        raise VoiceError(str(path), f"has no id for {' '.join(absent)} in its phoneme_id_map")
    return config


def _check_hashes(source: Source) -> dict[str, str]:
    hashes = {}
    for path in (source.model, source.config):
        hashes[path.name] = sha256(path)
        if source.expected.get(path, hashes[path.name]) != hashes[path.name]:
            raise VoiceError(
                str(path), "is not the file that its package promises (its SHA-256 differs): install it again"
            )
    return hashes


def _split(path: Path, rate: int) -> Split:
    with path.open("rb") as file:
        head = file.read(64).lstrip()
    size = path.stat().st_size
    if head.startswith(b"<"):
        raise VoiceError(str(path), "is a web page, not an ONNX graph: download the raw file")
    if head.startswith(b"version https://git-lfs"):
        raise VoiceError(str(path), "is a pointer to a large file, not the file: fetch it with `git lfs pull`")
    try:
        model = onnx.load(path, load_external_data=False)
        onnx.checker.check_model(model)
    except (DecodeError, onnx.checker.ValidationError, ValueError) as error:
        raise VoiceError(str(path), f"is not a complete ONNX graph ({size} bytes): download it again") from error
    try:
        return split(model, rate)
    except (GraphError, onnx.checker.ValidationError) as error:
        raise VoiceError(str(path), f"cannot be used: {error}") from error


def _measure(parts: Split, graphs: Mapping[str, bytes], config: PiperConfig) -> Margins:
    """Compare the two parts with the undivided graph, then find the margins that windows need."""
    rng = np.random.default_rng(0)
    feeds = _probe(parts, config, rng)
    latents = OrtEngine(graphs[ACOUSTIC_FILE]).run(feeds)
    speaker = {name: feeds[name] for name in feeds if name == "sid"}
    vocoder = OrtEngine(graphs[VOCODER_FILE])
    rate = config.audio.sample_rate

    def render(start: int, stop: int, first_block: int, last_block: int) -> Samples:
        starts = np.arange(first_block, last_block) * block_size(rate)[0] - start * parts.hop
        window = np.ascontiguousarray(latents[:, :, start:stop])
        return vocoder.run({"latents": window, "starts": starts, "gain": np.ones(1, np.float32), **speaker})

    total = latents.shape[2]
    blocks = -(-total * parts.hop // block_size(rate)[0])
    whole = render(0, total, 0, blocks)
    original = resample(OrtEngine(parts.reference.SerializeToString()).run(feeds).reshape(-1), rate)
    count = output_frames(total, parts.hop, rate)
    error = float(np.abs(whole[:count] - np.clip(original[:count], -1, 1)).max())
    if not error <= _SPLIT_ERROR:
        raise GraphError(f"its two parts differ from the whole by {error:.2g}")

    block_in, block_out = block_size(rate)
    probe = -(-4 * parts.hop // block_in)  # blocks right at the cut: there the error is largest
    cuts = np.linspace(0, total, _CUTS + 2).astype(int)[1:-1]
    reach = _LARGEST_MARGIN + probe * block_in // parts.hop + 1

    def left_error(margin: int) -> float:
        return max(at(cut - margin, cut + reach, -(-(cut * parts.hop + HALF_TAPS) // block_in)) for cut in cuts)

    def right_error(margin: int) -> float:
        return max(at(cut - reach, cut + margin, (cut * parts.hop - HALF_TAPS) // block_in - probe) for cut in cuts)

    def at(start: int, stop: int, block: int) -> float:
        part = render(max(0, start), min(total, stop), block, block + probe)
        return float(np.abs(part - whole[block * block_out :][: part.size]).max())

    return Margins(_smallest_margin(left_error), _smallest_margin(right_error))


def _smallest_margin(error: Callable[[int], float]) -> int:
    """Bisect: the error falls as the margin grows."""
    margins = range(0, _LARGEST_MARGIN + 1, _MARGIN_STEP)
    enough = bisect.bisect_left(margins, True, key=lambda margin: error(margin) <= _JOIN_ERROR)  # noqa: FBT003
    return margins[min(enough, len(margins) - 1)]


def _probe(parts: Split, config: PiperConfig, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Make the acoustic part's inputs for some seconds of speech."""
    if config.phoneme_type == "espeak":
        with contextlib.closing(Phonemizer(_PROBE_TIMEOUT_S)) as phonemizer:
            clauses = phonemizer.phonemize(_PROBE_TEXT, config.espeak.voice)
        ids, _ = phoneme_ids(list(chain(*sentences_of(clauses, max_phonemes=1000))), config.phoneme_id_map)
    else:
        ids = rng.choice(sorted({i for known in config.phoneme_id_map.values() for i in known}), size=100).tolist()
    feeds: dict[str, NDArray[Any]] = {
        "input": np.array([ids], dtype=np.int64),
        "scales": np.array([config.inference.noise_scale, 1, config.inference.noise_w], dtype=np.float32),
        "noise_prior": rng.standard_normal((1, parts.channels, 1024), dtype=np.float32),
    }
    if parts.duration_noise:
        feeds["noise_duration"] = rng.standard_normal((1, 2, len(ids)), dtype=np.float32)
    if parts.multi_speaker:
        feeds["sid"] = np.array([config.default_speaker_id])
    return feeds


def resample(samples: Samples, rate: int) -> Samples:
    """Bring a whole signal from `rate` hertz to 48 kHz with the filter that the vocoder graph carries."""
    block_in, _ = block_size(rate)
    blocks = -(-samples.size // block_in)
    padded = np.pad(samples, (HALF_TAPS, blocks * block_in - samples.size + HALF_TAPS))
    rows = np.lib.stride_tricks.sliding_window_view(padded, block_in + 2 * HALF_TAPS)[::block_in][:blocks]
    result: Samples = (rows @ filter_bank(rate)).reshape(-1)
    return result


def _sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
