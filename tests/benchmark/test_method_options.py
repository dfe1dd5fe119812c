"""Options of methods in a run: where they come from, what is saved, and that a stop changes nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

pytest.importorskip("torch")

from aircl.backbones.base_cache import base_backbone
from aircl.benchmark.config import Experiment, RunConfig
from aircl.benchmark.results import RunDirectory
from aircl.benchmark.runner import Listener, Runner
from aircl.report import read_experiments, write_report

EXPERIMENT = Experiment(
    "digits", "identity", "long-tail", {"phases": 3, "counts": "exp", "ratio": 0.05}, ("descending",),
    methods=("er", "ewc++", "icarl", "lwf", "rm"), buffer=100, batch_size=16, evaluate_every=100,
    method_options={
        "er": {"memory": 40, "epochs": 2}, "ewc++": {"memory": 30, "epochs": 2}, "icarl": {"exemplars": 3, "epochs": 2},
        "lwf": {"epochs": 2}, "rm": {"memory": 50, "epochs": 2, "memory_epochs": 2},
    },
)  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))


def run(path, experiment=EXPERIMENT, listener=None):
    directory = RunDirectory(path)
    Runner(RunConfig("test", (experiment,)), directory, listener=listener).run()
    assert [row.reason for row in directory.rows() if row.status != "ok"] == []
    return directory


def timeless(directory):
    return [replace(row, seconds=0, predict_seconds=0) for row in directory.rows()]


def test_options_reach_the_methods_and_are_saved_with_the_run(tmp_path):
    directory = run(tmp_path / "run")
    kept = {row.method: row.kept for row in directory.rows() if row.metric == "A_last"}
    assert kept == {"er": 40, "ewc++": 30, "icarl": 30, "lwf": 0, "rm": 50}
    (methods,) = directory.about["methods"]
    assert methods["er"]["options"]["memory"] == 40
    assert methods["er"]["options"]["replay"] == 32  # a default, written out
    assert methods["rm"]["notes"] == [
        "The views that vote on uncertainty are cached features with noise, not augmented images."
    ]
    (experiment,) = read_experiments(directory)
    labels = {method.name: method.label for method in experiment.methods}
    assert labels["icarl"] == "icarl (nearest mean of exemplars)"
    assert labels["er"] == "er"
    assert RunConfig.from_mapping(directory.about["config"]) == RunConfig("test", (EXPERIMENT,))
    assert {row.buffer for row in directory.rows()} == {None}  # that is for analytic methods
    # A phase that is held while it is open is not counted as kept.
    assert all(row.kept <= 50 for row in directory.rows())


def test_the_report_says_what_a_reader_should_know(tmp_path):
    blurry = replace(
        EXPERIMENT, scenario="si-blurry", options={"phases": 2}, orders=("",), methods=("er", "rm"),
        method_options={"rm": {"memory_epochs": 1}},
    )  # fmt: skip
    directory = run(tmp_path / "run", blurry)
    write_report(directory)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<b>rm</b>: It is told where phases end. The views that vote on uncertainty are cached features" in page
    assert "<b>er</b>:" not in page
    assert "options, experiment 1" in page
    (experiment,) = read_experiments(directory)
    assert list(experiment.notes) == ["rm"]
    assert len(experiment.notes["rm"]) == 2


@pytest.mark.parametrize("scenario", ["long-tail", "si-blurry"])
def test_a_stop_changes_nothing(tmp_path, scenario):
    experiment = EXPERIMENT
    if scenario == "si-blurry":
        experiment = replace(experiment, scenario=scenario, options={"phases": 3}, orders=("",))
        experiment = replace(experiment, methods=("ewc++", "rm"), method_options={"rm": {"memory_epochs": 2}})
    expected = timeless(run(tmp_path / "expected", experiment))

    class Interrupting(Listener):
        stops = 0

        def job(self, spec, number, total):
            def progress(done, of):
                if done > 0.8 * of and number > self.stops:
                    self.stops = number
                    raise KeyboardInterrupt

            return progress

    listener = Interrupting()
    for _ in experiment.methods:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "run", experiment, listener)
    assert timeless(run(tmp_path / "run", experiment)) == expected


def test_a_wrong_option_is_found_before_anything_runs(tmp_path):
    wrong = replace(EXPERIMENT, method_options={"er": {"memroy": 40}})
    with pytest.raises(ValueError, match=r"er: there is no option 'memroy'. Did you mean 'memory'"):
        run(tmp_path / "run", wrong)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match=r"options of 'bic', but the methods are er, ewc\+\+"):
        replace(EXPERIMENT, method_options={"bic": {}})
    with pytest.raises(ValueError, match="should be a table"):
        replace(EXPERIMENT, method_options={"er": 40})


def test_options_of_methods_that_are_left_out_are_left_out_too():
    config = RunConfig("test", (EXPERIMENT,)).changed(methods=("er", "acil"), seeds=(3,))
    assert config.experiments[0].method_options == {"er": {"memory": 40, "epochs": 2}}
    assert config.with_options({"er": {"epochs": 7}}).experiments[0].method_options["er"] == {"memory": 40, "epochs": 7}


def test_unfreezing_is_for_methods_that_can(tmp_path):
    experiment = replace(EXPERIMENT, methods=("air-shared", "er"), method_options={}, unfreeze=True)
    directory = RunDirectory(tmp_path / "run")
    Runner(RunConfig("test", (experiment,)), directory).run()
    reasons = {row.method: (row.status, row.reason) for row in directory.rows()}
    assert reasons["air-shared"] == ("ok", "")
    assert reasons["er"][0] == "incompatible"
    assert "such as base:resnet32; it got 'identity'" in reasons["er"][1]


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["base:resnet32", "base:vit-micro"])
def test_a_backbone_of_the_first_phase_is_trained_on(tmp_path, backbone, monkeypatch):
    monkeypatch.setattr("aircl.benchmark.runner.base_backbone", partial(base_backbone, epochs=4))
    experiment = Experiment(
        "digits", backbone, "long-tail", {"phases": 3, "counts": "exp", "ratio": 0.05}, ("descending",),
        methods=("air-shared", "er"), unfreeze=True, method_options={"er": {"epochs": 2, "memory": 50}},
    )  # fmt: skip
    directory = run(tmp_path / "run", experiment)
    last = {row.method: row for row in directory.rows() if row.metric == "A_last"}
    assert last["er"].kept == 50
    assert last["er"].value > 0.2
    assert directory.about["methods"][0]["er"]["options"]["unfreeze"] is True
