"""What pyproject.toml asks for: a lower bound each, and pip is given these where the lowest are tested."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

EXTRAS = {name: [Requirement(line) for line in lines] for name, lines in PROJECT["optional-dependencies"].items()}
RUNTIME = [Requirement(line) for line in PROJECT["dependencies"]]
ALL = RUNTIME + [requirement for requirements in EXTRAS.values() for requirement in requirements]


def lower_bounds(requirement: Requirement) -> list[str]:
    return [bound.version for bound in requirement.specifier if bound.operator == ">="]


@pytest.mark.parametrize("requirement", ALL, ids=str)
def test_each_has_a_lower_bound(requirement: Requirement) -> None:
    assert len(lower_bounds(requirement)) == 1, "where the oldest that works is not told, any is installed"


def test_the_lowest_are_what_users_may_have() -> None:
    told = subprocess.run([ROOT / ".ci/lowest"], check=True, capture_output=True, text=True).stdout
    wanted = [*RUNTIME, *(one for name in EXTRAS.keys() - {"test", "bench"} for one in EXTRAS[name])]
    pinned = {(line.name, str(line.specifier), str(line.marker)) for line in map(Requirement, told.splitlines())}
    expected = {(one.name, f"=={lower_bounds(one)[0]}", str(one.marker)) for one in wanted}
    assert expected <= pinned
    assert not {name for name, _, _ in pinned} & ({one.name for one in EXTRAS["test"]} - {one.name for one in wanted})
