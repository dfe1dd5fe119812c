"""Other people's code as a method: whole phases, hints about the future, no way to save."""

from __future__ import annotations

import ast
import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
from aircl.benchmark.contract import CHECKS, check_method
from aircl.methods import METHODS, Hints, PhaseCollector, Setup, list_methods, register_method
from aircl.report import read_experiments, write_report

STREAM = Experiment("digits", "identity", "cil", {"phases": 2}, seeds=(1,))
PAGE = Path(__file__).parents[2] / "docs" / "avalanche.md"


class Neighbours(PhaseCollector):
    """Keeps every phase that is over; it asks how many classes there will be."""

    def __init__(self, setup):
        super().__init__(setup)
        self.rows, self.labels = np.zeros((0, setup.n_features), np.float32), np.zeros(0, np.int64)
        self.n_classes = setup.hints.n_classes

    def learn_phase(self, inputs, labels, phase):
        assert len(inputs) == len(labels) == len(phase.train)
        self.rows, self.labels = np.vstack([self.rows, inputs]), np.append(self.labels, labels)

    def answer(self, encoded):
        return KNeighborsClassifier(1).fit(self.rows, self.labels).predict(encoded)

    @property
    def samples_kept(self):
        return len(self.labels)

    def save_learned(self, directory):
        np.savez(directory / "rows.npz", rows=self.rows, labels=self.labels)

    def restore_learned(self, directory):
        with np.load(directory / "rows.npz") as file:
            self.rows, self.labels = file["rows"], file["labels"]


class Unsaved(Neighbours):
    """The same, which nobody can save."""

    resumable = False
    save_learned = restore_learned = None


class Bare(PhaseCollector):
    """Forgot to say how it is saved."""

    def learn_phase(self, inputs, labels, phase):
        self.label = labels[0]

    def answer(self, encoded):
        return np.full(len(encoded), self.label)


@pytest.fixture
def registered():
    list_methods()
    names = {"neighbours": Neighbours, "unsaved": Unsaved}
    for name, method in names.items():
        register_method(name)(method)
    yield
    for name in names:
        del METHODS._entries[name]


def test_it_keeps_the_contract():
    assert [f"{f.name}: {f.reason}" for f in check_method(Neighbours) if f.result == "failed"] == []


def test_one_that_cannot_be_saved_keeps_the_other_laws():
    results = {finding.name: finding for finding in check_method(Unsaved)}
    skipped = [name for name, finding in results.items() if finding.reason == "it says that it cannot be resumed."]
    assert len(skipped) == 6
    assert [f"{f.name}: {f.reason}" for f in results.values() if f.result == "failed"] == []


def test_one_that_does_not_say_how_it_is_saved_is_told():
    (finding,) = check_method(Bare, checks=[name for name in CHECKS if "stop between phases" in name])
    assert "Bare has no save_learned. Write it, or say resumable = False." in finding.reason


@pytest.mark.usefixtures("registered")
def test_the_report_marks_both(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    stream = replace(STREAM, methods=("neighbours", "unsaved", "ncm"))
    directory = RunDirectory(tmp_path / "run")
    Runner(RunConfig("x", (stream,)), directory).run()
    last = {row.method: row for row in directory.rows() if row.metric == "A_last"}
    assert {name: row.told for name, row in last.items()} == {
        "neighbours": "n_classes",
        "unsaved": "n_classes",
        "ncm": "",
    }
    assert last["neighbours"].state_bytes > 0
    assert last["unsaved"].state_bytes is None
    assert last["unsaved"].value == last["neighbours"].value
    notes = read_experiments(directory)[0].all_notes
    assert notes["neighbours"] == ["Told the future: the number of classes."]
    assert notes["unsaved"][0].startswith("It cannot be resumed")
    assert "ncm" not in notes
    assert "told the future" in write_report(directory)[0].read_text()


@pytest.mark.usefixtures("registered")
def test_one_that_cannot_be_resumed_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    config = RunConfig("x", (replace(STREAM, methods=("unsaved",)),))
    expected = RunDirectory(tmp_path / "expected")
    Runner(config, expected).run()
    directory = RunDirectory(tmp_path / "run")
    learn_phase = Unsaved.learn_phase

    def stop(self, inputs, labels, phase):
        if len(self.labels) > 10:  # not while it is warmed up
            raise KeyboardInterrupt
        learn_phase(self, inputs, labels, phase)

    monkeypatch.setattr(Unsaved, "learn_phase", stop)
    with pytest.raises(KeyboardInterrupt):
        Runner(config, directory).run()
    assert {row.phase for row in directory.rows()} == {1}
    monkeypatch.undo()
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    Runner(config, directory).run()
    assert [(row.metric, row.value) for row in directory.rows()] == [(row.metric, row.value) for row in expected.rows()]


def test_only_what_is_read_is_noted():
    setup = Setup(seed=1, n_features=2, hints=Hints(10, 5, "cuda"))
    assert setup.hints.device == "cuda"
    assert setup.hints.used == set()
    assert setup.hints.n_phases == 5
    assert setup.hints.used == {"n_phases"}


def test_the_strategy_of_the_page():
    """It is short, it is Python, and where Avalanche can be imported, it keeps the contract."""
    code, declared = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (method,) = (node for node in ast.parse(code).body if isinstance(node, ast.ClassDef))
    written = [line for line in ast.get_source_segment(code, method).splitlines() if line.strip()]
    assert len(written) <= 36
    if importlib.util.find_spec("avalanche") is None:
        pytest.skip("Avalanche is not installed")
    variables = {}
    try:
        importlib.import_module("torchvision")
    except RuntimeError:  # a CUDA build beside a CPU build of torch
        exec(compile(declared, "avalanche.md", "exec"), variables)
    exec(compile(code, "avalanche.md", "exec"), variables)
    METHODS._entries.pop("avalanche-replay", None)
    (finding,) = check_method(variables["AvalancheReplay"], checks=["learns its training data"])
    assert finding.result == "passed"
