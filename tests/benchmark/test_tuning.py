"""Options are searched on held-out training samples, with the same budget for all; the defaults are always tried."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
from aircl.benchmark.tuning import search_space, tune
from aircl.cli.tune import to_toml
from aircl.methods import METHODS, Method, Range, list_methods, register_method
from aircl.report import read_experiments

STREAM = Experiment("digits", "identity", "long-tail", {"phases": 2, "ratio": 0.1}, methods=("acil",), gamma=1e5)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def watched():
    """A method that is best at 0.3, and notes what it was taught."""
    list_methods()

    @register_method("watched")
    class Watched(Method):
        search_space = {"threshold": Range(0.0, 1.0)}  # noqa: RUF012
        seen, asked = [], []

        @classmethod
        def resolve_options(cls, options, *, online):
            return {"threshold": 0.9, **options}

        def learn(self, inputs, labels):
            self.seen.append(np.asarray(inputs))
            self.label = int(labels[0])
            self.known = np.asarray(sorted({*getattr(self, "known", []), *labels.tolist()}))

        def predict(self, encoded):
            self.asked.append(np.asarray(encoded))
            good = round(len(encoded) * (1 - abs(self.setup.options["threshold"] - 0.3)))
            return np.where(np.arange(len(encoded)) < good, self.known[-1], self.known[0])

        def save(self, directory): ...
        def restore(self, directory): ...

    yield Watched
    del METHODS._entries["watched"]


def runner(path, *methods, **changes):
    return Runner(RunConfig("x", (replace(STREAM, methods=methods, **changes),)), RunDirectory(path))


def test_a_bad_gamma_is_replaced(tmp_path):
    pytest.importorskip("optuna")
    found = tune(runner(tmp_path, "acil"), "acil", trials=6)
    assert found.score > found.default_score + 0.05  # of the gamma of the experiment, which is far too large
    assert found.values["gamma"] < 1e5
    assert found.trials == 6
    assert found.seconds > 0


def test_no_test_sample_is_touched_and_the_budget_is_kept(tmp_path, watched):
    pytest.importorskip("optuna")
    one = runner(tmp_path, "watched")
    tune(one, "watched", trials=4)
    test = {row.tobytes() for row in np.asarray(one._features[next(iter(one._features))][1].inputs[np.arange(359)])}
    touched = {row.tobytes() for batch in [*watched.seen, *watched.asked] for row in batch}
    assert not test & touched
    assert len(watched.asked) == 5  # four trials, and the defaults


def test_what_is_no_better_changes_nothing(tmp_path):
    pytest.importorskip("optuna")
    same = tune(runner(tmp_path, "acil", gamma="auto"), "acil", trials=1, ranges={"gamma": Range(1e8, 1e9, log=True)})
    assert same.values == {}
    assert same.score == same.default_score


def test_ranges_are_declared_common_or_given():
    assert set(search_space("er", online=True)) == {"learning_rate", "momentum"}
    assert search_space("er", online=False, ranges={"memory": Range(100, 500, integer=True)})["memory"].high == 500
    with pytest.raises(ValueError, match=r"er has no option 'memroy' to search. It has epochs, updates"):
        search_space("er", online=False, ranges={"memroy": Range(1, 2)})
    assert search_space("ncm", online=False) == {}
    with pytest.raises(ValueError, match="the lower end should be above 0 and below"):
        Range(0, 1, log=True)


def test_a_gamma_of_one_method(tmp_path):
    both = replace(STREAM, methods=("air", "acil"), gamma=2.0, method_options={"acil": {"gamma": 7.0}})
    directory = RunDirectory(tmp_path)
    Runner(RunConfig("x", (both,)), directory).run()
    assert {row.method: row.gamma for row in directory.rows()} == {"air": 2.0, "acil": 7.0}
    assert directory.about["methods"][0]["acil"]["options"] == {"gamma": 7.0}


def test_the_command_writes_a_run(run_cli, tmp_path, monkeypatch):
    pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    stream = ("--dataset", "digits", "--scenario", "long-tail,phases=2,ratio=1/10", "--seeds", "1")
    own = "from aircl.methods import register_method\nfrom aircl.methods.prototypes import Ncm\n"
    (tmp_path / "my own.py").write_text(own + '@register_method("own")\nclass Own(Ncm): ...\n')
    result = run_cli(
        "tune", "acil,air,ncm,own", "--module", "my own.py", *stream, "--trials", 3, "--range", "air.gamma=0.1:100:log",
        "-o", "tuned.toml",
    )  # fmt: skip
    assert "3 trials" in result.stderr
    command = "run tuned.toml --module 'my own.py'"
    assert result.stderr.endswith(f"Run it: aircl {command}\n")
    assert "ncm: it has nothing to search, and stays as it is" in result.stderr
    config = tomllib.loads((tmp_path / "tuned.toml").read_text())["experiments"][0]
    assert set(config["tuning"]) == {"acil", "air"}
    assert config["methods"] == ["acil", "air", "ncm", "own"]
    run_cli(*shlex.split(command), "-o", "out", "--quiet")
    notes = read_experiments(tmp_path / "out")[0].notes
    assert notes["acil"][0].startswith("Options were chosen by 3 trials on held-out training samples, ")
    assert "METHOD.KEY=LOW:HIGH" in run_cli("tune", "acil", *stream, "--range", "x", code=2).stderr
    assert "ncm declares no ranges. Give some" in run_cli("tune", "ncm", *stream, code=1).stderr
    stray = run_cli("tune", "acil", *stream, "--range", "air.gamma=1:2", code=2)
    assert "air is not among the methods, acil." in stray.stderr


def test_names_come_back_from_the_file_that_is_written():
    options = {"acil": {"gamma": 1e-7, "note\x7f": '\U0001f600 \x1b "=" ä'}}
    tuning = {"acil": {"trials": 3, "seconds": 1.5, "score": 0.5, "default_score": 0.25}}
    config = RunConfig("\x7fname", (replace(STREAM, method_options=options, tuning=tuning),))
    assert RunConfig.from_mapping(tomllib.loads(to_toml(config))) == config


def test_a_file_that_was_not_asked_for_by_name_stays(run_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuned.toml").write_text("mine = 1")
    stream = ("--dataset", "digits", "--scenario", "long-tail,phases=2")
    assert "tuned.toml is there already" in run_cli("tune", "acil", *stream, code=1).stderr
    assert (tmp_path / "tuned.toml").read_text() == "mine = 1"


@pytest.fixture
def run_cli():
    from typer.testing import CliRunner

    from aircl.cli import app

    def invoke(*args, code=0):
        result = CliRunner().invoke(app, [str(arg) for arg in args])
        assert result.exit_code == code, result.output
        return result

    return invoke
