"""The first picture shows what its script measures, and its three lines run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PICTURE = (ROOT / "docs" / "opening.svg").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("opening", ROOT / "benchmarks" / "opening.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_numbers_are_those_of_today(script):
    counts, shares = script.measure()
    shown = [int(n) for n in re.findall(r'font-size="11"[^>]*>(\d+)<', PICTURE)]
    assert shown[:10] == counts
    # Another version of a library may turn a draw; more than that, and the picture has to be drawn again.
    assert np.abs(np.array(shown[10:]) - [*shares["ACIL"], *shares["AIR"]]).max() <= 5
    assert np.mean(shares["AIR"][5:]) > np.mean(shares["ACIL"][5:]) + 15
    assert len(script.draw(counts, shares)) == pytest.approx(len(PICTURE), rel=0.01)


def test_the_code_of_the_picture_runs(script):
    X, y = np.eye(3), np.arange(3)
    from aircl import AIRClassifier

    variables = {"AIRClassifier": AIRClassifier, "stream": [(X, y)], "X_new": X}
    exec("\n".join(script.CODE), variables)
    assert variables["clf"].predict(X).tolist() == [0, 1, 2]
    assert all(line in PICTURE for line in script.CODE)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_pages_open_with_it(page):
    assert "opening.svg" in (ROOT / page).read_text(encoding="utf-8")[:250]
