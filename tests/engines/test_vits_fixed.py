"""Windows of one fixed size, computed on ONNX Runtime, against one undivided pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from simulators import tiny_voice

from device.format import Samples
from engines import calibration, importer, piper
from engines.errors import GraphError
from engines.fixed_windows import WindowShape, default_shapes, fixed_plan, window_shape
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.runtime.ort import OrtEngine
from engines.runtime.static import static_shapes
from engines.vits import Latents, VitsVoice
from engines.vits_fixed import fixed_vocoder
from engines.window_feeds import WindowFeeds
from engines.windows import Speed, Window, output_frames

CAPACITY = 192_000


@pytest.fixture(scope="module")
def choir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pack, VitsVoice]]:
    """A tiny voice with three speakers."""
    folder = tmp_path_factory.mktemp("choir")
    pack = importer.import_voice(piper.find(str(tiny_voice.write(folder, speakers=3))), PackStore(folder / "packs"))
    with closing(VitsVoice.load(pack, threads=1)) as voice:
        yield pack, voice


def shape_of(voice: VitsVoice, frames: int) -> WindowShape:
    info = voice.info
    return window_shape(frames, hop=info.hop, rate=info.sample_rate, margins=info.margins)


def draw(voice: VitsVoice, frames: int, seed: int = 0) -> Latents:
    return np.random.default_rng(seed).standard_normal((1, voice.info.channels, frames), dtype=np.float32)


class Fixed:
    """One fixed size on ONNX Runtime."""

    def __init__(self, pack: Pack, shape: WindowShape, batch: int = 1) -> None:
        self.graph = fixed_vocoder(onnx.load(pack.vocoder), shape, batch=batch)
        self.engine = OrtEngine(self.graph.SerializeToString(), threads=2)
        info = pack.info
        self.feeds = WindowFeeds(shape, channels=info.channels, batch=batch, multi_speaker=info.multi_speaker)

    def put(self, row: int, latents: Latents, window: Window, gain: float = 1.0, speaker: int = 0) -> None:
        self.feeds.put(row, latents, window, gain=gain, speaker=speaker)

    def run(self) -> Samples:
        (sound,) = self.engine.run(self.feeds.feeds).values()
        return sound


def stream(pack: Pack, shapes: list[WindowShape], latents: Latents, speed: Speed) -> Samples:
    info = pack.info
    plan = fixed_plan(
        latents.shape[2], hop=info.hop, rate=info.sample_rate, margins=info.margins, speed=speed, shapes=shapes
    )
    engines = {shape.frames: Fixed(pack, shape) for shape in shapes}
    parts = []
    for window in plan:
        engine = engines[window.stop - window.start]
        engine.put(0, latents, window)
        parts.append(engine.run()[0][: window.frames])
    return np.concatenate(parts)


@pytest.mark.parametrize("frames", [1, 2, 7, 40, 61, 64, 65, 200])
def test_an_utterance_of_any_length_comes_out_as_in_one_pass(frames: int, tiny_pack: Pack, tiny: VitsVoice) -> None:
    latents = draw(tiny, frames)
    shapes = [shape_of(tiny, tiny.info.margins.frames + payload) for payload in (6, 30)]
    streamed = stream(tiny_pack, shapes, latents, Speed(0, 1e-6))
    whole = calibration.render_whole(tiny, latents)
    assert streamed.size == whole.size == output_frames(frames, tiny.info.hop, tiny.info.sample_rate)
    np.testing.assert_allclose(streamed, whole, rtol=0, atol=1e-4)


@pytest.mark.parametrize("frames", [20, 100, 304, 800])
def test_the_default_voice_streams_exactly(frames: int, voice_packs: Path) -> None:
    """With the default sizes, whatever the length, at no point more than 1e-3 from one undivided pass."""
    pack = PackStore(voice_packs).get("en_US-joe-medium")
    with closing(VitsVoice.load(pack)) as voice:
        ids = calibration.probe_ids(voice)
        spoken = voice.latents(ids, calibration.Delivery(), voice.noise(len(ids), np.random.default_rng(1)))
        latents = np.ascontiguousarray(np.tile(spoken, (1, 1, 4))[:, :, :frames])
        whole = calibration.render_whole(voice, latents)
    info = pack.info
    shapes = default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=CAPACITY)
    streamed = stream(pack, shapes, latents, Speed(0.001, 0.0004))
    assert np.abs(whole).max() > 0.1
    assert np.abs(streamed - whole).max() < 1e-3


def test_each_row_of_a_batch_is_a_window_of_its_own(choir: tuple[Pack, VitsVoice]) -> None:
    pack, voice = choir
    shape = shape_of(voice, voice.info.margins.frames + 20)
    batched, single = Fixed(pack, shape, batch=3), Fixed(pack, shape)
    expected = []
    for row, (frames, gain, speaker) in enumerate([(9, 1.0, 2), (200, 0.25, 0), (33, 0.5, 1)]):
        latents = draw(voice, frames, seed=row)
        info = voice.info
        plan = fixed_plan(
            frames, hop=info.hop, rate=info.sample_rate, margins=info.margins, speed=Speed(0, 1e-6), shapes=[shape]
        )
        window = list(plan)[-1]
        for engine, place in ((batched, row), (single, 0)):
            engine.put(place, latents, window, gain, speaker)
        expected.append(single.run()[0])
    np.testing.assert_allclose(batched.run(), expected, rtol=0, atol=1e-4)
    assert np.abs(expected).max(axis=1).min() > 0


def test_a_row_without_numbers_harms_no_other(tiny_pack: Pack, tiny: VitsVoice) -> None:
    shape = shape_of(tiny, tiny.info.margins.frames + 20)
    batched = Fixed(tiny_pack, shape, batch=2)
    window = Window(-shape.crop[0], shape.frames - shape.crop[0], 0, 0, np.arange(5) * 147, 0, last=True)
    latents = draw(tiny, 30)
    batched.put(0, latents, window)
    batched.put(1, np.full_like(latents, np.nan), window)
    sane, broken = batched.run()
    assert np.isfinite(sane).all()
    assert np.isnan(broken[: 5 * 320]).any()


@pytest.mark.parametrize("batch", [1, 8])
def test_every_shape_is_known_before_any_run(batch: int, choir: tuple[Pack, VitsVoice], tiny_pack: Pack) -> None:
    pack, voice = choir
    for graph in (Fixed(pack, shape_of(voice, 96), batch).graph, Fixed(tiny_pack, shape_of(voice, 96), batch).graph):
        shapes = static_shapes(graph)
        assert all(name in shapes for node in graph.graph.node for name in node.output)
        shaping = {"Shape", "ConstantOfShape", "Range", "NonZero", "Expand", "If", "Loop"}
        assert not shaping & {node.op_type for node in graph.graph.node}


def test_a_mask_stays_before_the_quantisation_of_its_convolution(tiny_pack: Pack, tiny: VitsVoice) -> None:
    """TensorRT joins a quantised input and its convolution only where nothing stands between the two."""
    model = onnx.load(tiny_pack.vocoder)
    graph = model.graph
    convolution = next(node for node in graph.node if node.output[0] == "res_0")
    scale, zero = (
        numpy_helper.from_array(np.array(a), n) for a, n in ((np.float32(0.02), "q_scale"), (np.int8(0), "q_zero"))
    )
    graph.initializer.extend([scale, zero])
    place = list(graph.node).index(convolution)
    source = convolution.input[0]
    graph.node.insert(place, helper.make_node("QuantizeLinear", [source, "q_scale", "q_zero"], ["q"]))
    graph.node.insert(place + 1, helper.make_node("DequantizeLinear", ["q", "q_scale", "q_zero"], ["dq"]))
    convolution.input[0] = "dq"
    fixed = fixed_vocoder(model, shape_of(tiny, 96)).graph
    makers = {node.output[0]: node for node in fixed.node}
    after = next(node for node in fixed.node if node.output[0] == "res_0")
    chain = [after]
    while chain[-1].op_type != "Mul":
        chain.append(makers[chain[-1].input[0]])
    assert [node.op_type for node in chain] == ["Conv", "DequantizeLinear", "QuantizeLinear", "Mul"]


def test_what_is_no_vocoder_part_is_refused(tiny_pack: Pack, tiny: VitsVoice) -> None:
    with pytest.raises(GraphError, match="no pack's vocoder"):
        fixed_vocoder(onnx.load(tiny_pack.acoustic), shape_of(tiny, 96))
