"""A graph of Kokoro's shape with next to no weights, quantised by ONNX Runtime's own quantiser; not a voice to hear."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser
from onnxruntime.quantization import QuantType, quantize_dynamic

WIDTH = 16

VOCABULARY = {
    sign: number for number, sign in enumerate(" .,!?;:abdefhijklmnoprstuvwzæðŋɑɔəɛɜɡɪɹʃʊʌʒθˈˌːAIOQWYʤʧTᵊᵻ", 1)
}

_GRAPH = """
<ir_version: 8, opset_import: ["" : 17]>
tiny_kokoro (int64[1,sequence_length] tokens, float[1,256] style, float[1] speed) => (float[audio_length] audio) {
    embedded = Gather (emb, tokens)
    turned = Transpose <perm = [0, 2, 1]> (embedded)
    mixed = Conv <kernel_shape = [3], pads = [1, 1]> (turned, w_conv, b_conv)
    in_time = Transpose <perm = [2, 0, 1]> (mixed)
    lstm, last_h, last_c = LSTM <hidden_size = 16> (in_time, w_lstm, r_lstm, b_lstm)
    flat_lstm = Reshape (lstm, shape_rows)
    logits = MatMul (flat_lstm, w_duration)
    positive = Sigmoid (logits)
    squared = Pow (positive, power)
    scaled = Mul (squared, eight)
    summed = ReduceSum <keepdims = 0> (scaled, a1)
    slower = Div (summed, speed)
    rounded = Round (slower)
    clipped = Clip (rounded, one)
    counts = Cast <to = 7> (clipped)
    ends = CumSum (counts, zero)
    total = ReduceMax <keepdims = 0> (ends)
    frames = Range (zero, total, one_i)
    column = Unsqueeze (frames, a1)
    row = Unsqueeze (ends, a0)
    before = GreaterOrEqual (column, row)
    before_i = Cast <to = 7> (before)
    which = ReduceSum <keepdims = 0> (before_i, a1)
    chosen = Gather (flat_lstm, which)
    colour = MatMul (style, w_style)
    coloured = Add (chosen, colour)
    waves = MatMul (coloured, w_out)
    sound = Tanh (waves)
    audio = Reshape (sound, minus_one)
}
"""


def model() -> bytes:
    """Make the graph."""
    rng = np.random.default_rng(3)
    c = WIDTH

    def weights(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    made = parser.parse_model(_GRAPH)
    constants = {
        "emb": 2 * weights(len(VOCABULARY) + 1, c),
        "w_conv": weights(c, c, 3),
        "b_conv": weights(c),
        "w_lstm": weights(1, 4 * c, c),
        "r_lstm": weights(1, 4 * c, c),
        "b_lstm": weights(1, 8 * c),
        "w_duration": weights(c, 2),
        "w_style": weights(256, c),
        "w_out": 4 * weights(c, 600),
        "shape_rows": np.array([-1, c]),
        "eight": np.array(4, np.float32),
        "power": np.array(2, np.float32),
        "one": np.array(1, np.float32),
        "one_i": np.array(1),
        "zero": np.array(0),
        "a0": np.array([0]),
        "a1": np.array([1]),
        "minus_one": np.array([-1]),
    }
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    onnx.checker.check_model(made)
    with tempfile.TemporaryDirectory() as folder:
        plain, quantised = Path(folder, "plain.onnx"), Path(folder, "int8.onnx")
        onnx.save(made, plain)
        # Weights as the real one has them; older ONNX Runtimes convolve no others.
        operators = ["MatMul", "Conv", "LSTM"]
        quantize_dynamic(plain, quantised, op_types_to_quantize=operators, weight_type=QuantType.QUInt8)
        return quantised.read_bytes()


def style(seed: int) -> bytes:
    """Make a style's table."""
    return (0.2 * np.random.default_rng(seed).standard_normal((510, 256))).astype("<f4").tobytes()


def write(folder: Path, *styles: str) -> Path:
    """Write the files that somebody would have who downloaded them; gives the folder."""
    content = model()
    (folder / "kokoro.onnx").write_bytes(content)
    (folder / "model.sha256").write_text(hashlib.sha256(content).hexdigest() + "\n")
    (folder / "vocab.json").write_text(json.dumps({"vocab": VOCABULARY}), encoding="utf-8")
    for seed, name in enumerate(styles):
        (folder / f"{name}.bin").write_bytes(style(seed))
    return folder
