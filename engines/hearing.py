"""A voice's vocoder part in other graphs, judged by what they make of the same latents."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from device.format import RATE, Samples
from engines import calibration
from engines.acoustic import WholeAcoustic
from engines.corpus import CALIBRATION, JUDGED
from engines.pack import Pack
from engines.quality import Judge, Quality
from engines.runtime.ort import OrtEngine
from engines.vits import Delivery, VitsVoice, acoustic_on_cpu
from engines.vocoder import FreeVocoder, Latents


class Hearing:
    """The latents of the corpus, and the sound of the pack's own float graph to compare with. On the CPU."""

    def __init__(
        self, pack: Pack, *, judged: Sequence[str] = JUDGED, calibration_texts: Sequence[str] = CALIBRATION
    ) -> None:
        """Speak the corpus; takes some seconds. EngineError or SynthesisError where the pack's graphs fail."""
        self.info = pack.info
        self._acoustic = WholeAcoustic(acoustic_on_cpu(pack, threads=0))
        with closing(FreeVocoder(pack.info, OrtEngine(pack.vocoder))) as vocoder:
            voice = VitsVoice(pack.info, self._acoustic, vocoder)
            self.calibration: list[Latents] = _latents(voice, calibration_texts, seed=0)
            self.judged: list[Latents] = _latents(voice, judged, seed=1)
            self.references: list[Samples] = [calibration.render_whole(voice, latents) for latents in self.judged]
        self._judge = Judge(self.references, RATE)

    def sounds(self, graph: bytes | Path, count: int | None = None) -> list[Samples]:
        """Let a graph speak the first `count` of the judged sentences, each as one window.

        EngineError or SynthesisError where it cannot.
        """
        with closing(FreeVocoder(self.info, OrtEngine(graph))) as vocoder:
            voice = VitsVoice(self.info, self._acoustic, vocoder)
            return [calibration.render_whole(voice, latents) for latents in self.judged[:count]]

    def quality(self, graph: bytes | Path, count: int | None = None) -> Quality:
        """Judge a graph by the first `count` of the judged sentences."""
        return self.quality_of(self.sounds(graph, count))

    def quality_of(self, sounds: Sequence[Samples]) -> Quality:
        """Judge what `sounds` gave."""
        return self._judge.quality(sounds)

    def close(self) -> None:
        """Free the acoustic part. Idempotent."""
        self._acoustic.close()


def _latents(voice: VitsVoice, texts: Sequence[str], *, seed: int) -> list[Latents]:
    rng = np.random.default_rng(seed)
    delivery = Delivery(speaker=voice.info.default_speaker)
    return [voice.latents(ids, delivery, voice.noise(len(ids), rng)) for ids in calibration.sentence_ids(voice, texts)]
