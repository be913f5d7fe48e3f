"""Who may import whom, read from the code: the walls of the house."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("daemon", "device", "engines", "power")

MAY_IMPORT = {"daemon": {"engines", "device", "power"}, "engines": {"device"}, "device": set(), "power": set()}

OWNER = {
    "paho": "daemon/mqtt.py",
    "alsaaudio": "device/alsa_binding.py",
    "opuslib_next": "device/opus.py",
    "onnxruntime": "engines/runtime/ort.py",
    "soxr": "device/resampler.py",
    "soundfile": "device/sound_file.py",
    "pyloudnorm": "engines/loudness.py",
    "prometheus_client": "daemon/bridges/prometheus.py",
    "textual": "daemon/views/top.py",
    "defusedxml": "engines/text/ssml.py",
    "wyoming": "daemon/bridges/wyoming_conversation.py",
    "pycuda": "device/cuda.py",
    "cuda": "device/cuda.py",
    "tensorrt": "engines/runtime/trt.py",
    "matplotlib": "daemon/simulation_png.py",
    "jtop": "power/jtop_child.py",
    "pulsectl": "device/ducking.py",
}
"""Heavy binding -> the one module that imports it, whether or not that module exists yet."""

IMPORT_TIME_ONLY = {
    "onnx": (
        "engines/importer.py",
        "engines/kokoro_graph.py",
        "engines/kokoro_import.py",
        "engines/kokoro_quick.py",
        "engines/plan_build.py",
        "engines/precision.py",
        "engines/precision_search.py",
        "engines/runtime/choices.py",
        "engines/runtime/dequantize.py",
        "engines/runtime/fold.py",
        "engines/runtime/fuse.py",
        "engines/runtime/graph.py",
        "engines/runtime/half.py",
        "engines/runtime/instance_norm.py",
        "engines/runtime/planar.py",
        "engines/runtime/quantize.py",
        "engines/runtime/standard.py",
        "engines/runtime/static.py",
        "engines/vits_attention.py",
        "engines/vits_encoder.py",
        "engines/vits_fixed.py",
        "engines/vits_graph.py",
        "engines/vits_static.py",
        "engines/watermark_graph.py",
    )
}
"""Needed to import or build a voice, never by a daemon that speaks."""


def modules() -> Iterator[Path]:
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """All modules that a file imports, at its top or anywhere inside."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which room is meant"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("path", list(modules()), ids=name_of)
def test_rooms_know_only_those_below(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    assert (roots(path) & set(ROOMS)) - {room} <= MAY_IMPORT[room]


@pytest.mark.parametrize("path", list(modules()), ids=name_of)
def test_each_heavy_binding_has_one_home(path: Path) -> None:
    strangers = {binding for binding in roots(path) & set(OWNER) if OWNER[binding] != name_of(path)}
    assert not strangers


@pytest.mark.parametrize("path", list(modules()), ids=name_of)
def test_onnx_is_for_importing_voices_only(path: Path) -> None:
    if "onnx" in roots(path):
        assert name_of(path) in IMPORT_TIME_ONLY["onnx"]


@pytest.mark.parametrize("path", list(modules()), ids=name_of)
def test_nobody_imports_bridges_and_views_but_the_top(path: Path) -> None:
    above = {name for name in imports(path) if name.startswith(("daemon.bridges", "daemon.views"))}
    if above:
        inside = name_of(path).startswith(("daemon/bridges/", "daemon/views/"))
        assert inside or name_of(path) in {
            "daemon/app.py",
            "daemon/cli.py",
            "daemon/cli_audition.py",
            "daemon/cli_explain.py",
            "daemon/cli_views.py",
        }


def test_views_speak_through_the_broker_only() -> None:
    inside = {"daemon.service", "daemon.speaker", "daemon.player", "daemon.synthesis", "daemon.queue"}
    for path in (ROOT / "daemon/views").rglob("*.py"):
        assert not inside & set(imports(path)), name_of(path)


@pytest.mark.parametrize("room", [p for p in modules() if p.name == "__init__.py"], ids=name_of)
def test_importing_a_package_loads_nothing(room: Path) -> None:
    assert not list(imports(room))


def test_the_rules_can_be_broken(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("def f():\n    from daemon.mqtt import Connection\n    import paho.mqtt.client\n")
    assert roots(file) == {"daemon", "paho"}
