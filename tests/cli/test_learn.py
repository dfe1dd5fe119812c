from __future__ import annotations

import json
import weakref

import numpy as np
import pytest

from aircl import ACILClassifier, AIRClassifier, RandomReLU
from aircl.data.arrays import Source


def load(path, cls=AIRClassifier):
    return cls.load(path)


def assert_same(model, reference):
    np.testing.assert_array_equal(model.classes_, reference.classes_)
    np.testing.assert_allclose(model.class_count_, reference.class_count_)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9, atol=1e-9)


def test_equals_the_classifier_fitted_in_memory_for_every_file_type(written, digits, run, tmp_path):
    X, y, *_ = digits
    run("learn", written(X, y), "--label", "y", "--gamma", 0.1, "--batch", 57, "-o", tmp_path / "m")
    assert_same(load(tmp_path / "m"), AIRClassifier(0.1).fit(X, y))


def test_equals_the_classifier_fitted_in_memory_over_several_files(written, digits, run, tmp_path):
    X, y, *_ = digits
    for i in range(3):
        written(X[i::3], y[i::3], f"part-{i}")
    written(X, y, "other")
    run("learn", tmp_path / "part-*", "--label", "y", "--gamma", 0.1, "-o", tmp_path / "m")
    assert_same(load(tmp_path / "m"), AIRClassifier(0.1).fit(X, y))


def test_files_of_different_types_are_learned_together(files, digits, run):
    X, y, *_ = digits
    run("learn", "train.csv", "train.npz", "--label", "y", "--gamma", 0.1, "-o", "m")
    assert_same(load("m"), AIRClassifier(0.1).fit(np.vstack([X, X]), np.concatenate([y, y])))


@pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
def test_the_options_are_those_of_the_classifier(store, files, digits, run):
    X, y, *_ = digits
    options = ("--store", store, "--gamma", 0.3, "--weighting", 0.5, "--scale", "balanced", "--expand", 50, "--seed", 3)
    run("learn", "train.npz", "--label", "y", *options, "-o", "m")
    expansion = RandomReLU(50, random_state=3)
    reference = AIRClassifier(0.3, weighting=0.5, scale="balanced", store=store, expansion=expansion).fit(X, y)
    assert_same(load("m"), reference)
    assert load("m").store == store


def test_acil_gamma_auto_and_float32(files, digits, run):
    X, y, *_ = digits
    run("learn", "train.npz", "--label", "y", "--method", "acil", "--dtype", "float32", "-o", "m")
    model = load("m", ACILClassifier)
    reference = ACILClassifier().fit(X.astype(np.float32), y)
    assert model.gamma == "auto"
    assert model.gamma_ == pytest.approx(reference.gamma_)
    assert model.coef_.dtype == np.float32
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-5)


@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_append_goes_on_where_the_model_stopped(store, written, digits, run, tmp_path):
    X, y, *_ = digits
    first, second = written(X[::2], y[::2], "first"), written(X[1::2], y[1::2], "second")
    run("learn", first, "--label", "y", "--gamma", 0.1, "--store", store, "-o", tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    run("learn", second, "--label", "y", "--append", tmp_path / "a", "-o", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == before
    assert_same(load(tmp_path / "b"), AIRClassifier(0.1, store=store).fit(X, y))


def test_a_run_is_a_phase_of_a_pooled_model(files, digits, run):
    X, y, *_ = digits
    np.savez("low.npz", X=X[y < 5], y=y[y < 5])
    np.savez("high.npz", X=X[y >= 5], y=y[y >= 5])
    run("learn", "low.npz", "--label", "y", "--store", "pooled", "--gamma", 0.1, "-o", "a")
    run("learn", "high.npz", "--label", "y", "--append", "a", "-o", "b")
    assert_same(load("b"), AIRClassifier(0.1).fit(X, y))
    result = run("learn", "low.npz", "--label", "y", "--append", "b", "-o", "c", code=1)
    assert "low.npz, rows 1 to" in result.stderr


def test_no_batch_is_larger_than_asked_for_and_none_is_kept(written, run, tmp_path, monkeypatch):
    path = written(np.random.default_rng(0).normal(size=(3000, 4)), np.arange(3000) % 3)
    original, sizes, alive = Source.batches, [], []

    def watched(self, size, kind=None):
        for batch in original(self, size, kind):
            rows = batch.X if batch.X.base is None else batch.X.base  # what is held, where X is only a view of it
            sizes.append((len(batch.X), len(batch.y), rows.nbytes))
            alive.append(weakref.ref(batch.X))
            yield batch

    monkeypatch.setattr(Source, "batches", watched)
    original_fit = AIRClassifier.partial_fit

    def fit(self, X, y):
        assert sum(ref() is not None for ref in alive) <= 2  # this batch, and the last until its name is bound anew
        return original_fit(self, X, y)

    monkeypatch.setattr(AIRClassifier, "partial_fit", fit)
    run("learn", path, "--label", "y", "--batch", 100, "-o", tmp_path / "m")
    assert sum(rows for rows, _, _ in sizes) == 3000
    assert all(rows <= 100 and labels == rows and held <= 100 * 4 * 8 for rows, labels, held in sizes)


def test_string_labels(files, digits, run):
    X, y, *_ = digits
    words = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[y]
    np.savez("words.npz", X=X, y=words)
    run("learn", "words.npz", "--label", "y", "--gamma", 1, "-o", "m")
    assert_same(load("m"), AIRClassifier(1.0).fit(X, words))


def test_the_type_of_labels_is_decided_by_all_files(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("y,u,v\n1,0.5,1\n2,1,0\n")
    (tmp_path / "b.csv").write_text("y,u,v\n1,0.5,1\nx7,1,0\n")
    run("learn", "a.csv", "--label", "y", "-o", "numbers")
    run("learn", "a.csv", "b.csv", "--label", "y", "--batch", 1, "-o", "words")
    assert load("numbers").classes_.tolist() == [1, 2]
    assert load("words").classes_.tolist() == ["1", "2", "x7"]
    assert "'x7'" in run("learn", "b.csv", "--label", "y", "--append", "numbers", "-o", "c", code=1).stderr
    run("learn", "a.csv", "--label", "y", "--append", "words", "-o", "words")
    assert load("words").class_count_.tolist() == [3, 2, 1]


def test_columns_are_matched_by_name(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("y,u,v\na,0.5,1\nb,1,0\n")
    (tmp_path / "b.csv").write_text("v,id,y,u\n1,17,a,0.5\n0,18,b,1\n")
    (tmp_path / "c.csv").write_text("y,u,w\na,0.5,1\nb,1,0\n")
    result = run("learn", "a.csv", "b.csv", "--label", "y", "--gamma", 1, "-o", "m")
    assert "not features of the model: id" in result.stderr
    assert load("m").feature_names_in_.tolist() == ["u", "v"]
    assert_same(load("m"), AIRClassifier(1.0).fit([[0.5, 1], [1, 0]] * 2, list("abab")))
    assert "lacks 1 of the 2 features" in run("learn", "a.csv", "c.csv", "--label", "y", "-o", "n", code=1).stderr
    run("learn", "b.csv", "--label", "y", "--append", "m", "-o", "m")
    assert load("m").feature_names_in_.tolist() == ["u", "v"]
    np.testing.assert_array_equal(load("m").class_count_, [3, 3])


def test_a_model_begun_without_names_stays_without(files, digits, run):
    X, y, *_ = digits
    run("learn", "train.npz", "--label", "y", "--gamma", 1, "-o", "m")
    run("learn", "train.csv", "--label", "y", "--append", "m", "-o", "m")
    assert not hasattr(load("m"), "feature_names_in_")
    assert_same(load("m"), AIRClassifier(1.0).fit(np.vstack([X, X]), np.concatenate([y, y])))


def test_features_by_pattern(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("y,e_1,name,e_2,z\na,0.5,p,1,9\nb,1,q,0,9\n")
    assert "'name' holds 'p'" in run("learn", "a.csv", "--label", "y", "-o", "m", code=1).stderr
    run("learn", "a.csv", "--label", "y", "--features", "z,e_*", "-o", "m")
    assert load("m").feature_names_in_.tolist() == ["z", "e_1", "e_2"]


def test_json_is_all_there_is_on_stdout(files, run):
    result = run("learn", "train.npz", "--label", "y", "--json", "-o", "m")
    summary = json.loads(result.stdout)
    assert summary | {"seconds": 0} == {
        "model": "m",
        "files": 1,
        "rows": 310,
        "seconds": 0,
        "classes": 10,
        "features": 64,
        "gamma": load("m").gamma_,
    }
    assert result.stderr.startswith("Learned 310 rows of 1 file in ")
    assert result.stderr.count("\n") == 1
    assert run("learn", "train.npz", "--label", "y", "--quiet", "-o", "m").output == ""


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--gamma", "much"], "--gamma"),
        (["--weighting", "fair"], "--weighting"),
        (["--store", "disk"], "--store"),
        (["--expand", "none", "--seed", "1"], "--seed"),
        (["--expand", "wide"], "--expand"),
        (["--expand", "0"], "--expand"),
        (["--method", "acil", "--scale", "none"], "--scale"),
        (["--batch", "0"], "--batch"),
        (["--append", "m", "--store", "shared"], "--store"),
        (["--append", "m", "--no-calibrate"], "--calibrate"),
    ],
)
def test_wrong_usage(options, part, files, run):
    result = run("learn", "train.npz", "--label", "y", *options, "-o", "x", code=2)
    assert part in result.stderr
    assert result.stdout == ""
    assert not (files / "x").exists()


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (["absent.csv"], "absent.csv does not exist"),
        (["no*.csv"], "no file matches 'no*.csv'"),
        (["train.npz", "./train.npz"], "more than once"),
        (["train.npz", "--features", "Z"], "no array 'Z'"),
        (["train.csv", "--features", "q_*"], "'q_*' of --features"),
        (["train.npz", "--append", "train.npz"], "not a whole safetensors file"),
        (["train.npz", "--append", "absent"], "absent does not exist"),
        (["train.npz", "-o", "train.npz"], "would replace"),
        (["train.npz", "-o", "absent/m"], "cannot write"),
        (["train.npz", "--gamma", "-1"], "gamma=-1.0 is not possible"),
        (["empty.csv"], "nothing to learn"),
        (["nan.csv"], "nan.csv, row 2, feature 'px0': nan is not a finite number"),
        (["train.npz", "narrow.csv"], "narrow.csv has 1 features, but 64 in train.npz"),
    ],
)
def test_problems_are_one_message_and_exit_code_1(args, part, files, run):
    (files / "empty.csv").write_text("y,px0\n")
    (files / "nan.csv").write_text("y,px0\n1,0.5\n2,nan\n")
    (files / "narrow.csv").write_text("y,px0\n1,0.5\n")
    before = set(files.iterdir())
    result = run("learn", *args[:1], "--label", "y", "-o", "x", *args[1:], code=1)
    assert part in result.stderr
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert set(files.iterdir()) == before


def test_the_defaults_are_those_of_the_classifier_and_can_be_turned_off(files, digits, run):
    X, y = digits[:2]
    run("learn", "train.npz", "--label", "y", "-o", "m")
    model = load("m")
    assert (model.expansion, model.calibrate) == ("auto", True)
    np.testing.assert_allclose(model.predict_proba(X), AIRClassifier().fit(X, y).predict_proba(X), atol=1e-3)
    run("learn", "train.npz", "--label", "y", "--expand", "none", "--no-calibrate", "-o", "m")
    assert_same(load("m"), AIRClassifier(expansion=None, calibrate=False).fit(X, y))
    run("learn", "train.npz", "--label", "y", "--seed", 3, "--gamma", 0.1, "-o", "m")
    assert load("m").expansion_.seed_ == 3
    assert_same(load("m"), AIRClassifier(0.1, random_state=3).fit(X, y))
