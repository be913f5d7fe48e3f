"""Import a Piper voice: check its files, cut the graph, compare, measure, write the pack.

Needs onnx and some seconds; the daemon itself never loads this module.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from numpy.typing import NDArray

from device.format import Samples
from engines import calibration
from engines.acoustic import WholeAcoustic
from engines.errors import GraphError, UnknownEspeakVoiceError, VoiceError
from engines.loudness import voice_loudness
from engines.pack import ACOUSTIC_FILE, REVISION, VOCODER_FILE, Pack, check_name
from engines.pack_info import PackInfo
from engines.pack_store import PackStore
from engines.piper import MARKS, PiperConfig, Source, check_hashes, read_config
from engines.resampling import HALF_TAPS, block_size, filter_bank
from engines.runtime.ort import OrtEngine
from engines.vits import Delivery, VitsVoice
from engines.vits_encoder import encoder
from engines.vits_graph import Split, lean, split
from engines.vocoder import FreeVocoder, Latents
from engines.windows import UNKNOWN_MARGINS

Progress = Callable[[str], None]
"""Told in a few words what begins now."""

_SPLIT_ERROR: Final = 1e-3
"""Largest difference to the undivided graph: float32 sums in another order give up to 1e-5, a wrong cut 0.1."""

_MOST_TOLD: Final = 20
"""Symbols."""


def import_voice(source: Source, store: PackStore, *, name: str = "", progress: Progress = lambda _: None) -> Pack:
    """Make a pack of `source` in `store`, or give the one that was made of the very same files before.

    VoiceError, naming the file, where anything is not as a Piper voice has it; the store is then as it was.
    """
    name = check_name(name) if name else _name_of(source)
    progress(f"checking {source.model.name}")
    config = read_config(source.config)
    hashes = check_hashes(source)
    known = next((p for p in store.list() if isinstance(p, Pack) and p.info.name == name), None)
    if known is not None and known.info.sources == hashes and known.info.revision == REVISION:
        return store.get(name)
    progress("cutting the graph")
    parts = _split(source.model, config.audio.sample_rate)
    config = _agreed(config, parts, source, progress)
    info = _describe(name, config, parts, hashes)
    try:
        return _finish(store, info, parts, encoder(lean(parts.acoustic, parts.channels)), progress)
    except UnknownEspeakVoiceError as error:
        raise VoiceError(str(source.config), f"cannot be used: {error}") from error
    except VoiceError:
        raise
    except Exception as error:  # noqa: BLE001  a graph of a new kind may break any assumption of the surgery
        progress(f"leaving the acoustic graph as it was exported, since {error}")
    try:
        return _finish(store, info, parts, encoder(parts.acoustic), progress)
    except VoiceError:
        raise
    except Exception as error:
        raise VoiceError(str(source.model), f"is not a Piper voice that can be divided: {error}") from error


def _finish(store: PackStore, info: PackInfo, parts: Split, acoustic: onnx.ModelProto, progress: Progress) -> Pack:
    """Compare, measure and write. GraphError where the parts do not compute what the whole does."""
    progress("comparing with the original and measuring")
    graphs = {ACOUSTIC_FILE: acoustic.SerializeToString(), VOCODER_FILE: parts.vocoder.SerializeToString()}
    vocoder = FreeVocoder(info, OrtEngine(graphs[VOCODER_FILE]))
    with closing(VitsVoice(info, WholeAcoustic(OrtEngine(graphs[ACOUSTIC_FILE])), vocoder)) as voice:
        latents = _compare(voice, parts)
        margins = calibration.measure_margins(voice, latents)
        speed = calibration.measure_speed(vocoder, info)
        device = calibration.device_name(vocoder, threads=0)
        progress("measuring its loudness")
        loudness = voice_loudness(voice)
    progress("writing the pack")
    files = {file: hashlib.sha256(data).hexdigest() for file, data in graphs.items()}
    known = info.model_copy(update={"margins": margins, "loudness_lufs": loudness, "files": files})
    pack = store.put(info.name, known, graphs)
    calibration.keep_speed(pack, device, speed)
    return pack


def _name_of(source: Source) -> str:
    """Name the pack as the file, without the accents that `pt_PT-tugão-medium` has and no pack may."""
    try:
        return check_name(unicodedata.normalize("NFKD", source.name).encode("ascii", "ignore").decode())
    except VoiceError as error:
        raise VoiceError(str(source.model), "makes no name for a voice: choose one by --name") from error


def _agreed(config: PiperConfig, parts: Split, source: Source, progress: Progress) -> PiperConfig:
    """Give what the JSON says as far as the graph has it. VoiceError where the two cannot belong together."""
    where, count = str(source.config), max(1, config.num_speakers)
    if not parts.multi_speaker and count > 1:
        raise VoiceError(where, f"promises {count} speakers but the graph has no such input")
    if parts.speakers is not None and count > parts.speakers:
        raise VoiceError(where, f"promises {count} speakers but the graph has {parts.speakers}")
    default = config.default_speaker_id if parts.multi_speaker else 0
    if not 0 <= default < count:
        raise VoiceError(where, f"has default_speaker_id {default}, which is none of its {count} speakers")
    symbols = math.inf if parts.symbols is None else parts.symbols
    known = {symbol: ids for symbol, ids in config.phoneme_id_map.items() if all(0 <= i < symbols for i in ids)}
    if any(mark not in known for mark in MARKS):
        raise VoiceError(where, f"has ids beyond the {symbols} that the graph knows: it is the JSON of another voice")
    if unknown := sorted(config.phoneme_id_map.keys() - known.keys()):
        progress(f"leaving out {' '.join(unknown[:_MOST_TOLD])}, which the graph does not know")
    return config.model_copy(
        update={
            "num_speakers": count,
            "speaker_id_map": {name: i for name, i in config.speaker_id_map.items() if 0 <= i < count},
            "default_speaker_id": default,
            "phoneme_id_map": known,
        }
    )


def _describe(name: str, config: PiperConfig, parts: Split, sources: Mapping[str, str]) -> PackInfo:
    return PackInfo(
        revision=REVISION,
        name=name,
        language=config.espeak.voice,
        phoneme_type="text" if config.phoneme_type == "text" else "espeak",
        phoneme_ids=config.phoneme_id_map,
        clusters=[cluster for cluster in config.vowel_clusters or [] if "".join(cluster) in config.phoneme_id_map],
        sample_rate=config.audio.sample_rate,
        hop=parts.hop,
        channels=parts.channels,
        margins=UNKNOWN_MARGINS,
        multi_speaker=parts.multi_speaker,
        duration_noise=parts.duration_noise,
        speaker_count=config.num_speakers,
        speaker_names=config.speaker_id_map,
        default_speaker=config.default_speaker_id,
        noise_scale=config.inference.noise_scale,
        length_scale=config.inference.length_scale,
        noise_w=config.inference.noise_w,
        sources=dict(sources),
        files={},
    )


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
        # Piper's tool for alignments makes the durations an output without a type, which the checker does not take.
        for output in [item for item in model.graph.output if not item.HasField("type")]:
            model.graph.output.remove(output)
        _refuse_divided(path, model)
        onnx.checker.check_model(model)
    except (DecodeError, onnx.checker.ValidationError, ValueError) as error:
        raise VoiceError(str(path), f"is not a complete ONNX graph ({size} bytes): download it again") from error
    try:
        return split(model, rate)
    except Exception as error:
        raise VoiceError(str(path), f"cannot be used: {error}") from error


def _refuse_divided(path: Path, model: onnx.ModelProto) -> None:
    """VoiceError where the weights lie in another file, as new exporters put them: a voice is two files."""
    named = [e.value for tensor in model.graph.initializer for e in tensor.external_data if e.key == "location"]
    if named:
        one = f"onnx.save(onnx.load('{path.name}'), 'whole.onnx')"
        raise VoiceError(str(path), f"has its weights in {named[0][:100]!r}: make one file of both by {one} in Python")


def _compare(voice: VitsVoice, parts: Split) -> Latents:
    """Compare the two parts with the undivided graph on some seconds of speech; gives its latents.

    GraphError where they differ.
    """
    speech = calibration.probe_ids(voice)
    delivery = Delivery(speaker=voice.info.default_speaker)
    with closing(OrtEngine(parts.reference.SerializeToString())) as reference:
        # Short ones too: the attention's relative positions have cases of their own there.
        for ids in (speech[:1], speech[:4], speech[: len(speech) // 3], speech):
            noise = voice.noise(len(ids), np.random.default_rng(0))
            latents = voice.latents(ids, delivery, noise)
            whole = calibration.render_whole(voice, latents)
            original = resample(_only(reference.run(voice.feeds(ids, delivery, noise))), voice.info.sample_rate)
            error = math.inf
            if original.size >= whole.size:
                error = float(np.abs(whole - original[: whole.size]).max())
            if not error <= _SPLIT_ERROR:
                raise GraphError(f"its two parts differ from the whole by {error:.2g} on {len(ids)} phonemes")
    return latents


def _only(outputs: Mapping[str, NDArray[np.float32]]) -> Samples:
    (sound,) = outputs.values()
    return sound.reshape(-1)


def resample(samples: Samples, rate: int) -> Samples:
    """Bring a whole signal from `rate` hertz to 48 kHz with the filter that the vocoder graph carries."""
    block_in, _ = block_size(rate)
    blocks = -(-samples.size // block_in)
    padded = np.pad(samples, (HALF_TAPS, blocks * block_in - samples.size + HALF_TAPS))
    rows = np.lib.stride_tricks.sliding_window_view(padded, block_in + 2 * HALF_TAPS)[::block_in][:blocks]
    result: Samples = (rows @ filter_bank(rate)).reshape(-1)
    return result
