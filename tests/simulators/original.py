"""The original graph of a voice, run whole, with the noise that it drew told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray


class Original:
    """An unmodified Piper graph but for this: what its random nodes draw is an output too."""

    def __init__(self, path: Path) -> None:
        model = onnx.load(path)
        self._random = [node.output[0] for node in model.graph.node if node.op_type == "RandomNormalLike"]
        for name in self._random:
            model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        self._inputs = {item.name for item in self._session.get_inputs()}

    def run(self, ids: list[int], *, speaker: int = 0) -> tuple[NDArray[np.float32], dict[int, NDArray[np.float32]]]:
        """Give the sound, shape [samples] at the voice's rate, and each noise by its number of channels."""
        feeds: dict[str, Any] = {
            "input": np.array([ids], dtype=np.int64),
            "input_lengths": np.array([len(ids)], dtype=np.int64),
            "scales": np.array([0.667, 1.0, 0.8], dtype=np.float32),
            "sid": np.array([speaker], dtype=np.int64),
        }
        sound, *noises = self._session.run(
            [self._session.get_outputs()[0].name, *self._random], {n: v for n, v in feeds.items() if n in self._inputs}
        )
        return sound.reshape(-1), {noise.shape[1]: noise for noise in noises}
