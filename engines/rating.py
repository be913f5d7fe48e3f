"""How good speech sounds to people, without a reference: DNSMOS P.835.

Reddy, Gopal and Cutler, 'DNSMOS P.835: a non-intrusive perceptual objective speech quality metric to evaluate noise
suppressors', 2022. The graph comes with the package speechmos, which is found and never imported: its code would load
librosa and pandas. The polynomials that bring the graph's output to the scale of listeners are that paper's.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import RATE, Samples
from engines.errors import RatingUnavailableError
from engines.runtime.ort import OrtEngine

_RATE: Final = 16_000
_SAMPLES: Final = 144_160
"""9.01 s, the only length that the graph takes: shorter speech is repeated, longer speech is cut."""

_OVERALL: Final = (-0.06766283, 1.11546468, 0.04602535)
"""Of the graph's third output, highest power first."""

_HALF_TAPS: Final = 48
"""Of the low pass before every third sample is taken: 80 dB at 8.5 kHz."""


class Rater:
    """Rates speech in the thread that asks, on one core: some 0.3 s for each rating. For one thread."""

    def __init__(self) -> None:
        """Load the graph; RatingUnavailableError where it is not installed, EngineError where it is broken."""
        self._engine = OrtEngine(_graph(), threads=1)

    def overall(self, speech: Samples) -> float:
        """Give the overall quality of speech at 48 kHz, 1 (bad) to 5 (excellent). EngineError."""
        heard = _decimated(speech)
        whole = np.resize(heard, _SAMPLES) if heard.size else np.zeros(_SAMPLES, np.float32)
        (outputs,) = self._engine.run({"input_1": whole[None].astype(np.float32)}).values()
        return float(np.polyval(_OVERALL, float(outputs[0, 2])))

    def close(self) -> None:
        """Free the graph. Idempotent."""
        self._engine.close()


def _graph() -> Path:
    found = importlib.util.find_spec("speechmos")
    for folder in found.submodule_search_locations or () if found else ():
        graph = Path(folder) / "dnsmos_models/sig_bak_ovr.onnx"
        if graph.is_file():
            return graph
    raise RatingUnavailableError


def _decimated(speech: Samples) -> NDArray[np.float32]:
    """Give every third sample, after a windowed-sinc low pass: 48 to 16 kHz."""
    step = RATE // _RATE
    taps = np.arange(-_HALF_TAPS, _HALF_TAPS + 1)
    low_pass = np.sinc(taps / step) * np.kaiser(taps.size, 8.0)
    filtered = np.convolve(np.clip(speech, -1, 1), (low_pass / low_pass.sum()).astype(np.float32), mode="same")
    return np.asarray(filtered[::step], np.float32)
