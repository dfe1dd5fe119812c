"""What reaches the terminal, a spreadsheet, or a stream that takes nothing."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.cli import app, console
from aircl.storage.errors import InputError, OutputError, is_refusal

HOSTILE = ["a\x1b]0;owned\x07", "b\x9b2J", "c\u202egnp", "d\nError: e"]


@pytest.fixture
def model(tmp_path, monkeypatch, run):
    """A model whose labels are commands to a terminal, and rows of each."""
    monkeypatch.chdir(tmp_path)
    np.savez("rows.npz", X=np.eye(4), y=HOSTILE)
    run("learn", "rows.npz", "--label", "y", "--gamma", 0.1, "-o", "m")
    return tmp_path / "m"


def is_harmless(text):
    return text.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("info", "m"), 0),
        (("info", "m", "--json"), 0),
        (("predict", "m", "rows.npz"), 0),
        (("predict", "m", "rows.npz", "--proba"), 0),
        (("evaluate", "m", "rows.npz", "--label", "y"), 0),
        (("evaluate", "m", "rows.npz", "--label", "y", "--json"), 0),
        (("forget", "m", "--class", "\x1b[2J", "-o", "x"), 1),
        (("learn", "rows.npz", "--label", "\x1b[2J", "-o", "x"), 1),
        (("predict", "m", "\x1b[2J.csv"), 1),
    ],
)
def test_control_characters_are_spelt_out(args, code, model, run):
    result = run(*args, code=code)
    assert is_harmless(result.stdout)
    assert is_harmless(result.stderr)
    if code == 0 and "--json" not in args:
        assert r"a\x1b]0;owned\x07" in result.stdout
        assert r"d\nError: e" in result.stdout


def test_json_has_the_labels_as_they_are(model, run):
    result = json.loads(run("info", "m", "--json").stdout)
    assert [row["label"] for row in result["classes"]] == HOSTILE


def test_raw_predictions_are_the_labels(model, run):
    assert run("predict", "m", "rows.npz", "--raw").stdout == "".join(f"{label}\n" for label in HOSTILE)


def test_reports_spell_them_out_too(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    np.savez("x\x1b[2J.npz", X_train=np.eye(4), y_train=HOSTILE, X_test=np.eye(4), y_test=HOSTILE)
    (tmp_path / "c.toml").write_text(
        'name = "<script>\\u001b[2J"\n[[experiments]]\ndataset = "features:x\\u001b[2J.npz"\nbackbone = "identity"\n'
        'scenario = "cil"\noptions = {phases = 2}\nmethods = ["ncm"]'
    )
    result = run("run", "c.toml", "-o", "r")
    assert is_harmless(result.stdout)
    assert is_harmless(result.stderr)
    assert is_harmless(run("report", "r").stdout)
    markdown = (tmp_path / "r" / "report.md").read_text()
    assert markdown.startswith("# \\<script\\>\\x1b\\[2J\n")
    assert is_harmless(markdown)


def test_formulas_are_not_for_spreadsheets_unless_asked_for(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    labels = ["=1+1", "+1", "-1", "@x", "cat"]
    np.savez("rows.npz", X=np.eye(5), y=labels)
    run("learn", "rows.npz", "--label", "y", "--gamma", 0.1, "-o", "m")
    for raw, wanted in (((), ["'=1+1", "'+1", "'-1", "'@x", "cat"]), (("--raw",), labels)):
        result = run("predict", "m", "rows.npz", "--label", "y", "-o", "p.csv", *raw)
        with open("p.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["prediction"] for row in rows] == [row["label"] for row in rows] == wanted
        assert ("have a ' in front" in result.stderr) == (not raw)
    np.savez("numbers.npz", X=np.eye(2), y=[-1, 1])
    run("learn", "numbers.npz", "--label", "y", "--gamma", 0.1, "-o", "m")
    run("predict", "m", "numbers.npz", "-o", "p.csv")
    assert (tmp_path / "p.csv").read_text() == "prediction\n-1\n1\n"


@pytest.mark.parametrize(
    ("args", "where"),
    [
        (("info", "m"), "/dev/full"),
        (("info", "m", "--json"), None),
        (("predict", "m", "rows.npz"), "/dev/full"),
        (("predict", "m", "rows.npz"), None),
        (("--version",), "/dev/full"),
    ],
)
def test_an_output_that_takes_nothing_is_one_line(args, where, model, forks):
    result = forks.run(*args, stdout=where)
    assert result.code == 1
    assert "Traceback" not in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("Error: ")]) == 1


def test_nothing_is_written_into_a_file_that_got_the_number_of_a_closed_stream(model, forks, run):
    result = forks.run("learn", "rows.npz", "--label", "y", "-o", "again", "--json", stdout=None, stderr=None)
    assert result.code == 1  # the JSON went nowhere
    run("info", "again")


@pytest.mark.slow
def test_a_real_process_without_stdout(model):
    # As a shell starts it, rather than by the fork that the other tests use.
    command = ["bash", "-c", 'exec 1>&-; exec "$@"', "x", sys.executable, "-m", "aircl.cli", "info", "m"]
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 1
    assert re.fullmatch(r"Error: .*\n", result.stderr)


def test_a_terminal_without_letters_gets_their_numbers(model, forks):
    result = forks.run("info", "m", encoding="ascii")
    assert result.code == 0
    assert result.stdout.isascii()


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyError("x"), 70, "Error: an unexpected KeyError: 'x'. This is a fault of aircl: please report it"),
        (RecursionError("too deep"), 70, "Error: an unexpected RecursionError: too deep."),
        (EOFError(), 70, "Error: an unexpected EOFError"),
        (MemoryError(), 1, "Error: not enough memory"),
        (PermissionError(13, "Permission denied", "f"), 1, "Error: f: Permission denied"),
        (InputError("no such thing"), 1, "Error: no such thing"),
        (OutputError("is an input"), 1, "Error: is an input"),
        (ValueError("not of aircl"), 70, "Error: an unexpected ValueError: not of aircl. This is a fault of aircl"),
        (ImportError("needs torch"), 1, "Error: needs torch"),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_whatever_is_raised_is_one_line(error, code, line, run, monkeypatch):
    @console.reports_problems
    def failing():
        raise error

    command = next(info for info in app.registered_commands if info.callback.__name__ == "info")
    monkeypatch.setattr(command, "callback", failing)
    monkeypatch.setattr(command, "name", "info")
    result = run("info", code=code)
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1
    shown = run("--debug", "info", code=code).stderr
    assert "Traceback (most recent call last)" in shown
    assert "in failing" in shown
    assert "Traceback" not in run("info", code=code).stderr


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda: AIRClassifier(-1.0).fit(np.eye(2), [0, 1]), True),
        (lambda: AIRClassifier().fit([[np.nan]], [0]), True),  # by scikit-learn's checks
        (lambda: AIRClassifier.load(__file__), True),
        (lambda: np.eye(2) + np.eye(3), False),
        (lambda: np.zeros(3).reshape(2, 2), False),
        (lambda: int("x"), False),
        (lambda: {}["x"], False),
    ],
)
def test_what_nobody_has_checked_is_a_fault(call, refusal):
    with pytest.raises((ValueError, KeyError)) as caught:
        call()
    assert is_refusal(caught.value) is refusal
