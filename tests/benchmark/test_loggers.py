"""Rows reach whoever listens: callbacks, TensorBoard, Weights & Biases, files."""

from __future__ import annotations

import json

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


def records(path):
    """Yield the records of a short file of Weights & Biases: after its head, checksum, length and kind before each."""
    data, at = path.read_bytes(), 7
    assert len(data) < 1 << 15  # one block
    while at < len(data):
        size = int.from_bytes(data[at + 4 : at + 6], "little")
        yield data[at + 7 : at + 7 + size]
        at += 7 + size


@pytest.mark.slow
def test_wandb_writes_offline_over_samples_and_says_nothing(tmp_path, monkeypatch, capfd):
    pytest.importorskip("wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    monkeypatch.delenv("WANDB_SILENT", raising=False)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    directory = run(tmp_path / "run", make_logger("wandb", tmp_path / "logs"))
    assert capfd.readouterr() == ("", "")
    files = list((tmp_path / "logs" / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 2
    heard = {}
    for path in files:
        for data in records(path):
            record = Record.FromString(data)
            if record.HasField("metric") and record.metric.glob_name == "*":
                assert record.metric.step_metric == "samples"
            if record.HasField("run"):
                name = record.run.display_name
                heard[name] = []
            if record.HasField("history"):
                heard[name].append({i.key or i.nested_key[0]: json.loads(i.value_json) for i in record.history.item})
    for method in ("ncm", "slda"):
        (points,) = (points for name, points in heard.items() if method in name)
        (last,) = (row for row in directory.rows() if (row.method, row.metric) == (method, "A_last"))
        (point,) = (point for point in points if "final/A_last" in point)
        assert (point["final/A_last"], point["samples"]) == (pytest.approx(last.value), last.samples)


def test_a_logger_that_there_is_not(tmp_path):
    with pytest.raises(ValueError, match=r"there is no logger 'mlflow'. Known: tensorboard, wandb"):
        make_logger("mlflow", tmp_path)
