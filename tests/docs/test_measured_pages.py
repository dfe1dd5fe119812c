"""Tables of measurements are what their scripts make of the rows that stand beside the pages."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of benchmarks/."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


@pytest.mark.parametrize("series", ["n", "f", "C"])
def test_the_page_has_the_measured_growth(script, series):
    growth, page = script("growth"), (DOCS / "how-far.md").read_text(encoding="utf-8")
    assert growth.table(growth.read(DOCS / "results" / "growth.jsonl"), series) in page
    assert f"(results/growth-{series}.svg)" in page
    assert (DOCS / "results" / f"growth-{series}.svg").is_file()


def test_every_operation_is_measured(script, monkeypatch):
    growth = script("growth")
    monkeypatch.setattr(growth, "TELLS", 1e-3)
    found = growth.measure("shared", n=300, f=8, C=5)
    assert set(found) == {*growth.OPERATIONS, "state", "file", "peak"}
    assert min(found.values()) > 0


def test_exponents_are_those_of_the_large_end(script):
    rows = [{"f": f, "solve": 1e-3 * f + 1e-6 * f**3} for f in (1, 2, 4096, 8192, 16384)]
    assert script("growth").exponent(rows, "f", "solve") == pytest.approx(3, abs=0.01)


def test_a_point_that_does_not_fit_says_why(script, monkeypatch):
    growth = script("growth")
    monkeypatch.setattr(growth, "MEMORY", 2**40)
    told = growth.point("no-such-store", {"n": 10, "f": 2, "C": 2})
    assert "no-such-store" in told["stopped"]


def test_the_page_has_the_measured_alternatives(script):
    alternatives, page = script("alternatives"), (DOCS / "why-not.md").read_text(encoding="utf-8")
    results = alternatives.read(DOCS / "results" / "alternatives.jsonl")
    assert alternatives.table(results) in page


def test_neighbours_choose_k_on_training_rows(script):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = np.eye(3)[y] + 0.1 * rng.random((60, 3))
    model = script("alternatives").Neighbours(X, y).fit(X, y)
    assert model.n_neighbors in (1, 3, 5, 10, 20)
    assert model.score(np.eye(3), [0, 1, 2]) == 1.0
