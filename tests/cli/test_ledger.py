"""The ledger on the command line: a command may be repeated, killed and repeated, and nothing is counted twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits

from aircl import AIRClassifier

X, Y = load_digits(return_X_y=True)
X = X / 16


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        rows = slice(300 * number, 300 * number + 300)
        np.savez(f"{number}.npz", X=X[rows], y=Y[rows])
    (tmp_path / "key").write_bytes(os.urandom(32))
    return tmp_path


def bits(path):
    """Statistics and ledger of a model, to the bit."""
    state = AIRClassifier.load(path)._learner.sealed()
    arrays = {**state.statistics.arrays(), **state.ledger.arrays()}
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()} | {"header": state.ledger.header()}


def learn(*files, label="y"):
    return ("learn", *files, "--label", label)


def test_a_repeated_command_is_harmless(place, run):
    run(*learn("0.npz"), "--ledger", "--batch", 70, "-o", "m")
    again = learn("1.npz", "0.npz"), ("--append", "m", "-o", "m")
    before = bits("m")
    refused = run(*again[0], "--ledger", *again[1], code=1)
    assert "0.npz, rows 1 to 300: 300 of 300 rows were learned already" in refused.stderr
    assert "--on-duplicate skip leaves out" in refused.stderr
    assert bits("m") == before
    told = run(*again[0], *again[1], "--on-duplicate", "skip", "--json")
    assert '"known": 300' in told.stdout
    assert "300 rows known before" in told.stderr
    after = bits("m")
    run(*again[0], *again[1], "--on-duplicate", "skip")
    assert bits("m") == after
    assert AIRClassifier.load("m").class_count_.sum() == 600


def test_equal_rows_of_a_command_count_however_it_is_divided(place, run):
    rows = np.r_[0:100, 0:100, 100:150]
    np.savez("twice.npz", X=X[rows], y=Y[rows])
    run(*learn("twice.npz", "1.npz"), "--ledger-key", "key", "--batch", 60, "-o", "m")
    run(*learn("twice.npz", "1.npz"), "--ledger-key", "key", "--batch", 4096, "-o", "whole")
    assert AIRClassifier.load("m").class_count_.sum() == 550
    assert AIRClassifier.load("m")._learner.state.ledger.arrays().keys() == {"0.row", "0.slot"}
    for name, array in AIRClassifier.load("m")._learner.state.ledger.arrays().items():
        assert array.tobytes() == AIRClassifier.load("whole")._learner.state.ledger.arrays()[name].tobytes()


def test_only_what_was_learned_is_forgotten(place, run):
    run(*learn("0.npz", "1.npz"), "--dtype", "float32", "--store", "shared", "--ledger", "-o", "m")
    before = bits("m")
    refused = run("forget", "m", "2.npz", "--label", "y", "-o", "m", code=1)
    assert "300 of 300 rows were never learned" in refused.stderr
    assert bits("m") == before
    run("forget", "m", "1.npz", "--label", "y", "--batch", 100, "-o", "m")
    model = AIRClassifier.load("m")
    assert model.class_count_.sum() == len(model._learner.state.ledger) == 300
    assert "300 of 300 rows were never learned" in run("forget", "m", "1.npz", "--label", "y", "-o", "m", code=1).stderr


def test_models_of_one_key_are_compared_and_of_two_not(place, run):
    run(*learn("0.npz", "1.npz"), "--ledger-key", "key", "-o", "a")
    run(*learn("1.npz", "2.npz"), "--ledger-key", "key", "-o", "b")
    run(*learn("2.npz"), "--ledger-key", "key", "-o", "c")
    run(*learn("2.npz"), "--ledger", "-o", "d")
    assert "300 rows were learned by both" in run("merge", "a", "b", "-o", "m", code=1).stderr
    assert "Note" not in run("merge", "a", "c", "-o", "ac").stderr
    assert "nothing tells whether they have rows in common" in run("merge", "a", "d", "-o", "ad").stderr
    assert len(AIRClassifier.load("ad")._learner.state.ledger) == 900
    run(*learn("2.npz"), "-o", "bare")
    assert "the other has none" in run("merge", "a", "bare", "-o", "m", code=1).stderr
    # The key is in no model, and needed to learn and to forget.
    for command in ((*learn("2.npz"), "--append", "a"), ("forget", "a", "0.npz", "--label", "y")):
        assert "--ledger-key FILE" in run(*command, "-o", "m", code=1).stderr
        run(*command, "--ledger-key", "key", "-o", "m")


def test_a_ledger_is_there_from_the_first_row_or_not_at_all(place, run):
    run(*learn("0.npz"), "-o", "m")
    for option in (["--ledger"], ["--ledger-key", "key"]):
        refused = run(*learn("1.npz"), *option, "--append", "m", "-o", "m", code=1)
        assert "has learned without a ledger" in refused.stderr
    assert "keep a ledger" in run(*learn("1.npz"), "--append", "m", "--on-duplicate", "skip", "-o", "m", code=1).stderr
    run(*learn("0.npz"), "--ledger", "--engine", "joblib", "-o", "m2", code=2)
    run(*learn("0.npz"), "--ledger", "--replaced", "1.npz", "-o", "m2", code=2)


@pytest.mark.parametrize(
    ("kills", "options"),
    [
        (4, ()),
        (4, ("--on-duplicate", "skip")),
        pytest.param(30, (), marks=pytest.mark.slow),
        pytest.param(30, ("--on-duplicate", "skip"), marks=pytest.mark.slow),
    ],
)
def test_killed_at_any_moment_and_repeated_it_is_as_if_undisturbed(kills, options, place, forks):
    """The same command again, after SIGKILL, gives statistics and ledger of one undisturbed run, bit by bit."""
    assert forks.run(*learn("0.npz"), "--expand", 100, "--ledger", "-o", "begun").code == 0
    command = (*learn("1.npz", "2.npz"), "--ledger", "--append", "m", "--batch", 50, *options, "-o", "m")
    shutil.copy("begun", "m")
    began = time.perf_counter()
    assert forks.run(*command).code == 0
    seconds, undisturbed = time.perf_counter() - began, bits("m")
    rng, before = random.Random(0), bits("begun")
    for _ in range(kills):
        shutil.copy("begun", "m")
        process = forks.start(*command)
        time.sleep(rng.uniform(0, 1.1 * seconds))
        os.kill(process.pid, signal.SIGKILL)  # it is there at least as one that nobody waited for
        process.wait()
        was_written = bits("m") == undisturbed
        assert was_written or bits("m") == before
        again = forks.run(*command)
        assert again.code == (1 if was_written and not options else 0), again.stderr
        assert bits("m") == undisturbed
    assert {path.name for path in place.iterdir()} == {"0.npz", "1.npz", "2.npz", "key", "begun", "m"}
