"""Clients write statistics, a server merges files that it did not produce: what it gets is the model of all rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from aircl import AIRClassifier
from aircl.classifiers.file import read_header


def deal(y, how):
    """Return the rows of each client."""
    rows = np.arange(len(y))
    if how == "disjoint classes":
        return [rows[y < 4], rows[(y >= 4) & (y < 9)], rows[y == 9]]
    if how == "overlapping classes":
        return [rows[y < 6][::2], rows[y < 6][1::2], rows[y >= 6]]
    if how == "one sample":
        return [rows[:1], rows[1:2], rows[2:]]
    return [rows[:0], rows[::2], rows[:0], rows[1::2]]  # some have none


HOWS = ["disjoint classes", "overlapping classes", "one sample", "none"]


@pytest.fixture(params=HOWS)
def clients(request, digits, tmp_path, monkeypatch):
    X, y, *_ = digits
    monkeypatch.chdir(tmp_path)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    dealt = deal(y, request.param)
    for client, rows in enumerate(dealt):
        np.savez(f"client{client}.npz", X=X[rows], y=y[rows])
    return X, y, len(dealt)


@pytest.mark.parametrize("engine", [[], ["--engine", "joblib", "--workers", 1]])
@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_the_server_has_the_model_of_all_rows(store, engine, clients, run):
    X, y, n = clients
    for client in range(n):
        data, settings = f"client{client}.npz", ["--store", store, "--gamma", 0.1, *engine]
        run("learn", data, "--label", "y", *settings, "--statistics-only", "-o", f"{client}")
    for order in (range(n), reversed(range(n))):
        run("merge", *order, "-o", "all")
        merged = AIRClassifier.load("all")
        fitted = AIRClassifier(0.1, store=store).fit(X, y)
        np.testing.assert_array_equal(merged.class_count_, fitted.class_count_)
        np.testing.assert_allclose(merged.coef_, fitted.coef_, rtol=1e-9, atol=1e-9 * np.abs(fitted.coef_).max())
    if store == "per-class":
        oracle = Ridge(alpha=0.1, fit_intercept=False, solver="cholesky")
        oracle.fit(merged.expansion_.transform(X), np.eye(10)[y], sample_weight=merged.class_weight_[y])
        np.testing.assert_allclose(merged.coef_, oracle.coef_, rtol=1e-7, atol=1e-9)


def test_statistics_have_no_gamma_and_the_server_chooses_it(files, digits, run):
    X, y, *_ = digits
    for i in range(2):
        np.savez(f"{i}.npz", X=X[i::2], y=y[i::2])
        result = run("learn", f"{i}.npz", "--label", "y", "--statistics-only", "-o", f"{i}", "--json")
        assert json.loads(result.stdout)["gamma"] is None
        assert "statistics only, in" in result.stderr
        assert read_header(files / f"{i}")["learned"]["gamma"] is None
    run("merge", "0", "1", "-o", "all")
    assert read_header(files / "all")["learned"]["gamma"] is not None
    assert AIRClassifier.load("all").gamma_ == pytest.approx(AIRClassifier().fit(X, y).gamma_)


def test_all_clients_may_have_nothing(files, run):
    (files / "empty.csv").write_text("y,a,b\n")
    assert "nothing to learn" in run("learn", "empty.csv", "--label", "y", "-o", "m", code=1).stderr
    for engine in ([], ["--engine", "joblib", "--workers", 1]):
        result = run("learn", "empty.csv", "--label", "y", "--statistics-only", "-o", "m", *engine, "--json")
        assert json.loads(result.stdout)["rows"] == 0
    run("learn", "empty.csv", "--label", "y", "--statistics-only", "-o", "n")
    assert json.loads(run("merge", "m", "n", "-o", "all", "--json").stdout)["classes"] == 0


def test_what_a_file_reveals_of_a_class_of_one_or_two_samples(files, digits, run):
    """The page about it says: everything. From the file alone, the samples come back."""
    X, y, *_ = digits
    one, two = X[:1], X[:2] * [[1.0], [0.5]]
    np.savez("few.npz", X=np.vstack([one, two, X]), y=np.concatenate([[100], [200, 200], y]))
    run("learn", "few.npz", "--label", "y", "--expand", "none", "--statistics-only", "-o", "m")
    model = AIRClassifier.load("m")
    slot = model._learner.state.labels.seen.tolist().index
    arrays = model._learner.sealed().statistics.arrays()
    np.testing.assert_allclose(arrays["center"][slot(100)], one[0], atol=1e-12)
    # Of two: the mean m, and the direction and length of the scatter around it, A - 2 m'm = d'd / 2 with x = m -+ d/2.
    mean = arrays["center"][slot(200)] / 2
    R = arrays[f"moment.{slot(200)}"]
    values, vectors = np.linalg.eigh(R.T @ R - 2 * np.outer(mean, mean))
    half = vectors[:, -1] * np.sqrt(values[-1] / 2)
    found = np.array(sorted([mean + half, mean - half], key=lambda row: row.sum()))
    np.testing.assert_allclose(found, two[np.argsort(two.sum(1))], atol=1e-7)


def test_continuations_of_one_model_cannot_be_merged(files, digits, run):
    X, y, *_ = digits
    for i in range(3):
        np.savez(f"{i}.npz", X=X[i::3], y=y[i::3])
    run("learn", "0.npz", "--label", "y", "-o", "start")
    for i in (1, 2):
        run("learn", f"{i}.npz", "--label", "y", "--append", "start", "-o", f"went-on-{i}")
    assert "counted twice" in run("merge", "went-on-1", "went-on-2", "-o", "x", code=1).stderr
