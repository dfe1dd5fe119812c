"""What the project says of itself agrees: versions, dependencies, Python versions, workflows and notes for users."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import aircl

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
WORKFLOWS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")}


def test_there_is_one_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    cited = re.search(r"^version: (\S+)\ndate-released: (\S+)$", citation, re.MULTILINE)
    releases = re.findall(r"^## \[([\d.]+)\] - (\d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE)
    released = [version for version, _ in releases]
    assert cited is not None
    assert cited.groups() == releases[0]
    assert PROJECT["version"] == aircl.__version__ == released[0]
    assert released == sorted(released, key=lambda version: [*map(int, version.split("."))], reverse=True)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {version for page in pages for version in re.findall(r"by aircl (\d[\d.]*\d)", page.read_text("utf-8"))}
    assert shown == {aircl.__version__}


def test_python_versions_are_those_that_are_tested():
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    tested = re.search(r"matrix: \{python: \[(.*?)\]\}", WORKFLOWS["test"])
    assert tested is not None
    assert named == re.findall(r"[\d.]+", tested[1])
    assert PROJECT["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("name", ["test", "release"])
def test_workflows_do_what_a_change_must_pass(name):
    assert "run: bash .ci/run\n" in WORKFLOWS[name]


def test_every_command_of_the_workflows_is_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    targets = re.findall(r"\bmake ([\w-]+)$", "\n".join([*WORKFLOWS.values(), ci]), re.MULTILINE)
    assert {"test", "test-slow", "test-min", "test-wheel", "lint", "docs"} <= set(targets)
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_a_release_needs_no_password():
    text = re.sub(r"^#.*\n", "", WORKFLOWS["release"], flags=re.MULTILINE)
    assert re.search(r"^  publish:\n    needs: build$", text, re.MULTILINE)
    assert "id-token: write" in text
    assert "pypa/gh-action-pypi-publish" in text
    assert not re.search(r"secrets|password|token:(?! write)", text)


def test_the_core_asks_for_nothing_heavy():
    heavy = ("torch", "transformers", "timm", "pyarrow", "distributed", "fastapi", "onnx")
    assert [need for need in PROJECT["dependencies"] if need.startswith(heavy)] == []


def test_the_core_imports_nothing_heavy():
    code = (
        "import sys, numpy as np, aircl\n"
        "from aircl import AIRClassifier\n"
        "X, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2\n"
        "clf = AIRClassifier().partial_fit(X, y).merge(AIRClassifier().fit(X, y)).forget(X[:9], y[:9])\n"
        "clf.predict_proba(X), clf.novelty(X), clf.expected_accuracy()\n"
        "assert clf.classes_.tolist() == [0, 1]\n"
        "print(sorted({'torch', 'transformers', 'fastapi', 'matplotlib', 'typer'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


MIGRATION = re.findall(
    r"^\| (.*?) \| .*? \| .*? \| (.*?) \|$", CHANGELOG.partition("### Coming from 0.1")[2], re.MULTILINE
)
OLD_FILES = {"AIRClassifier": "air-auto", "FeCAMClassifier": "fecam", "AEFOCLClassifier": "aef-ocl"}


@pytest.mark.parametrize("name", OLD_FILES)
def test_the_notes_for_users_of_0_1_give_back_what_old_files_have(name):
    """What the table says keeps 0.1 is what a file of 0.1 is loaded with."""
    kept = [
        keep for what, keep in MIGRATION if name in what or (name == "AIRClassifier" and what.startswith("the same"))
    ]
    told = eval(f"dict({', '.join(re.findall(r'`([^`]*)`', ' '.join(kept)))})")
    assert told
    model = getattr(aircl, name).load(ROOT / "tests" / "classifiers" / "models_0_1" / f"{OLD_FILES[name]}.safetensors")
    own = model.get_params(deep=False)
    defaults = getattr(aircl, name)().get_params(deep=False)
    assert {key: own[key] for key in told} == told
    assert all(defaults[key] != value for key, value in told.items())
