"""The page about files has the fields that files have."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from aircl import AIRClassifier, RandomReLU
from aircl.benchmark.config import Experiment
from aircl.benchmark.results import Details, Row

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")


def first_column(heading):
    """Return the names in backticks in the first column of the tables below a heading."""
    section = re.split(r"^##", PAGE.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return set(re.findall(r"`([\w.]+)`", "\n".join(re.findall(r"^\| (.*?) \|", section, re.MULTILINE))))


@pytest.mark.parametrize(
    ("heading", "record"), [("rows.jsonl", Row), ("details", Details), ("Configurations", Experiment)]
)
def test_every_field_is_told(heading, record):
    assert first_column(heading) == {field.name for field in fields(record)}


@pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
def test_a_model_has_what_the_page_says(store, tmp_path):
    X, y = np.eye(4)[[0, 1, 2, 3, 0]], list("abcda")
    clf = AIRClassifier(store=store, expansion=RandomReLU(8, random_state=0)).fit(X, y)
    assert clf.gamma_ > 0
    clf.save(tmp_path / "model.safetensors")
    told = first_column("Models")
    with safe_open(tmp_path / "model.safetensors", "numpy") as file:
        names = {re.sub(r"moment\.\d+", "moment.0", name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        header = json.loads(file.metadata()["aircl"])
        assert set(file.metadata()) == {"aircl", "sha256"}
    # The page shortens `statistics.folded_pi` to `.folded_pi`.
    assert names - {"statistics.folded_pi"} <= told
    assert set(header) <= told
    assert set(header["learned"]) <= set(re.findall(r"`(\w+)`", PAGE))
