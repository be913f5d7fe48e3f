"""The real voice in INT8, by a stated recipe, judged by PESQ-WB on sentences it was not quantised with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from simulators.kiosk import SENTENCES, pesq_wb, said, word_errors, words

from engines.corpus import CALIBRATION, JUDGED
from engines.hearing import Hearing
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precision_search import LATENTS, fit_all, in_half
from engines.quality import Quality
from engines.runtime.half import rounded
from engines.runtime.quantize import Site, quantized, sites
from engines.runtime.ranges import Method

WIDE = 64
"""The recipe: all convolutions with as many channels on both sides, which leaves the last stage in FP16."""

HEARD = 5
"""Sentences that a recogniser hears too, which takes it longer than they are."""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def pack(voice_packs: Path) -> Pack:
    return PackStore(voice_packs).get("en_US-joe-medium")


@pytest.fixture(scope="module")
def model(pack: Pack) -> onnx.ModelProto:
    return onnx.load(pack.vocoder)


@pytest.fixture(scope="module")
def hearing(pack: Pack) -> Iterator[Hearing]:
    with closing(Hearing(pack, judged=SENTENCES, calibration_texts=CALIBRATION[:8])) as hearing:
        yield hearing


@pytest.fixture(scope="module")
def chosen(model: onnx.ModelProto) -> list[Site]:
    return [site for site in sites(model, LATENTS) if all(min(c.weights.shape[:2]) >= WIDE for c in site.convolutions)]


def judge(graph: onnx.ModelProto, hearing: Hearing) -> tuple[list[float], Quality, list[np.ndarray]]:
    sounds = hearing.sounds(graph.SerializeToString())
    return pesq_wb(hearing.references, sounds), hearing.quality_of(sounds), sounds


def test_no_sentence_is_judged_that_was_learnt_from() -> None:
    assert not set(SENTENCES) & {*CALIBRATION, *JUDGED}
    assert not set(JUDGED) & set(CALIBRATION)


def test_most_of_the_work_in_int8_sounds_as_before(
    model: onnx.ModelProto,
    hearing: Hearing,
    chosen: list[Site],
    record_property: Callable[[str, object], None],
) -> None:
    share = sum(site.macs for site in chosen) / sum(site.macs for site in sites(model, LATENTS))
    graph = in_half(quantized(model, fit_all(model, chosen, hearing)))
    scores, quality, sounds = judge(rounded(graph), hearing)
    texts, expected, found = said()[:HEARD], words(hearing.references[:HEARD]), words(sounds[:HEARD])
    wrong = [sum(word_errors(*pair) for pair in zip(texts, heard, strict=True)) for heard in (expected, found)]
    for name, figure in (
        ("int8_share", share),
        ("pesq_wb", np.mean(scores)),
        ("pesq_wb_lowest", min(scores)),
        ("gate_db", quality.mean_db),
        ("words_wrong_float", wrong[0]),
        ("words_wrong_int8", wrong[1]),
    ):
        record_property(name, round(float(figure), 3))
    assert share >= 0.55
    assert np.mean(scores) >= 4.0
    assert min(scores) >= 3.7
    assert quality.passes
    assert wrong[1] <= wrong[0] + 3, "the recogniser gets every fourth wrong anyway"
    assert len(graph.SerializeToString()) < 0.35 * len(model.SerializeToString())


@pytest.mark.parametrize("method", ["minmax"])
def test_int8_without_care_is_told_from_that(method: Method, model: onnx.ModelProto, hearing: Hearing) -> None:
    every = sites(model, LATENTS)
    scores, quality, _ = judge(quantized(model, fit_all(model, every, hearing, method=method)), hearing)
    assert np.mean(scores) < 3
    assert quality.mean_db > 3
    assert not quality.passes


def test_fp16_is_as_good_as_the_original(model: onnx.ModelProto, hearing: Hearing) -> None:
    graph = in_half(model)
    scores, quality, _ = judge(rounded(graph), hearing)
    assert min(scores) > 4.6
    assert quality.score > 4.6
    assert len(graph.SerializeToString()) < 0.51 * len(model.SerializeToString())
