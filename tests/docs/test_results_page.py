"""The script behind docs/results.md: its runs can be made, and its tables come from rows as they are now."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
from aircl.data import Dataset, Split
from aircl.data.samples import ArrayInputs
from aircl.methods import METHODS
from aircl.methods.registry import load_methods

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def record():
    spec = importlib.util.spec_from_file_location("record_benchmark", ROOT / "benchmarks" / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The directory of a small run that stands for two of the page's."""
    folder = tmp_path_factory.mktemp("runs")
    tail = Experiment(
        "digits", "identity", "long-tail", {"phases": 2, "counts": "exp", "ratio": 0.02},
        orders=("ascending", "descending", "shuffled"), methods=("air", "acil"), seeds=(1, 2), buffer=50,
    )  # fmt: skip
    Runner(RunConfig("table1", (tail,)), RunDirectory(folder / "table1")).run()
    return folder


def cells(table):
    """Return the rows of a table of a page, by their first cell."""
    lines = [line.strip("|").split("|") for line in table.strip().splitlines()]
    header = [cell.strip() for cell in lines[0]]
    return {line[0].strip(): dict(zip(header[1:], (c.strip() for c in line[1:]), strict=True)) for line in lines[2:]}


def test_tables_tell_what_was_measured(record, runs, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- {name} -->\nas it was\n<!-- end -->\n" for name in record.TABLES), encoding="utf-8")
    record.write(record.Record(runs), page)
    tables = dict(re.findall(r"<!-- ([\w-]+) -->\n(.*?)<!-- end -->", page.read_text(encoding="utf-8"), re.DOTALL))
    assert {name for name, table in tables.items() if "as it was" not in table} == {"long-tail", "long-tail-groups"}

    (air,) = (m for m in record.read_experiments(runs / "table1")[1].methods if m.name == "air")
    accuracy, state = air.final("A_last"), air.cost("state_bytes")
    assert f"{100 * accuracy.mean:.2f}" in cells(tables["long-tail"])["air"]["A_last descending"]
    own = cells(tables["long-tail-groups"])["air"]
    assert own["state MB"] == f"{state.mean / 1e6:,.3g}"
    assert own["A_last"].startswith(f"{100 * accuracy.mean:.2f}")
    assert {path.name for path in (tmp_path / "results").iterdir()} == {
        "confusion.svg", "norms-and-loss.svg", "groups.svg", "orders.svg",
    }  # fmt: skip


def test_every_run_names_methods_that_there_are(record):
    load_methods()
    for arguments in record.RUNS.values():
        words = shlex.split(arguments)
        named = words[words.index("--methods") + 1].split(",") if "--methods" in words else []
        assert set(named) <= set(METHODS)


def test_the_runs_of_table_1_stand_on_the_page(record):
    """A reader can make each by `aircl run`: its arguments are shown, with the options that were chosen for it."""
    shown = re.sub(r"\s+\\\n\s+", " ", PAGE)
    commands = [re.sub(r" --data DIR\b", "", line) for line in shown.splitlines() if line.startswith("aircl run ")]
    for name in (*record.IN_TABLE1, "table1-auto"):
        arguments = record.RUNS[name]
        assert " ".join(["aircl run", arguments, *record.chosen(arguments)]) in commands, name


def test_a_subset_has_the_first_images_of_every_class(record, tmp_path, monkeypatch):
    from aircl.data import load_dataset

    rng = np.random.default_rng(0)
    labels = np.array([1, 0, 1, 1, 0, 0])
    split = Split(ArrayInputs(rng.integers(0, 256, (6, 4, 4, 3), np.uint8)), labels, "six")
    monkeypatch.setattr(record, "load_dataset", lambda *_, **__: Dataset("x", "images", split, split, ("cat", "ant")))
    folder = record.subset(tmp_path, train=2, test=1)
    small = load_dataset(f"image-folder:{folder.name}", root=tmp_path)
    assert (small.class_names, small.train.labels.tolist()) == (("00-cat", "01-ant"), [0, 0, 1, 1])
    assert np.array_equal(small.train.inputs[np.arange(4)], split.inputs[np.array([1, 4, 0, 2])])
    assert np.array_equal(small.test.inputs[np.arange(2)], split.inputs[np.array([1, 0])])
