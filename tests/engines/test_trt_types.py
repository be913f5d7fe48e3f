"""The code for TensorRT against the type stubs of the real binding, which the daemon's own check knows nothing of.

The stubs' package marks the wrong folder as typed, and some of their lines are no Python: a mended copy is used.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = [f"engines/runtime/{name}.py" for name in ("trt", "trt_build", "trt_engine", "trt_inspect")]


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stubs")
    for name in ("tensorrt/__init__.pyi", "tensorrt_bindings/__init__.pyi", "tensorrt_bindings/tensorrt.pyi"):
        text = Path(str(distribution("tensorrt-stubs").locate_file(name))).read_text(encoding="utf-8")
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(mended(text), encoding="utf-8")
    return folder


def mended(text: str) -> str:
    """Rename parameters called `in`, give those a default that follow one which has one, and tell types from values.

    A constant of the module is called `bool`, as the type is.
    """
    text = re.sub(r"\bin: list", "inputs: list", text)
    text = re.sub(r"channel_axis: int\) -> IScaleLayer", "channel_axis: int = ...) -> IScaleLayer", text)
    text = re.sub(r"(-> |: )bool\b(?!: DataType)", r"\1builtins.bool", text)
    text = text.replace(
        "from __future__ import annotations\n", "from __future__ import annotations\nimport builtins\n", 1
    )
    ast.parse(text)
    return text


def check(files: list[str], stubs: Path, cache: Path) -> str:
    """Give mypy's complaints about our own files."""
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(cache)]
    done = subprocess.run(
        [*command, *files],
        cwd=ROOT,
        env={"MYPYPATH": f"{ROOT}:{stubs}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert done.returncode in {0, 1}, done.stderr + done.stdout
    return "\n".join(line for line in done.stdout.splitlines() if ": error:" in line and str(stubs) not in line)


def test_every_call_is_one_that_the_binding_has(stubs: Path, tmp_path: Path) -> None:
    assert check(MODULES, stubs, tmp_path / "cache") == ""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from engines.runtime.trt import tensorrt\n\n\n"
        "def run(context: tensorrt.IExecutionContext) -> bool:\n"
        '    context.set_tensor_address("x", "y")\n'
        "    return context.execute_async_v4(1)\n"
    )
    told = check([str(wrong)], stubs, tmp_path / "cache")
    assert "execute_async_v4" in told
    assert 'incompatible type "str"' in told
