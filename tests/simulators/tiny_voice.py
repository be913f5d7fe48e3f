"""A voice of the shape of a Piper voice, small enough for a test: the same graph topology, random weights.

It says nothing that a person would understand, but it has everything that the surgery and the schedule must cope
with: both noises, ceiled durations, the alignment, frame masks, a flow with leftover zeros, three upsamplings by 256
in all and, with several speakers, their embedding on both sides of the cut.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

CHANNELS = 8
HOP = 256
SYMBOLS = "_^$ .,?!abcdefghijklmnopqrstuvwxyzˈːəɪʊæɛɔɑʌɹðŋʃθɡ"

_GRAPH = """
<ir_version: 8, opset_import: ["" : 15]>
voice (int64[batch, phonemes] input, int64[batch] input_lengths, float[3] scales SPEAKER_INPUT)
    => (float[batch, n, m, time] output)
{
    noise_scale = Gather <axis = 0> (scales, c0)
    length_scale = Gather <axis = 0> (scales, c1)
    noise_w = Gather <axis = 0> (scales, c2)
    embedded = Gather (emb, input)
    x = Transpose <perm = [0, 2, 1]> (embedded)
    x_shape = Shape (x)
    count = Gather <axis = 0> (x_shape, c2)
    positions = Range (c0, count, c1)
    position_row = Unsqueeze (positions, a0)
    lengths_column = Unsqueeze (input_lengths, a1)
    inside = Less (position_row, lengths_column)
    inside_3d = Unsqueeze (inside, a1)
    x_mask = Cast <to = 1> (inside_3d)
    x_masked = Mul (x, x_mask)
    encoded = Conv <kernel_shape = [3], pads = [1, 1]> (x_masked, w_encoder)
    stats = Conv <kernel_shape = [1]> (encoded, w_stats)
    mean, logs = Split <axis = 1> (stats, split_sizes)

    count_1d = Unsqueeze (count, a0)
    noise_shape = Concat <axis = 0> (a1, a2, count_1d)
    zeros_like = ConstantOfShape (noise_shape)
    duration_noise = RandomNormalLike <dtype = 1> (zeros_like)
    scaled_noise = Mul (duration_noise, noise_w)
    logw_both = Conv <kernel_shape = [1]> (encoded, w_duration)
    logw_noisy = Add (logw_both, scaled_noise)
    logw = Slice (logw_noisy, a0, a1, a1)
    w_raw = Exp (logw)
    w_masked = Mul (w_raw, x_mask)
    w = Mul (w_masked, length_scale)
    w_ceil = Ceil (w)
    w_sum = ReduceSum <keepdims = 0> (w_ceil, axes_12)
    w_clipped = Clip (w_sum, one, )
    y_lengths = Cast <to = 7> (w_clipped)
    longest = ReduceMax <keepdims = 0> (y_lengths)
    frames = Range (c0, longest, c1)
    frame_row = Unsqueeze (frames, a0)
    y_column = Unsqueeze (y_lengths, a1)
    y_inside = Less (frame_row, y_column)
    y_inside_3d = Unsqueeze (y_inside, a1)
    y_mask = Cast <to = 1> (y_inside_3d)

    ends = CumSum (w_ceil, c2)
    starts = Sub (ends, w_ceil)
    frames_f = Cast <to = 1> (frames)
    frames_column = Unsqueeze (frames_f, a1)
    before_end = Less (frames_column, ends)
    before_start = Less (frames_column, starts)
    before_end_f = Cast <to = 1> (before_end)
    before_start_f = Cast <to = 1> (before_start)
    path = Sub (before_end_f, before_start_f)
    mean_rows = Transpose <perm = [0, 2, 1]> (mean)
    mean_aligned = MatMul (path, mean_rows)
    m_p = Transpose <perm = [0, 2, 1]> (mean_aligned)
    logs_rows = Transpose <perm = [0, 2, 1]> (logs)
    logs_aligned = MatMul (path, logs_rows)
    logs_p = Transpose <perm = [0, 2, 1]> (logs_aligned)
    prior_noise = RandomNormalLike <dtype = 1> (m_p)
    deviation = Exp (logs_p)
    noise_1 = Mul (prior_noise, deviation)
    noise_2 = Mul (noise_1, noise_scale)
    z_p = Add (m_p, noise_2)

    flipped = Slice (z_p, minus_one, lowest, a1, minus_one)
    f_0, f_1 = Split <axis = 1> (flipped, half_sizes)
    f_conv = Conv <kernel_shape = [5], pads = [2, 2]> (f_0, w_flow)
    f_masked = Mul (f_conv, y_mask)
    f_shape = Shape (f_masked)
    f_zeros = ConstantOfShape (f_shape)
    f_plus = Add (f_masked, f_zeros)
    f_tanh = Tanh (f_plus)
    f_sub = Sub (f_1, f_tanh)
    f_tanh_shape = Shape (f_tanh)
    f_more_zeros = ConstantOfShape (f_tanh_shape)
    f_minus = Neg (f_more_zeros)
    f_exp = Exp (f_minus)
    f_scaled = Mul (f_sub, f_exp)
    f_out = Mul (f_scaled, y_mask)
    z = Concat <axis = 1> (f_0, f_out)
    z_masked = Mul (z, y_mask)

    pre = Conv <kernel_shape = [7], pads = [3, 3]> (z_masked, w_pre, b_pre)
    SPEAKER_NODES
    pre_active = LeakyRelu <alpha = 0.1> (PRE)
    up_0 = ConvTranspose <kernel_shape = [16], strides = [8], pads = [4, 4]> (pre_active, w_up_0, b_pre)
    up_0_active = LeakyRelu <alpha = 0.1> (up_0)
    res_0 = Conv <kernel_shape = [3], pads = [3, 3], dilations = [3]> (up_0_active, w_res, b_pre)
    sum_0 = Add (res_0, up_0)
    up_1 = ConvTranspose <kernel_shape = [16], strides = [8], pads = [4, 4]> (sum_0, w_up_1, b_pre)
    up_1_active = LeakyRelu <alpha = 0.1> (up_1)
    up_2 = ConvTranspose <kernel_shape = [8], strides = [4], pads = [2, 2]> (up_1_active, w_up_2, b_pre)
    up_2_active = LeakyRelu <alpha = 0.01> (up_2)
    post = Conv <kernel_shape = [7], pads = [3, 3]> (up_2_active, w_post)
    sound = Tanh (post)
    output = Unsqueeze (sound, a1)
}
"""

_SPEAKER_NODES = """
    g_row = Gather (emb_g, sid)
    g = Unsqueeze (g_row, a2)
    pre_g = Add (pre, g)
"""


def model(*, speakers: int = 1) -> onnx.ModelProto:
    """Make the graph."""
    text = _GRAPH.replace("SPEAKER_INPUT", ", int64[batch] sid" if speakers > 1 else "")
    text = text.replace("SPEAKER_NODES", _SPEAKER_NODES if speakers > 1 else "")
    text = text.replace("(PRE)", "(pre_g)" if speakers > 1 else "(pre)")
    made = parser.parse_model(text)
    rng = np.random.default_rng(7)

    def weights(*shape: int, scale: float = 1.0) -> np.ndarray[Any, Any]:
        fan_in = int(np.prod(shape[1:])) or 1
        return (scale * rng.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)

    c = CHANNELS
    constants: dict[str, Any] = {
        **{f"c{i}": np.array(i) for i in range(3)},
        **{f"a{i}": np.array([i]) for i in range(3)},
        "minus_one": np.array([-1]),
        "lowest": np.array([-(2**62)]),
        "one": np.array(1, dtype=np.float32),
        "axes_12": np.array([1, 2]),
        "split_sizes": np.array([c, c]),
        "half_sizes": np.array([c // 2, c // 2]),
        "emb": weights(len(SYMBOLS), c, scale=3.0),
        "w_encoder": weights(c, c, 3, scale=2.0),
        "w_stats": weights(2 * c, c, 1, scale=0.5),
        "w_duration": weights(2, c, 1, scale=0.5),
        "w_flow": weights(c // 2, c // 2, 5),
        "w_pre": weights(c, c, 7, scale=2.0),
        "b_pre": weights(c, scale=0.3),
        "w_res": weights(c, c, 3),
        "w_up_0": weights(c, c, 16, scale=3.0),
        "w_up_1": weights(c, c, 16, scale=3.0),
        "w_up_2": weights(c, c, 8, scale=3.0),
        "w_post": weights(1, c, 7, scale=0.5),
    }
    if speakers > 1:
        constants["emb_g"] = weights(speakers, c, scale=6.0)
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in constants.items() if name in used
    )
    onnx.checker.check_model(made)
    return made


def config(
    *, rate: int = 22_050, speakers: int = 1, phoneme_type: str = "espeak", language: str = "en-us"
) -> dict[str, Any]:
    """Make the JSON that belongs to it."""
    return {
        "audio": {"sample_rate": rate, "quality": "tiny"},
        "espeak": {"voice": language},
        "phoneme_type": phoneme_type,
        "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8},
        "phoneme_id_map": {symbol: [i] for i, symbol in enumerate(SYMBOLS)},
        "num_symbols": len(SYMBOLS),
        "num_speakers": speakers,
        "speaker_id_map": {f"speaker_{i}": i for i in range(speakers)} if speakers > 1 else {},
    }


def write(folder: Path, name: str = "tiny", *, rate: int = 22_050, speakers: int = 1, **settings: str) -> Path:
    """Write both files into `folder`; gives the .onnx."""
    path = folder / f"{name}.onnx"
    onnx.save(model(speakers=speakers), path)
    settings_json = json.dumps(config(rate=rate, speakers=speakers, **settings))
    path.with_name(path.name + ".json").write_text(settings_json, encoding="utf-8")
    return path
