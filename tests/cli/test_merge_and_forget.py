from __future__ import annotations

import json

import numpy as np
import pytest

from aircl import ACILClassifier, AIRClassifier


def assert_same(path, reference):
    model = type(reference).load(path)
    np.testing.assert_array_equal(model.classes_, reference.classes_)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9, atol=1e-9)


@pytest.fixture
def parts(files, digits, run):
    X, y, *_ = digits
    for i in range(3):
        np.savez(f"{i}.npz", X=X[i::3], y=y[i::3])
        run("learn", f"{i}.npz", "--label", "y", "--gamma", 0.1, "-o", f"{i}")
    return files


def test_merge_is_learning_everything_together(parts, digits, run):
    result = run("merge", "0", "1", "2", "-o", "all")
    assert_same("all", AIRClassifier(0.1).fit(*digits[:2]))
    assert result.stdout == ""
    assert result.stderr == "Merged 3 models: 310 rows, 10 classes, in all.\n"
    summary = json.loads(run("merge", "2", "0", "-o", "all", "--json").stdout)
    assert summary == {"model": "all", "merged": 2, "rows": 207, "classes": 10}


def test_models_of_expanded_features_can_be_merged(parts, digits, run):
    for i in range(2):
        run("learn", f"{i}.npz", "--label", "y", "--expand", 30, "-o", f"e{i}")
    run("merge", "e0", "e1", "-o", "e")
    assert AIRClassifier.load("e").class_count_.sum() == 207


def test_unlike_does_not_merge_with_unlike(parts, run):
    run("merge", "0", "1", "-o", "01")
    assert "counted twice" in run("merge", "01", "1", "-o", "x", code=1).stderr
    run("learn", "1.npz", "--label", "y", "--store", "shared", "-o", "shared")
    assert "shared: cannot merge" in run("merge", "0", "shared", "-o", "x", code=1).stderr
    run("learn", "1.npz", "--label", "y", "--method", "acil", "-o", "acil")
    assert "acil is of the class ACILClassifier" in run("merge", "0", "acil", "-o", "x", code=1).stderr
    run("merge", "0", "-o", "x", code=2)
    assert not (parts / "x").exists()


def test_a_merge_that_no_prediction_could_follow_is_refused(parts, digits, run):
    """A mapping of class weights that lacks a class of the other model."""
    X, y, *_ = digits
    AIRClassifier(0.1, weighting={label: 1.0 for label in range(5)}).fit(X[y < 5], y[y < 5]).save("few")
    assert "no weight for the classes [5, 6, 7, 8, 9]" in run("merge", "few", "1", "-o", "x", code=1).stderr
    assert not (parts / "x").exists()


def test_forget_classes(parts, digits, run):
    X, y, *_ = digits
    run("learn", "train.csv", "--label", "y", "--gamma", 0.1, "-o", "m")
    before = (parts / "m").read_bytes()
    result = run("forget", "m", "--class", 3, "--class", 8, "-o", "less", "--json")
    keep = (y != 3) & (y != 8)
    assert_same("less", AIRClassifier(0.1).fit(X[keep], y[keep]))
    assert json.loads(result.stdout) == {"model": "less", "forgotten": 45, "rows": 265, "classes": 8}
    assert (parts / "m").read_bytes() == before
    assert AIRClassifier.load("less").feature_names_in_[1] == "px1"
    run("forget", "m", "--class", 3, "-o", "m")
    assert 3 not in AIRClassifier.load("m").classes_


@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_forget_rows(store, parts, digits, run):
    X, y, *_ = digits
    run("learn", "train.csv", "--label", "y", "--gamma", 0.1, "--store", store, "-o", "m")
    result = run("forget", "m", "0.npz", "--label", "y", "--batch", 20, "-o", "less")
    keep = np.arange(len(y)) % 3 > 0
    model, reference = AIRClassifier.load("less"), AIRClassifier(0.1, store=store).fit(X[keep], y[keep])
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-7, atol=1e-7)
    assert model.feature_names_in_[1] == "px1"
    assert result.stderr == "Forgot 104 rows; 206 rows of 10 classes are left, in less.\n"


def test_everything_can_be_forgotten_and_learned_again(parts, run):
    run("forget", "0", "0.npz", "--label", "y", "-o", "nothing")
    info = json.loads(run("info", "nothing", "--json").stdout)
    assert info["rows"] == 0
    assert info["classes"] == []
    assert "rows" in run("info", "nothing").stdout
    assert "has no classes" in run("predict", "nothing", "test.csv", code=1).stderr
    assert "has no classes" in run("evaluate", "nothing", "test.csv", "--label", "y", code=1).stderr
    assert "has no classes" in run("forget", "nothing", "--class", 1, "-o", "x", code=1).stderr
    run("learn", "0.npz", "--label", "y", "--append", "nothing", "-o", "again")
    np.testing.assert_allclose(AIRClassifier.load("again").coef_, AIRClassifier.load("0").coef_, atol=1e-9)


def test_labels_are_read_in_the_models_type(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("words.npz", X=np.eye(3), y=np.array(["1", "2", "x"]))
    np.savez("flags.npz", X=np.eye(2), y=np.array([True, False]))
    for name in ("words", "flags"):
        run("learn", f"{name}.npz", "--label", "y", "-o", name)
    run("forget", "words", "--class", 1, "-o", "words")
    assert AIRClassifier.load("words").classes_.tolist() == ["2", "x"]
    run("forget", "flags", "--class", "True", "-o", "flags")
    assert AIRClassifier.load("flags").classes_.tolist() == [False]


def test_what_cannot_be_forgotten(parts, run):
    (parts / "unlabelled.csv").write_text("a,b\n1,2\n")
    assert "no class 'cat'" in run("forget", "0", "--class", "cat", "-o", "x", code=1).stderr
    assert "train.npz, rows 1 to" in run("forget", "1", "train.npz", "--label", "y", "-o", "x", code=1).stderr
    run("forget", "0", "-o", "x", code=2)
    assert "no column 'y' for --label" in run("forget", "0", "unlabelled.csv", "-o", "x", code=1).stderr
    run("forget", "0", "0.npz", "--label", "y", "--class", 1, "-o", "x", code=2)
    run("learn", "0.npz", "--label", "y", "--method", "acil", "-o", "acil")
    assert ACILClassifier.load("acil").store == "shared"
    assert "shared" in run("forget", "acil", "--class", 1, "-o", "x", code=1).stderr
    assert not (parts / "x").exists()
