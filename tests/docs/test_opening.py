"""The first picture shows what its script measures, and its three lines run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PICTURES = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("opening.svg", "opening-narrow.svg")}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("opening", ROOT / "benchmarks" / "opening.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_numbers_are_those_of_today(script):
    counts, shares = script.measure()
    for picture, layout in zip(PICTURES.values(), (script.WIDE, script.NARROW), strict=True):
        shown = [int(n) for n in re.findall(r'font-size="11"[^>]*>(\d+)<', picture)]
        assert shown[:10] == counts
        # Another version of a library may turn a draw; more than that, and the picture has to be drawn again.
        assert np.abs(np.array(shown[10:]) - [*shares["ACIL"], *shares["AIR"]]).max() <= 5
        assert len(script.draw(counts, shares, layout)) == pytest.approx(len(picture), rel=0.01)
        assert "prefers-color-scheme:dark" in picture
    assert np.mean(shares["AIR"][5:]) > np.mean(shares["ACIL"][5:]) + 15


def test_the_code_of_the_picture_runs(script):
    X, y = np.eye(3), np.arange(3)
    from aircl import AIRClassifier

    variables = {"AIRClassifier": AIRClassifier, "stream": [(X, y)], "X_new": X}
    exec("\n".join(script.CODE), variables)
    assert variables["clf"].predict(X).tolist() == [0, 1, 2]
    assert all(line in picture for picture in PICTURES.values() for line in script.CODE)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_pages_open_with_it(page):
    before = (ROOT / page).read_text(encoding="utf-8").partition("</picture>")[0]
    assert all(name in before for name in PICTURES)
    assert "\n\n" not in before.partition("<picture>")[2]  # nothing comes before it but the title
    assert before.count("\n") < 8
