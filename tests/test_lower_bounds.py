"""The oldest versions that the tests are run with are those that the package says it takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "constraints-min.txt").read_text(), re.MULTILINE))
EXTRAS = PROJECT["optional-dependencies"]
BOUNDS = dict(
    re.findall(r"([\w-]+)>=([\d.]+)", " ".join((*PROJECT["dependencies"], *EXTRAS["cities"], *EXTRAS["parquet"])))
)


def test_every_dependency_has_a_bound():
    assert len(BOUNDS) == len(PROJECT["dependencies"]) + 2


@pytest.mark.parametrize("name", BOUNDS)
def test_the_bound_is_what_is_tested(name):
    bound, pin = ([*map(int, version.split(".")), 0, 0][:3] for version in (BOUNDS[name], PINS[name]))
    assert pin == bound
