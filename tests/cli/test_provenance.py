"""Where a model comes from, and how two of them differ."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from aircl import AIRClassifier, __version__
from aircl.classifiers.file import read_header


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Return a function that sets the clock."""

    def set_to(seconds):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(seconds))

    set_to(1_800_000_000)
    return set_to


def told(run, path):
    return json.loads(run("info", path, "--json").stdout)["history"]


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def learn(*files):
    return ("learn", *files, "--label", "y")


def test_a_model_knows_its_files_times_and_notes(files, run, clock):
    run(*learn("train.csv", "train.npz"), "--note", "the first days", "-o", "m")
    clock(1_800_086_400)
    run(*learn("test.csv"), "--append", "m", "-o", "m")
    first, second = told(run, "m")
    assert first == {
        "did": "learned",
        "time": "2027-01-15T08:00:00Z",
        "version": __version__,
        "note": "the first days",
        "files": [{"name": name, "rows": 310, "sha256": digest(name)} for name in ("train.csv", "train.npz")],
    }
    assert second["time"] == "2027-01-16T08:00:00Z"
    assert second["files"] == [{"name": "test.csv", "rows": 897, "sha256": digest("test.csv")}]
    lines = run("info", "m").stdout.splitlines()
    assert f"created    2027-01-15 08:00:00 UTC, by aircl {__version__}" in lines
    assert f"changed    2027-01-16 08:00:00 UTC, by aircl {__version__}" in lines
    assert f"learned    test.csv: 897 rows, sha256 {digest('test.csv')[:12]}.." in lines
    assert "note       the first days" in lines


def test_a_merged_model_knows_its_parents(files, run):
    run(*learn("train.csv"), "-o", "a")
    run(*learn("test.csv"), "-o", "b")
    run("merge", "a", "b", "--note", "two teams", "-o", "m")
    (event,) = told(run, "m")
    assert event["did"] == "merged"
    assert event["note"] == "two teams"
    assert event["parents"] == [
        {"name": "a", "rows": 310, "sha256": digest("a")},
        {"name": "b", "rows": 897, "sha256": digest("b")},
    ]
    assert f"merged     b: 897 rows, sha256 {digest('b')[:12]}.." in run("info", "m").stdout.splitlines()


def test_what_was_forgotten_is_not_named(files, run):
    run(*learn("train.csv"), "-o", "m")
    run("forget", "m", "--class", 3, "-o", "m")
    event = told(run, "m")[-1]
    assert event == {"did": "forgot", "time": "2027-01-15T08:00:00Z", "version": __version__, "rows": 40}


def test_files_for_others_name_no_files(files, run):
    run(*learn("train.csv"), "--statistics-only", "-o", "m")
    assert told(run, "m") == []
    assert b"train.csv" not in Path("m").read_bytes()
    run(*learn("train.csv"), "--statistics-only", "--note", "site 7", "-o", "m")
    assert [event["note"] for event in told(run, "m")] == ["site 7"]
    assert b"train.csv" not in Path("m").read_bytes()


def test_a_command_that_found_nothing_new_notes_nothing(files, run):
    run(*learn("train.csv"), "--ledger", "-o", "m")
    before = told(run, "m")
    run(*learn("train.csv"), "--append", "m", "--on-duplicate", "skip", "-o", "m")
    assert told(run, "m") == before


def test_python_notes_nothing(tmp_path):
    AIRClassifier(0.5).fit(np.eye(3), [0, 1, 2]).save(tmp_path / "m")
    assert read_header(tmp_path / "m")["learned"].get("history") is None


def test_a_clock_that_is_none_is_refused(files, run, clock):
    clock("yesterday")
    assert "SOURCE_DATE_EPOCH" in run(*learn("train.csv"), "-o", "m", code=1).stderr


def test_info_tells_of_the_ledger(files, run):
    Path("key").write_bytes(b"0123456789abcdef0123")
    run(*learn("train.csv"), "--ledger-key", "key", "-o", "m")
    ledger = json.loads(run("info", "m", "--json").stdout)["ledger"]
    assert (ledger["by"], ledger["rows"], ledger["keys"][0]["in_model"]) == ("content", 310, False)
    name = ledger["keys"][0]["id"]
    assert f"ledger     310 rows by content, key {name} (kept elsewhere)" in run("info", "m").stdout.splitlines()


# -- diff --
def test_diff_tells_classes_counts_and_settings(files, run):
    run(*learn("train.csv"), "--gamma", 0.5, "-o", "a")
    run("forget", "a", "--class", 3, "-o", "b")
    run(*learn("train.csv"), "--gamma", 2, "--store", "shared", "--ledger", "-o", "c")
    found = json.loads(run("diff", "a", "b", "--json").stdout)
    assert found["classes"] == [{"label": 3, "a": 40, "b": 0}]
    assert (found["rows"], found["n_classes"], found["settings"]) == ([310, 270], [10, 9], {})
    assert found["is_related"]
    a, b = AIRClassifier.load("a"), AIRClassifier.load("b")
    kept = np.arange(10) != 3
    expected = np.linalg.norm(b.coef_ - a.coef_[kept]) / np.linalg.norm(a.coef_[kept])
    assert found["weights"] == pytest.approx(expected)
    other = json.loads(run("diff", "a", "c", "--json").stdout)
    assert other["classes"] == []
    assert not other["is_related"]
    assert other["settings"] == {
        "gamma": [0.5, 2.0],
        "store": ["per-class", "shared"],
        "ledger": [None, True],
        "ledger rows": [None, 310],
        "chosen gamma": [0.5, 2.0],
    }
    shown = run("diff", "a", "b").stdout
    assert ["3", "40", "0", "-40"] in [line.split() for line in shown.splitlines()]
    assert "% apart" in shown
    assert "The counts of all classes are the same." in run("diff", "a", "c").stdout


def test_diff_tells_the_accuracy_to_expect(files, run, digits):
    X, y, _, _ = digits
    for name, gamma in (("a", 0.5), ("b", 50.0)):
        AIRClassifier(gamma, calibrate=True).fit(X, y).save(name)
    found = json.loads(run("diff", "a", "b", "--json").stdout)
    expected = [AIRClassifier.load(name).expected_accuracy().overall for name in ("a", "b")]
    assert found["expected_accuracy"] == pytest.approx(expected)
    assert "expected accuracy" in run("diff", "a", "b").stdout


def test_diff_of_models_that_have_nothing_in_common(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    AIRClassifier(0.5).fit(np.eye(3), ["x", "y", "z"]).save("a")
    AIRClassifier(0.5).fit(np.eye(2), [0, 1]).save("b")
    AIRClassifier(0.5).save("empty")
    for other in ("b", "empty"):
        found = json.loads(run("diff", "a", other, "--json").stdout)
        assert found["weights"] is None
        assert len(found["classes"]) == (5 if other == "b" else 3)
        run("diff", "a", other)
