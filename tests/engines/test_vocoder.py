"""A tiny voice's vocoder on a simulated TensorRT, window by window, against one undivided pass on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from simulators.tensorrt import World

from device.format import Samples
from engines import calibration
from engines.acoustic import WholeAcoustic
from engines.errors import EngineError
from engines.fixed_windows import default_shapes
from engines.pack import Pack
from engines.runtime.ort import OrtEngine
from engines.runtime.trt import TensorRt
from engines.runtime.trt_build import build
from engines.runtime.trt_engine import TrtEngine
from engines.vits import Delivery, VitsVoice
from engines.vits_fixed import fixed_vocoder
from engines.vocoder import FreeVocoder, Latents
from engines.vocoder_checked import CheckedVocoder
from engines.vocoder_fixed import FixedVocoder

CAPACITY = 192_000


def fixed(pack: Pack, world: World) -> FixedVocoder:
    owner = TensorRt(world.gpu)
    info = pack.info
    shapes = default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=CAPACITY)
    engines = {}
    for shape in shapes:
        plan, _ = build(fixed_vocoder(onnx.load(pack.vocoder), shape).SerializeToString(), name="vocoder")
        engines[shape] = TrtEngine(owner, plan, name="vocoder", precision="int8")
    return FixedVocoder(info, engines)


@pytest.fixture
def made() -> list[FreeVocoder]:
    """The safer vocoders that were asked for."""
    return []


@pytest.fixture
def voice(tiny_pack: Pack, world: World, made: list[FreeVocoder]) -> VitsVoice:
    def safer() -> FreeVocoder:
        made.append(FreeVocoder(tiny_pack.info, OrtEngine(tiny_pack.vocoder, threads=1)))
        return made[-1]

    acoustic = WholeAcoustic(OrtEngine(tiny_pack.acoustic, threads=1))
    return VitsVoice(tiny_pack.info, acoustic, CheckedVocoder(fixed(tiny_pack, world), safer))


def draw(voice: VitsVoice, frames: int) -> Latents:
    return np.random.default_rng(frames).standard_normal((1, voice.info.channels, frames), dtype=np.float32)


def stream(voice: VitsVoice, latents: Latents, empty: Callable[[int], Samples], gain: float = 1.0) -> Samples:
    parts = []
    for window in voice.windows(latents, CAPACITY):
        output = empty(voice.frames_needed(window))
        voice.render(latents, window, Delivery(gain=gain), output)
        parts.append(output[: window.frames])
    return np.concatenate(parts)


def ordinary(size: int) -> Samples:
    return np.empty(size, np.float32)


@pytest.mark.parametrize("frames", [1, 30, 200, 700])
def test_windows_join_to_the_undivided_pass(frames: int, voice: VitsVoice, tiny: VitsVoice, world: World) -> None:
    latents = draw(voice, frames)
    heard = stream(voice, latents, lambda size: world.gpu.empty((size,), np.float32))
    np.testing.assert_allclose(heard, calibration.render_whole(tiny, latents), rtol=0, atol=1e-4)
    assert (voice.backend, voice.precision) == ("tensorrt 10.3.0 + onnxruntime-cpu", "int8")


def nan(place: NDArray[np.float32]) -> None:
    place[..., 100:200] = np.nan


def silence(place: NDArray[np.float32]) -> None:
    place.fill(0)


def full_scale(place: NDArray[np.float32]) -> None:
    place.fill(-1)


@pytest.mark.parametrize("spoil", [nan, silence, full_scale])
def test_a_bad_window_is_computed_again_and_all_later_ones_elsewhere(
    spoil: Callable[[NDArray[np.float32]], None],
    voice: VitsVoice,
    tiny: VitsVoice,
    world: World,
    made: list[FreeVocoder],
    caplog: pytest.LogCaptureFixture,
) -> None:
    latents = draw(voice, 700)
    whole = calibration.render_whole(tiny, latents)
    stream(voice, draw(voice, 40), ordinary)
    assert not made, "not loaded while nothing is wrong"
    windows = list(voice.windows(latents, CAPACITY))
    assert len(windows) > 2
    parts = []
    for number, window in enumerate(windows):
        world.faults.output = spoil if number == 1 else None
        output = ordinary(voice.frames_needed(window))
        voice.render(latents, window, Delivery(), output)
        parts.append(output[: window.frames])
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-4)
    assert (voice.backend, voice.precision) == ("onnxruntime-cpu", "fp32")
    np.testing.assert_allclose(stream(voice, latents, ordinary), whole, rtol=0, atol=1e-4)
    assert len(made) == 1
    assert sum("takes over" in message for message in caplog.messages) == 1


def test_nothing_is_left_of_a_bad_window_that_reaches_beyond_the_end(
    voice: VitsVoice, tiny: VitsVoice, world: World
) -> None:
    latents = draw(voice, 30)
    world.faults.output = lambda place: place.fill(np.nan)
    heard = stream(voice, latents, ordinary)
    np.testing.assert_allclose(heard, calibration.render_whole(tiny, latents), rtol=0, atol=1e-4)


def test_a_gpu_that_has_gone_bad(voice: VitsVoice, tiny: VitsVoice, world: World) -> None:
    latents = draw(voice, 200)
    world.gpu.broken = "the launch timed out and was terminated"
    heard = stream(voice, latents, ordinary)
    np.testing.assert_allclose(heard, calibration.render_whole(tiny, latents), rtol=0, atol=1e-4)
    assert voice.backend == "onnxruntime-cpu"


def test_silence_at_volume_zero_is_right(voice: VitsVoice, made: list[FreeVocoder]) -> None:
    assert not stream(voice, draw(voice, 200), ordinary, gain=0).any()
    assert not made


def test_when_the_safer_one_is_bad_too_it_is_an_error_and_no_loop(
    voice: VitsVoice, world: World, made: list[FreeVocoder]
) -> None:
    world.faults.output = nan
    latents = draw(voice, 30)
    latents[:] = np.nan
    for _ in range(3):
        with pytest.raises(EngineError, match="onnxruntime-cpu fp32 gave values that are no numbers"):
            stream(voice, latents, ordinary)
    assert len(made) == 1
    assert voice.vocoder.backend == "tensorrt 10.3.0", "the latents are to blame, not the engine"


def test_its_speed_can_be_measured(voice: VitsVoice) -> None:
    speed = calibration.measure_speed(voice.vocoder, voice.info)
    assert speed.frame_s > 0
    assert speed.overhead_s >= 0


def test_closing_is_final_and_idempotent(voice: VitsVoice) -> None:
    voice.close()
    voice.close()
    with pytest.raises(EngineError, match="closed"):
        voice.latents([1, 2], Delivery(), voice.noise(2, np.random.default_rng(0)))
