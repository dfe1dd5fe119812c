"""Rows reach whoever listens: callbacks, TensorBoard, Weights & Biases, files."""

from __future__ import annotations

import pytest

from aircl.benchmark import Experiment, Listener, RunConfig, RunDirectory, Runner
from aircl.benchmark.loggers import curves, make_logger

STREAM = Experiment("digits", "identity", "cil", {"phases": 2}, methods=("ncm", "slda"), evaluate_every=500)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))


def run(path, *listeners, **options):
    directory = RunDirectory(path)
    Runner(RunConfig("test", (STREAM,)), directory, listener=listeners, **options).run()
    return directory


class Hearing(Listener):
    def __init__(self):
        self.heard, self.closed, self.jobs = [], 0, []

    def rows(self, spec, rows):
        self.heard += rows

    def job(self, spec, number, total):
        self.jobs.append((spec.method, number, total))
        return None

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_row_is_heard_once_by_all(isolate, tmp_path):
    one, other = Hearing(), Hearing()
    directory = run(tmp_path / "run", one, other, isolate=isolate)
    assert one.heard == other.heard == directory.rows()
    assert one.jobs == [("ncm", 1, 2), ("slda", 2, 2)]
    assert one.closed == 1


def test_a_run_that_is_stopped_is_closed(tmp_path):
    class Stopping(Hearing):
        def rows(self, spec, rows):
            raise KeyboardInterrupt

    listener = Stopping()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", listener)
    assert listener.closed == 1


def test_tensorboard_has_the_curves_of_the_rows(tmp_path):
    pytest.importorskip("tensorboard")
    pytest.importorskip("torch")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    directory = run(tmp_path / "run", make_logger("tensorboard", tmp_path / "logs"))
    for method in ("ncm", "slda"):
        own = [row for row in directory.rows() if row.method == method]
        (folder,) = (tmp_path / "logs" / "tensorboard").glob(f"*{method}*")
        events = EventAccumulator(str(folder)).Reload()
        for name in ("phase/accuracy", "periodic/balanced_accuracy", "final/A_last", "cost/state_bytes"):
            expected = [(samples, pytest.approx(value)) for n, samples, value in curves(own) if n == name]
            assert [(event.step, event.value) for event in events.Scalars(name)] == expected
            assert expected


@pytest.mark.slow
def test_wandb_writes_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    run(tmp_path / "run", make_logger("wandb", tmp_path / "logs"))
    files = list((tmp_path / "logs" / "wandb").rglob("offline-run-*/*.wandb"))
    assert len(files) == 2
    assert any(b"final/A_last" in path.read_bytes() for path in files)


def test_a_logger_that_there_is_not(tmp_path):
    with pytest.raises(ValueError, match=r"there is no logger 'mlflow'. Known: tensorboard, wandb"):
        make_logger("mlflow", tmp_path)
