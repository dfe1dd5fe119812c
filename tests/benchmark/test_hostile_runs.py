"""Directories of runs and configurations that are damaged or crafted; kills between any two steps of a run."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from aircl.benchmark import job as job_module
from aircl.benchmark.config import Experiment, RunConfig
from aircl.benchmark.results import ADDED, Details, Row, RunDirectory
from aircl.benchmark.runner import Runner
from aircl.cli import app
from aircl.storage.errors import InputError

EXPERIMENT = Experiment(
    "digits", "identity", "cil", {"phases": 4}, methods=("air", "ncm"), seeds=(1,), gamma=1.0, batch_size=500
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRCL_CACHE", str(path / "cache"))
        Runner(RunConfig("test", (EXPERIMENT,)), RunDirectory(path / "run")).run()
    return path / "run"


@pytest.fixture
def directory(finished, tmp_path):
    return RunDirectory(shutil.copytree(finished, tmp_path / "run"))


def problem(*args):
    """Run a command that fails, and return the line it says so in."""
    result = CliRunner().invoke(app, list(args))
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def timeless(directory):
    return [dataclasses.replace(row, seconds=0, predict_seconds=0) for row in directory.rows()]


# -- kills --
STEPS = [
    (os, "replace"),
    (os, "fsync"),
    (job_module.Path, "rename"),
    (shutil, "rmtree"),
    (RunDirectory, "append"),
    (RunDirectory, "rewrite"),
]


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize(
    ("at", "after"),
    [(1, False), (3, True)]
    + [pytest.param(at, after, marks=pytest.mark.slow) for at in (1, 2, 3, 5, 8) for after in (False, True)],
)
@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[step for _, step in STEPS])
def test_a_run_that_ends_between_any_two_steps_is_resumed(owner, step, at, after, finished, tmp_path, monkeypatch):
    real, calls = getattr(owner, step), []

    def last(*args, **kwargs):
        calls.append(step)
        if len(calls) != at:
            return real(*args, **kwargs)
        if after:
            real(*args, **kwargs)
        raise Killed

    place = RunDirectory(tmp_path / "run")
    config = RunConfig("test", (EXPERIMENT,))
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, last)
        try:
            Runner(config, place).run()
        except Killed:
            pass
        else:
            assert len(calls) < at
    Runner(config, place).run()
    assert timeless(place) == timeless(RunDirectory(finished))
    assert {path.name for path in place.path.iterdir()} <= {"run.json", "rows.jsonl", "rows.parquet", "details"}
    assert len(list((place.path / "details").iterdir())) == 2


def stop_after(phase, path):
    """Leave a run as a stop after a phase of its first job leaves it."""

    real = job_module.Job._end_phase

    def end_phase(self, method, number, evaluation, track):
        real(self, method, number, evaluation, track)
        if number == phase:
            raise Killed

    runner = Runner(RunConfig("test", (EXPERIMENT,)), RunDirectory(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_module.Job, "_end_phase", end_phase)
        with pytest.raises(Killed):
            runner.run()
    (state,) = (path / "state").iterdir()
    return state


@pytest.mark.parametrize(
    "damage",
    ["track.json", "method/classifier.safetensors", "missing", "typed", "older", {"phases": 3}, {"by_phase": [[None]]},
     {"points": [{"periodic": False, "classes": [0], "right": "AAAA"}]}, {"points": [{"right": "?"}]}],
    ids=str,
)  # fmt: skip
def test_a_damaged_state_is_learned_again(damage, finished, tmp_path):
    state = stop_after(2, tmp_path / "run")
    assert [path.name for path in state.iterdir()] == ["2"]
    if damage == "missing":
        shutil.rmtree(state / "2" / "method")
    elif damage == "typed":
        (state / "2" / "track.json").write_text(json.dumps({"phases": "2", "samples": []}))
    elif isinstance(damage, dict):
        track = json.loads((state / "2" / "track.json").read_text())
        (state / "2" / "track.json").write_text(json.dumps({**track, **damage}))
    elif damage == "older":
        (state / "3").mkdir()
    else:
        content = (state / "2" / damage).read_bytes()
        (state / "2" / damage).write_bytes(content[: len(content) // 2])
    Runner(RunConfig("test", (EXPERIMENT,)), RunDirectory(tmp_path / "run")).run()
    assert timeless(RunDirectory(tmp_path / "run")) == timeless(RunDirectory(finished))
    assert not (tmp_path / "run" / "state").exists()


def test_a_state_that_a_kill_left_behind_is_removed(directory):
    job = directory.rows()[0].job
    (directory.state_path(job) / "3").mkdir(parents=True)
    Runner(RunConfig("test", (EXPERIMENT,)), directory).run()
    assert not (directory.path / "state").exists()


# -- what is read --
@pytest.mark.parametrize(
    "text",
    ["", "[]", "5", "null", "{", '"text"', "[" * 10**5, '{"classes": 5}', '{"classes": {"digits": 5}}',
     '{"methods": 5}', '{"methods": [5]}', '{"methods": [{"air": 5}]}', '{"methods": [{"air": {"notes": 5}}]}', "\0",
     "NaN", '{"methods": [{"air": {"title": 5}}]}', '{"methods": [{"air": {"is_bound": 5}}]}', '{"streams": 5}',
     '{"streams": [{"scenario": "cil"}]}',
     '{"streams": [{"scenario": "cil", "between_seeds": "", "left_out": {"seed 1": [5]}}]}', '{"sources": {"mine": 5}}',
     '{"sources": {"mine": {"file": 5, "sha256": null, "script": false}}}'],
)  # fmt: skip
def test_a_run_json_that_is_none(text, directory):
    (directory.path / "run.json").write_text(text)
    assert "run.json" in problem("report", "run")
    assert "run.json" in problem("run", "--resume", "run")


@pytest.mark.parametrize(
    "config", [5, None, [], "?", {}, {"experiments": 5}, {"experiments": [5]}, {"experiments": {}}]
)
def test_a_run_json_without_a_configuration(config, directory):
    directory.write_about({**directory.about, "config": config})
    problem("run", "--resume", "run")


@pytest.mark.parametrize("content", [b"", b"PK", None])
def test_details_that_are_damaged(content, directory):
    for path in (directory.path / "details").iterdir():
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    assert ".npz" in problem("report", "run")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("classes", np.zeros(3)),
        ("classes", np.array(["a"] * 10)),
        ("classes", -np.arange(10)),
        ("counts", np.zeros((2, 3), int)),
        ("counts", np.array(5)),
        ("confusion", np.zeros((10, 9), int)),
        ("confusion", np.zeros((10, 10), complex)),
        ("test_loss", np.zeros(3)),
        ("phase_accuracy", np.zeros(4)),
        ("phase_accuracy", None),
        ("test_labels", np.zeros(3, int)),
        ("predicted", None),
        ("predicted", np.full(359, -2)),
        ("right", np.zeros((4, 44), np.uint8)),
        ("right", np.zeros((4, 45))),
        ("exposed", np.zeros((4, 9), bool)),
        ("periodic", np.zeros(3, bool)),
        ("periodic", np.zeros(4)),
    ],
)
def test_details_that_do_not_fit(name, array, directory):
    path = next((directory.path / "details").iterdir())
    with np.load(path) as arrays:
        changed = {**arrays, name: array}
    np.savez(path, **{key: value for key, value in changed.items() if value is not None})
    with pytest.raises(InputError, match=r"does not fit|has no array"):
        Details.load(path)
    problem("report", "run")


def test_details_of_an_earlier_version_are_read(directory):
    path = next((directory.path / "details").iterdir())
    with np.load(path) as arrays:
        np.savez(path, **{name: arrays[name] for name in arrays if name not in ADDED})
    assert not len(Details.load(path).test_labels)
    assert CliRunner().invoke(app, ["report", "run"]).exit_code == 0


ROW = dataclasses.asdict(Row("r", "j", "d", "b", "s", "", "m", 1, 1, 1, "phase", "accuracy", 0.5, 1.0, 1, 0.1, 1))


@pytest.mark.parametrize("field", ROW)
def test_fields_of_rows(field, tmp_path):
    wrong = [[], {}, True] + (["text", None] if field != "value" else ["text"])
    if isinstance(ROW[field], str):
        wrong = [[], {}, True, 5, None] + ["text"] * (field == "status")
    if field in ("gamma", "buffer", "state_bytes", "predict_seconds", "peak_memory"):
        wrong.remove(None)
    for value in wrong:
        (tmp_path / "rows.jsonl").write_text(json.dumps({**ROW, field: value}) + "\n")
        with pytest.raises(InputError, match=rf"rows\.jsonl, line 1: {field} is"):
            RunDirectory(tmp_path).rows()


@pytest.mark.parametrize(
    "line",
    ["", "[]", "5", "{}", "{", json.dumps({**ROW, "more": 1}), json.dumps({"run": "r"}), "[" * 10**5, "\0",
     json.dumps({**ROW, "value": float("nan")}), json.dumps({**ROW, "seed": "1" * 5000}),
     json.dumps({**ROW, "job": "../../secret"})],
)  # fmt: skip
def test_lines_of_rows(line, directory):
    (directory.path / "rows.jsonl").write_text(json.dumps(ROW) + "\n" + line + "\n")
    problem("report", "run")


def test_a_file_that_is_not_text(directory):
    (directory.path / "rows.jsonl").write_bytes(b"\xff\xfe\n")
    assert "line 1" in problem("report", "run")


# -- configurations --
GOOD = {"dataset": '"digits"', "backbone": '"identity"', "scenario": '"cil"'}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("dataset", "5", "dataset is 5, but it should be text"),
        ("dataset", '["digits"]', "should be text"),
        ("backbone", "true", "should be text"),
        ("scenario", "{}", "should be text"),
        ("options", "5", "options is 5, but it should be a table"),
        ("options", "{phases = [[1]]}", "options.phases"),
        ("options", "{phases = 1979-05-27}", "options.phases"),
        ("options", '{phases = "two"}', "phases='two' is not an integer"),
        ("options", '{base = "half"}', "base='half' is not a share"),
        ("options", "{phases = 1e400}", "options.phases"),
        ("methods", "[1]", "methods[0] is 1, but it should be text"),
        ("methods", '"air"', "methods is 'air', but it should be a list"),
        ("methods", "5", "should be a list"),
        ("orders", '"shuffled"', "orders is 'shuffled', but it should be a list"),
        ("seeds", "5", "should be a list"),
        ("seeds", '["1"]', "seeds[0]"),
        ("seeds", "[1.5]", "seeds[0]"),
        ("seeds", "[true]", "seeds[0]"),
        ("buffer", '"500"', "buffer is '500'"),
        ("buffer", "2.5", "buffer is 2.5"),
        ("gamma", "[]", "gamma is []"),
        ("gamma", "nan", "gamma is nan"),
        ("gamma", "true", "gamma is True"),
        ("batch_size", "[]", "batch_size is []"),
        ("evaluate_every", '"x"', "evaluate_every is 'x'"),
        ("unfreeze", "1", "unfreeze is 1"),
        ("method_options", "5", "method_options is 5"),
        ("method_options", "{air = 5}", "method_options.air"),
        ("method_options", '{air = {gamma = "most"}}', "gamma='most' is neither a number nor auto nor grid"),
        ("method_options", "{air = {gamma = -1}}", "gamma=-1 is not above 0"),
        ("tuning", "5", "tuning is 5"),
        ("tuning", "{air = {trials = 5}}", "tuning.air lacks default_score, score, seconds"),
        ("tuning", '{air = {trials = 5, seconds = 1, score = "?", default_score = 0.5}}', "tuning.air.score is '?'"),
    ],
)
def test_values_of_the_wrong_type(key, value, message, tmp_path):
    (tmp_path / "c.toml").write_text(
        "[[experiments]]\n" + "".join(f"{k} = {v}\n" for k, v in {**GOOD, key: value}.items())
    )
    assert message in problem("run", "c.toml", "-o", "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "text",
    ["experiments = 5", "experiments = [5]", "experiments = [[]]", "[experiments]", "name = 5", "x = " + "[" * 10**4,
     "a." * 2000 + "b = 1", "x = " + "9" * 5000, "\0", "= 5", "x = 1\nx = 2", ""],
)  # fmt: skip
def test_configurations_that_are_none(text, tmp_path):
    (tmp_path / "c.toml").write_text(text)
    assert "c.toml" in problem("run", "c.toml", "-o", "run")


def test_a_configuration_that_is_not_text(tmp_path):
    (tmp_path / "c.toml").write_bytes(b"\xff\xfe")
    assert "c.toml cannot be read" in problem("run", "c.toml", "-o", "run")
    assert "directory" in problem("run", str(tmp_path), "-o", "run")
