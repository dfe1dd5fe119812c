"""Runs: what they measure, that they go on whatever happens, and that a stop changes nothing."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from aircl import AIRClassifier, RandomReLU
from aircl.benchmark.config import Experiment, RunConfig
from aircl.benchmark.results import Row, RunDirectory
from aircl.benchmark.runner import Listener, Runner
from aircl.data import Dataset, Split, load_dataset
from aircl.methods import METHODS, IncompatibleError, register_method
from aircl.methods.air import Air
from aircl.methods.registry import load_methods
from aircl.report import read_experiments
from aircl.scenarios import make_stream

EXPERIMENT = Experiment(
    "digits", "identity", "long-tail", {"phases": 5, "counts": "exp", "ratio": 0.05}, ("descending",),
    methods=("air", "acil"), seeds=(1, 2), buffer=100, gamma=1.0, batch_size=16, evaluate_every=100,
)  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))


def run(path, experiment=EXPERIMENT, listener=None, name="test"):
    directory = RunDirectory(path)
    Runner(RunConfig(name, (experiment,)), directory, listener=listener).run()
    return directory


def values(directory, **wanted):
    rows = [row for row in directory.rows() if all(getattr(row, key) == value for key, value in wanted.items())]
    return [row.value for row in rows]


def timeless(directory):
    return [replace(row, seconds=0, predict_seconds=0) for row in directory.rows()]


def test_the_numbers_are_those_of_the_classifier_itself(tmp_path):
    directory = run(tmp_path / "run")
    digits = load_dataset("digits")
    X, X_test = (
        np.reshape(split.inputs[np.arange(len(split))], (len(split), 64)) / np.float32(255)
        for split in (digits.train, digits.test)
    )
    y, y_test = digits.train.labels, digits.test.labels
    stream = make_stream("long-tail", y, seed=1, phases=5, counts="exp", ratio=0.05, order="descending")
    clf = AIRClassifier(1.0, expansion=RandomReLU(100, random_state=1), calibrate=False)
    expected = []
    for phase in stream.phases:
        clf.partial_fit(X[phase.train], y[phase.train])
        known = np.isin(y_test, phase.exposed)
        expected.append(accuracy_score(y_test[known], clf.predict(X_test[known])))
    of_air = {"method": "air", "seed": 1}
    assert values(directory, point="phase", metric="accuracy", **of_air) == pytest.approx(expected)
    assert values(directory, metric="A_avg", **of_air) == pytest.approx([np.mean(expected)])
    assert values(directory, metric="A_last", **of_air) == pytest.approx(expected[-1:])

    details = directory.details(next(row.job for row in directory.rows() if row.method == "air"))
    scores = RandomReLU(100, random_state=1).fit(X).transform(X_test) @ clf.coef_.T
    errors = ((scores - np.eye(10)[y_test]) ** 2).sum(axis=1)
    np.testing.assert_allclose(details.test_loss, [errors[y_test == c].mean() for c in range(10)], rtol=1e-3)
    np.testing.assert_allclose(details.weight_norms, np.linalg.norm(clf.coef_, axis=1), rtol=1e-3)
    np.testing.assert_array_equal(details.counts.sum(axis=0), clf.class_count_)
    np.testing.assert_array_equal(details.confusion.sum(axis=1), np.bincount(y_test))
    for number, phase in enumerate(stream.phases):
        rows = np.isin(y_test, phase.new_classes)
        by_class = [(clf.predict(X_test[y_test == c]) == c).mean() for c in phase.new_classes]
        assert details.phase_accuracy[-1, number] == pytest.approx(np.mean(by_class))
        assert rows.any()


def test_periodic_points_come_after_the_first_batch_beyond_each_multiple(tmp_path):
    directory = run(tmp_path / "run")
    rows = [row for row in directory.rows() if (row.method, row.seed, row.point) == ("acil", 1, "periodic")]
    samples = [row.samples for row in rows if row.metric == "accuracy"]
    total = max(row.samples for row in directory.rows())
    assert len(samples) == (total - 1) // 100
    assert all(100 * k < seen <= 100 * k + 16 for k, seen in enumerate(samples, 1))
    (auc,) = values(directory, method="acil", seed=1, metric="A_auc")
    assert auc == pytest.approx(np.mean([row.value for row in rows if row.metric == "accuracy"]))


def test_every_row_is_complete_and_the_run_says_what_it_was(tmp_path):
    directory = run(tmp_path / "run")
    rows = directory.rows()
    assert {row.run for row in rows} == {"test"}
    assert {row.buffer for row in rows} == {100}
    assert {row.gamma for row in rows} == {1.0}
    assert {row.peak_memory for row in rows} == {None}  # the process is shared, so its size is nobody's
    assert all(row.state_bytes > 10**4 for row in rows if row.point != "periodic")
    assert all(row.predict_seconds > 0 for row in rows)
    assert all(0 <= row.value <= 1 for row in rows if row.metric not in ("forgetting", "backward_transfer", "NLL"))
    assert {row.metric for row in rows if row.point == "final"} >= {
        "A_avg", "A_last", "A_auc", "balanced_A_avg", "balanced_A_last", "balanced_A_auc", "forgetting", "tail",
    }  # fmt: skip
    about = directory.about
    assert about["versions"]["numpy"] == np.__version__
    assert RunConfig.from_mapping(about["config"]) == RunConfig("test", (EXPERIMENT,))
    assert about["started"] <= about["finished"]
    assert not list((tmp_path / "run" / "state").glob("*"))


def test_the_order_does_not_matter_in_the_end(tmp_path):
    orders = ("descending", "ascending", "shuffled")
    directory = run(tmp_path / "run", replace(EXPERIMENT, orders=orders, seeds=(1,)))
    for method in ("air", "acil"):
        last = [values(directory, method=method, order=order, metric="A_last") for order in orders]
        assert last[0] == last[1] == last[2]
        averages = [values(directory, method=method, order=order, metric="A_avg") for order in orders]
        assert averages[0] != averages[1]


@pytest.fixture
def troubled():
    """Methods that do not do what they should; they are gone after the test."""
    load_methods()

    class Failing(Air):
        def learn(self, inputs, labels):
            raise RuntimeError("no luck today")

    class Wild(Air):
        def predict(self, encoded):
            return np.full(len(encoded), 77)

    class Choosy(Air):
        def __init__(self, setup):
            raise IncompatibleError("it wants more than 64 features")

    names = {"failing": Failing, "wild": Wild, "choosy": Choosy}
    for name, method in names.items():
        register_method(name)(method)
    yield tuple(names)
    for name in names:
        del METHODS._entries[name]


def test_what_fails_is_a_row_with_a_reason_and_the_sweep_goes_on(tmp_path, troubled):
    directory = run(tmp_path / "run", replace(EXPERIMENT, methods=(*troubled, "air"), seeds=(1,)))
    reasons = {row.method: (row.status, row.reason) for row in directory.rows() if row.status != "ok"}
    assert reasons["failing"][0] == "failed"
    assert reasons["failing"][1].startswith("RuntimeError: no luck today (test_runner.py, line ")
    assert "predicted class 77" in reasons["wild"][1]
    assert reasons["choosy"] == ("incompatible", "it wants more than 64 features")
    assert len(values(directory, method="air", metric="A_last")) == 1
    run(tmp_path / "run", replace(EXPERIMENT, methods=(*troubled, "air"), seeds=(1,)))
    assert len([row for row in directory.rows() if row.status != "ok"]) == 3


def test_what_a_store_cannot_do_is_incompatible(tmp_path):
    returning = Experiment("digits", "identity", "domain-incremental", methods=("air-pooled",), gamma=1.0)
    labels = load_dataset("digits").train.labels
    stream = make_stream("domain-incremental", labels, domains=np.arange(len(labels)) % 2)
    runner = Runner(RunConfig("x", (returning,)), RunDirectory(tmp_path / "run"))
    runner._stream = lambda *place: stream  # digits has no domains of its own
    runner.run()
    (row,) = runner.directory.rows()
    assert (row.status, row.metric) == ("incompatible", "")
    assert "folded a closed phase" in row.reason


def test_a_typo_is_found_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'acil'"):
        run(tmp_path / "run", replace(EXPERIMENT, methods=("air", "acill")))
    assert not (tmp_path / "run").exists()


class Interrupting(Listener):
    """Interrupts a run after so many samples."""

    def __init__(self, after):
        self.left = after

    def job(self, spec, number, total):
        def progress(done, of):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

        return progress


@pytest.mark.parametrize("after", [1, 20, 40, 60, 90])
def test_an_interrupted_run_goes_on_to_the_same_rows(tmp_path, after):
    expected = timeless(run(tmp_path / "expected"))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", listener=Interrupting(after))
    assert not any(row.metric == "A_last" and row.seed == 2 for row in RunDirectory(tmp_path / "run").rows())
    assert timeless(run(tmp_path / "run")) == expected


# Kills its own process as soon as it has added rows of a third phase.
KILLS_ITSELF = """
import os, signal, sys
import aircl.cli.commands
from aircl.benchmark.results import RunDirectory

append = RunDirectory.append

def appended(self, rows):
    rows = list(rows)
    append(self, rows)
    if any(row.phase == 3 for row in rows):
        os.kill(os.getpid(), signal.SIGKILL)

RunDirectory.append, sys.argv[0] = appended, "aircl"
aircl.cli.commands.main()
"""


def test_a_killed_process_goes_on_to_the_same_numbers(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(
        """
        name = "killed"
        [[experiments]]
        dataset = "digits"
        backbone = "identity"
        scenario = "long-tail"
        options = {phases = 10, counts = "exp", ratio = 0.5}
        methods = ["air", "acil"]
        seeds = [1, 2]
        buffer = 400
        batch_size = 8
        evaluate_every = 20
        """
    )
    expected = RunDirectory(tmp_path / "expected")
    Runner(RunConfig.from_toml(config), expected).run()

    environment, directory = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}, RunDirectory(tmp_path / "run")
    for program, args, code in (
        (["-c", KILLS_ITSELF], [str(config), "-o", str(directory.path)], -signal.SIGKILL),
        (["-m", "aircl.cli"], ["--resume", str(directory.path)], 0),
    ):
        ended = subprocess.run([sys.executable, *program, "run", *args], env=environment, capture_output=True)
        assert ended.returncode == code, ended.stderr.decode()
        assert any(row.phase == 3 for row in directory.rows())
        assert any(row.metric == "A_last" for row in directory.rows()) == (code == 0)
    assert [(row.job, row.point, row.samples, row.metric) for row in directory.rows()] == [
        (row.job, row.point, row.samples, row.metric) for row in expected.rows()
    ]
    np.testing.assert_allclose(
        [row.value for row in directory.rows()], [row.value for row in expected.rows()], rtol=0, atol=1e-12
    )


def test_gamma_from_the_grid_is_in_the_rows_and_chosen_without_test_data(tmp_path):
    grid = replace(EXPERIMENT, gamma="grid", seeds=(1,), methods=("air", "air-pooled", "acil"))
    directory = run(tmp_path / "run", grid)
    gammas = {row.method: row.gamma for row in directory.rows()}
    assert gammas["air"] == gammas["air-pooled"]
    assert all(np.log10(gamma) == pytest.approx(round(np.log10(gamma))) for gamma in gammas.values())
    for method in ("air", "acil"):
        (chosen,) = values(directory, method=method, metric="balanced_A_last")
        fixed = run(tmp_path / f"huge-{method}", replace(grid, gamma=1e5, methods=(method,)))
        assert chosen > values(fixed, metric="balanced_A_last")[0] + 0.05


def test_empty_phases_and_blurry_streams(tmp_path):
    blurry = Experiment(
        "digits", "identity", "si-blurry", {"phases": 4}, methods=("air", "air-shared", "acil"), seeds=(1, 2, 3),
        gamma=1.0, evaluate_every=300,
    )  # fmt: skip
    directory = run(tmp_path / "run", blurry)
    assert len(values(directory, metric="A_last")) == 9
    assert all(value > 0.8 for value in values(directory, metric="A_last"))
    assert [row.reason for row in directory.rows() if row.status != "ok"] == []


def test_rows_survive_a_torn_line(tmp_path):
    directory = run(tmp_path / "run", replace(EXPERIMENT, seeds=(1,)))
    rows = directory.rows()
    with (tmp_path / "run" / "rows.jsonl").open("a") as file:
        file.write(json.dumps({"run": "te"})[:-3])
    assert directory.rows() == rows


@pytest.mark.parametrize("kind", [Path, str])
def test_a_directory_that_is_no_run_is_refused(kind, tmp_path):
    with pytest.raises(ValueError, match=r"no run\.json"):
        RunDirectory(kind(tmp_path)).about  # noqa: B018


def test_two_processes_cannot_work_in_one_directory(tmp_path):
    directory = RunDirectory(tmp_path)
    with directory.locked(), pytest.raises(ValueError, match="another process is at work in"):
        run(tmp_path)
    assert directory.rows() == []
    assert run(tmp_path).rows()
    assert not (tmp_path / "run.lock").exists()


def test_a_finished_run_has_its_rows_as_parquet_and_no_state(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    directory = run(tmp_path, replace(EXPERIMENT, seeds=(1,)))
    table = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [Row(**row) for row in table] == directory.rows()
    assert not (tmp_path / "state").exists()


def test_classes_have_their_names(tmp_path):
    directory = run(tmp_path, replace(EXPERIMENT, seeds=(1,), methods=("acil",)))
    (experiment,) = read_experiments(directory)
    assert [experiment.name_of(label) for label in (0, 9)] == list(load_dataset("digits").class_names[::9])
    assert experiment.name_of(1000) == "1000"


def test_transfer_over_domains_and_calibration(tmp_path):
    """Digits that get darker: each phase is a domain, and the next one is met before it is learned."""
    digits = load_dataset("digits")

    def dimmed(split):
        domain = np.arange(len(split)) % 3
        images = split.inputs[np.arange(len(split))] * np.array([1.0, 0.7, 0.4])[domain][:, None, None, None]
        return Split(images.astype(np.uint8), split.labels, "dimmed", domain)

    dataset = Dataset("dimmed", "images", dimmed(digits.train), dimmed(digits.test), digits.class_names)
    stream = Experiment("dimmed", "identity", "domain-incremental", methods=("slda", "ncm"))
    runner = Runner(RunConfig("x", (stream,)), RunDirectory(tmp_path))
    runner._datasets["dimmed"] = dataset
    runner.run()
    final = {row.metric: row.value for row in runner.directory.rows() if (row.method, row.point) == ("slda", "final")}
    assert 0.3 < final["forward_transfer"] < 0.9
    assert -0.3 < final["backward_transfer"] < 0.3
    assert 0 <= final["ECE"] < 0.3
    assert abs(final["expected_accuracy"] - final["A_last"]) <= final["ECE"] + 1e-9
    of_ncm = {row.metric for row in runner.directory.rows() if row.method == "ncm"}
    assert "ECE" not in of_ncm  # it has no probabilities
