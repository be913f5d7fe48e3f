"""A Kokoro pack, loaded: in which precision, measured on this device."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Final

import numpy as np

from engines.backends import Wanted
from engines.calibration import processor
from engines.durable import write_whole
from engines.errors import EngineError, VoiceError
from engines.kokoro import STYLE_NUMBERS, STYLE_ROWS, KokoroVoice, Styles
from engines.pack import KokoroPack
from engines.precedence import Precedence
from engines.runtime.engine import Engine
from engines.runtime.ort import OrtEngine
from engines.runtime.patient import PatientEngine
from engines.vits import Delivery
from engines.voice import Voice

_LOG = logging.getLogger(__name__)

PRECISIONS: Final = ("fp32", "int8")
"""What a pack has graphs in."""

CHOICE_FILE: Final = "precision.json"

_TRIAL_IDS: Final = 40
"""Phonemes of the sentence that is timed, some two seconds of speech."""

_TRIAL_RUNS: Final = 2
"""The quickest of so many counts, after a first one: other processes only ever make a run slower."""


def load_kokoro(pack: KokoroPack, wanted: Wanted) -> KokoroVoice:
    """Load a pack on the CPU. EngineError where it cannot be had in the precision that is wanted.

    TensorRT's parser takes the graph in float, but its engines here have fixed sizes, and how long a sentence sounds is
    decided within the graph: whoever wants TensorRT is told, and gets ONNX Runtime.
    """
    precision = _precision(pack, wanted)
    if wanted.backend == "trt":
        _LOG.warning(
            "voice %s is computed on the CPU: TensorRT's engines have fixed sizes, and the length of what this family "
            "speaks is decided within its graph; a Piper voice runs on TensorRT",
            pack.info.name,
        )
    return KokoroVoice(pack.info, load_styles(pack), _engine(pack, precision, wanted.threads))


class ConcurrentKokoro:
    """A `SharedVoice`: each sentence is computed in the thread that asks for it."""

    def __init__(self, pack: KokoroPack, precedence: Precedence, wanted: Wanted) -> None:
        """Load the pack, in the precision that speech as `wanted` has too. EngineError or VoiceError if that fails."""
        self._info = pack.info
        self._styles = load_styles(pack)
        self._graph: Engine = PatientEngine(_engine(pack, _precision(pack, wanted), threads=1), precedence)

    def speaking(self) -> AbstractContextManager[Voice]:
        """See `SharedVoice.speaking`."""
        return nullcontext(KokoroVoice(self._info, self._styles, self._graph))

    def close(self) -> None:
        """See `SharedVoice.close`."""
        self._graph.close()


def load_styles(pack: KokoroPack) -> Styles:
    """Open the tables of all styles; what is used of them is read. VoiceError where the file is none."""
    expected = (pack.info.speaker_count, STYLE_ROWS, STYLE_NUMBERS)
    try:
        styles: Styles = np.load(pack.styles, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise VoiceError(str(pack.styles), f"cannot be read ({error}): add the voice again") from error
    if styles.shape != expected or styles.dtype != np.float32:
        raise VoiceError(str(pack.styles), f"holds {styles.dtype} {styles.shape}, not {expected}: add the voice again")
    return styles


def measure_precision(packs: Sequence[KokoroPack], threads: int) -> dict[str, float]:
    """Time a sentence in each precision, by the first of packs with the same graphs, and keep it for this device.

    Gives the times in seconds. EngineError or VoiceError where a graph cannot be loaded.
    """
    times = {}
    for precision in PRECISIONS:
        with closing(KokoroVoice(packs[0].info, load_styles(packs[0]), _engine(packs[0], precision, threads))) as voice:
            times[precision] = _sentence_s(voice)
    for pack in packs:
        _keep(pack, processor(threads), times)
    return times


def chosen_precision(pack: KokoroPack, threads: int) -> str:
    """Give what was quickest on this device; fp32 where that was not measured, which is told."""
    try:
        stored = json.loads((pack.folder / CHOICE_FILE).read_bytes())
        times = {name: float(stored["seconds"][name]) for name in PRECISIONS}
        if stored["device"] == processor(threads):
            return min(times, key=lambda name: times[name])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    name = pack.info.name
    _LOG.info("voice %s is computed in fp32; `speakd voice calibrate %s` finds out whether int8 is quicker", name, name)
    return "fp32"


def _precision(pack: KokoroPack, wanted: Wanted) -> str:
    """Give the precision for this device. EngineError where the pack has none such."""
    precision = wanted.precision
    if precision == "auto":
        precision = chosen_precision(pack, wanted.threads)
    if not wanted.int8:
        precision = "fp32"
    if precision not in PRECISIONS:
        raise EngineError(f"voice {pack.info.name}", f"can be had in {' or '.join(PRECISIONS)}, not in {precision}")
    return precision


def _engine(pack: KokoroPack, precision: str, threads: int) -> OrtEngine:
    return OrtEngine(pack.graph(precision), threads=threads, precision=precision)


def _sentence_s(voice: KokoroVoice) -> float:
    ids: Sequence[int] = sorted({i for ids in voice.info.phoneme_ids.values() for i in ids})[-_TRIAL_IDS:]
    rng, delivery, times = np.random.default_rng(0), Delivery(speaker=voice.info.default_speaker), []
    for _ in range(1 + _TRIAL_RUNS):
        begun = time.perf_counter()
        voice.speak(ids, delivery, rng, capacity=1 << 20)
        times.append(time.perf_counter() - begun)
    return min(times[1:])


def _keep(pack: KokoroPack, device: str, times: dict[str, float]) -> None:
    try:
        write_whole(pack.folder / CHOICE_FILE, json.dumps({"device": device, "seconds": times}, indent=1).encode())
    except OSError as error:
        _LOG.warning("what is quickest for voice %s cannot be kept: %s", pack.info.name, error.strerror)
