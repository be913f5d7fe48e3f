"""The simulated TensorRT against the type stubs of the real one: it cannot drift from them."""

from __future__ import annotations

import ast
import enum
import inspect
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType

import pytest
from simulators.tensorrt import World

STUBS = "tensorrt_bindings/tensorrt.pyi"


def stub_classes() -> dict[str, ast.ClassDef]:
    """Read the stubs; the few lines in which their generator has written what is no Python are left out."""
    lines = Path(str(distribution("tensorrt-stubs").locate_file(STUBS))).read_text(encoding="utf-8").splitlines()
    while (bad := _line_that_is_no_python(lines)) is not None:
        lines[bad] = ""
    tree = ast.parse("\n".join(lines))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _line_that_is_no_python(lines: list[str]) -> int | None:
    try:
        ast.parse("\n".join(lines))
    except SyntaxError as error:
        return (error.lineno or 1) - 1
    return None


def signatures(stub: ast.ClassDef) -> dict[str, list[list[str]]]:
    """Give each method's parameters, for each of its overloads, and [] for what is no method."""
    found: dict[str, list[list[str]]] = {}
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            is_property = any(ast.unparse(d).startswith("property") for d in node.decorator_list)
            parameters = [] if is_property else [[a.arg for a in node.args.args]]
            found.setdefault(node.name, []).extend(parameters)
        elif isinstance(node, ast.AnnAssign):
            found[ast.unparse(node.target)] = []
    return found


def strangers(module: ModuleType) -> list[str]:
    """What the module has and the real one has not."""
    stubs = stub_classes()
    wrong = []
    for name, simulated in inspect.getmembers(module, inspect.isclass):
        if name not in stubs:
            wrong.append(name)
            continue
        real = signatures(stubs[name])
        if issubclass(simulated, enum.Enum):
            wrong += [f"{name}.{member}" for member in simulated.__members__ if member not in real]
            continue
        public = {key: value for key, value in vars(simulated).items() if not key.startswith("_")}
        for key, value in public.items():
            if inspect.isclass(value) or isinstance(value, enum.Enum):
                continue
            known = real.get(key)
            given = [list(inspect.signature(value).parameters)] if inspect.isfunction(value) else []
            if known is None or (given and given[0] not in known):
                wrong.append(f"{name}.{key}{given}")
    return wrong


@pytest.mark.parametrize("version", ["10.3.0", "10.13.3.9", "11.4.1"])
def test_it_has_the_real_names_and_signatures_and_no_others(version: str) -> None:
    assert strangers(World(version=version).module()) == []


def test_drift_is_seen() -> None:
    module = World().module()

    class IExecutionContext:
        def set_tensor_address(self, name: str, address: int) -> bool:
            return True

        def execute_async_v4(self) -> None: ...

    module.__dict__["IExecutionContext"] = IExecutionContext
    assert strangers(module) == [
        "IExecutionContext.set_tensor_address[['self', 'name', 'address']]",
        "IExecutionContext.execute_async_v4[['self']]",
    ]
