"""Nothing of a stream is lost silently: several of them, classes that are left out, what seeds change."""

from dataclasses import replace

import numpy as np
import pytest

from aircl.benchmark.config import Experiment, RunConfig
from aircl.benchmark.results import RunDirectory
from aircl.benchmark.runner import Listener, Runner
from aircl.data import load_dataset
from aircl.report import read_experiments, write_report
from aircl.scenarios import make_stream

CIL = Experiment("digits", "identity", "cil", {"phases": 2}, methods=("ncm",), seeds=(1, 2))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))


class Hearing(Listener):
    def __init__(self):
        self.heard = []

    def left_out(self, dataset, remark):
        self.heard.append((dataset, remark))


def run(path, *experiments, listener=None):
    directory = RunDirectory(path)
    Runner(RunConfig("test", experiments), directory, listener=listener).run()
    return directory


def test_two_streams_of_one_scenario_are_two_experiments(tmp_path):
    directory = run(tmp_path, CIL, replace(CIL, options={"phases": 5}))
    experiments = read_experiments(directory)
    assert [one.scenario for one in experiments] == ["cil,phases=2", "cil,phases=5"]
    assert [max(row.phase for job in one.methods[0].jobs for row in job.rows) for one in experiments] == [2, 5]
    assert [one.config["options"] for one in experiments] == [{"phases": 2}, {"phases": 5}]


@pytest.mark.parametrize("change", [{"buffer": 50}, {"gamma": 1.0}, {"method_options": {"ncm": {"a": 1}}}])
def test_what_experiments_differ_in_is_in_their_names(change):
    names = RunConfig("x", (CIL, replace(CIL, **change))).stream_names()
    assert len(set(names)) == 2


def test_an_experiment_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="digits-identity-cil-ncm-seed1 is asked for twice"):
        run(tmp_path / "run", CIL, CIL)
    assert len(run(tmp_path / "seeds", CIL, replace(CIL, seeds=(3,))).rows()) > 0


def test_classes_that_are_left_out_are_named_everywhere(tmp_path):
    listener = Hearing()
    blurry = replace(CIL, scenario="si-blurry", options={"phases": 4})
    directory = run(tmp_path, blurry, listener=listener)
    gone = make_stream("si-blurry", load_dataset("digits").train.labels, phases=4, seed=1).dropped_classes
    remark = f"Left out in seed 1: classes {', '.join(map(str, gone))} (2)."
    assert ("digits, si-blurry", remark) in listener.heard
    assert directory.about["streams"][0]["left_out"]["seed 1"] == list(map(str, gone))
    (experiment,) = read_experiments(directory)
    assert remark in experiment.remarks
    page, markdown, table, _ = (path.read_text() for path in write_report(directory))
    assert remark in page
    assert remark in markdown
    assert remark in table


@pytest.mark.parametrize(
    ("experiment", "expected"),
    [
        (replace(CIL, seeds=(1,)), "One seed"),
        (CIL, "Between seeds vary the classes of each phase, the order in which samples arrive and the methods' own"),
        (
            replace(CIL, scenario="long-tail", buffer=20),
            "Between seeds vary the order in which samples arrive, the random buffer and the methods' own random "
            "numbers; the training samples and the classes of each phase do not.",
        ),
        (
            replace(CIL, scenario="long-tail", options={"phases": 2, "ratio": 0.1, "resample": True}),
            "Between seeds vary the training samples, the order in which samples arrive",
        ),
    ],
)
def test_what_seeds_change_is_told(experiment, expected, tmp_path):
    assert read_experiments(run(tmp_path, experiment))[0].remarks[0].startswith(expected)


def test_samples_are_drawn_anew_for_each_seed_and_the_same_in_all_orders():
    labels = np.repeat(np.arange(10), 50)

    def kept(seed, order, **options):
        stream = make_stream("long-tail", labels, seed=seed, ratio=0.1, phases=5, order=order, **options)
        return set(np.concatenate([phase.train for phase in stream.phases]).tolist())

    assert kept(1, "descending") == kept(2, "descending")  # the paper's draw
    first, second = (kept(seed, "descending", resample=True) for seed in (1, 2))
    assert first != second
    assert len(first) == len(second)
    for order in ("ascending", "shuffled", "shuffled-classes"):
        assert kept(1, order, resample=True) == first


def test_resampling_is_for_scenarios_that_draw():
    (tail,) = RunConfig("x", (replace(CIL, scenario="long-tail"),)).resampled().experiments
    assert tail.options["resample"]
    with pytest.raises(ValueError, match="cil take all samples there are; resample is for long-tail"):
        RunConfig("x", (CIL,)).resampled()
