"""What a review found, each as a test: numbers that were lost, parameters that were forgotten, memory that was not."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import FunctionTransformer

from aircl import AEFOCLClassifier, AIRClassifier, RecursiveACILClassifier, StoreError
from aircl.engine import Space
from aircl.engine.backend import NumpyBackend
from aircl.engine.memory import available_memory
from aircl.engine.statistics import OnePerClass

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}


def two_classes(f, n_first, n_second, dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_first + n_second, f)).astype(dtype)
    y = np.repeat([0, 1], [n_first, n_second])
    X[y == 1] += 0.5
    return X, y


@pytest.mark.parametrize("weighting", ["inverse", 1.5, 2.0])
@pytest.mark.parametrize("f", [64, 256])
def test_a_prediction_in_between_costs_no_digits(f, weighting):
    """A class of one row, a prediction, then thousands of rows of it: its weight falls by as much."""
    X, y = two_classes(f, 9000, 4001, np.float32)
    watched = AIRClassifier(1.0, weighting=weighting, **PAPER)
    watched.partial_fit(X[:9001], y[:9001])
    watched.predict(X[:5])
    watched.partial_fit(X[9001:], y[9001:])
    alone = AIRClassifier(1.0, weighting=weighting, **PAPER).fit(X.astype(np.float64), y)
    error = np.linalg.norm(watched.coef_ - alone.coef_) / np.linalg.norm(alone.coef_)
    assert error < 2e-6


def test_a_gamma_that_was_searched_for_other_weights_is_not_taken_from_a_file(tmp_path):
    X, y = two_classes(8, 200, 20, np.float64)
    clf = AIRClassifier(**PAPER).fit(X, y)
    clf.predict(X)
    clf.set_params(scale="none")
    clf.save(tmp_path / "m")
    assert AIRClassifier.load(tmp_path / "m").gamma_ == pytest.approx(clf.gamma_)


def test_a_refused_change_of_gamma_changes_nothing_and_parameters_are_followed():
    X, y = two_classes(8, 50, 20, np.float64)
    clf = RecursiveACILClassifier(0.5).fit(X, y)
    before = clf.coef_.copy()
    with pytest.raises(ValueError, match="gamma=-1"):
        clf.change_gamma(-1)
    assert clf.gamma == 0.5
    np.testing.assert_array_equal(clf.coef_, before)
    expected = RecursiveACILClassifier(3.0).fit(X, y).coef_
    np.testing.assert_allclose(clf.set_params(gamma=3.0).coef_, expected, rtol=1e-9)
    np.testing.assert_allclose(clf.partial_fit(X[:3], y[:3]).change_gamma(2.0).gamma, 2.0)


def test_a_recursion_goes_on_from_a_file_whatever_gamma_was_set(tmp_path):
    X, y = two_classes(8, 50, 20, np.float64)
    clf = RecursiveACILClassifier(0.5).fit(X[:40], y[:40]).set_params(gamma=3.0)
    clf.save(tmp_path / "m")
    loaded = RecursiveACILClassifier.load(tmp_path / "m").partial_fit(X[40:], y[40:])
    np.testing.assert_allclose(loaded.coef_, RecursiveACILClassifier(3.0).fit(X, y).coef_, rtol=1e-8, atol=1e-12)


def test_a_merge_that_no_prediction_could_follow_is_refused():
    X, y = two_classes(6, 20, 10, np.float64)
    mine = AIRClassifier(0.5, weighting={0: 1.0, 1: 2.0}, **PAPER).fit(X, y)
    for receiver in (mine, AIRClassifier(0.5, weighting={0: 1.0, 1: 2.0}, **PAPER)):
        with pytest.raises(ValueError, match="no weight for the classes"):
            receiver.merge(AIRClassifier(0.5, **PAPER).fit(X, y + 1))
    assert mine.predict(X).shape == y.shape


@pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
@pytest.mark.parametrize("scale", [1e-14, 1e-8, 1e8, 1e13])
def test_gamma_is_chosen_alike_at_every_scale(store, scale):
    X, y = two_classes(20, 200, 15, np.float32)
    plain, scaled = (
        AIRClassifier(store=store, **PAPER).fit(X, y),
        AIRClassifier(store=store, **PAPER).fit(X * np.float32(scale), y),
    )
    assert scaled.gamma_ / plain.gamma_ == pytest.approx(scale**2, rel=0.02)
    at = np.argmin(scaled.gamma_path_.criterion)
    assert 0 < at < len(scaled.gamma_path_.gamma) - 1
    assert np.mean(scaled.predict(X * np.float32(scale)) == plain.predict(X)) > 0.99


@pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
def test_features_that_would_vanish_are_refused(store):
    X, y = two_classes(6, 40, 40, np.float32)
    clf = AIRClassifier(store=store, **PAPER)
    with pytest.raises(ValueError, match="Scale the features up"):
        clf.fit(X * np.float32(1e-30), y)
    assert not clf.__sklearn_is_fitted__()
    clf.fit(X, y).partial_fit(X[:5] * np.float32(1e-30), y[:5])  # beside others they are just small
    assert clf.class_count_.sum() == 85


@pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
@pytest.mark.parametrize("size", [1e-160, 1e-30, 1e30, 1e160])
def test_class_weights_of_any_size_give_the_same_classifier(store, size):
    X, y = two_classes(6, 40, 10, np.float32)
    expected = AIRClassifier(0.5, store=store, weighting={0: 1.0, 1: 3.0}, **PAPER).fit(X, y)
    clf = AIRClassifier(0.5, store=store, weighting={0: size, 1: 3 * size}, **PAPER).fit(X, y)
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-5, atol=1e-7)


def test_pooled_refuses_to_fold_weights_beyond_its_range():
    X, y = two_classes(6, 40, 10, np.float32)
    clf = AIRClassifier(0.5, store="pooled", weighting={0: 1e-160, 1: 1e-160}, **PAPER).fit(X, y)
    before = clf.coef_.copy()
    with pytest.raises(StoreError, match="cannot fold"):
        clf.end_phase()
    np.testing.assert_array_equal(clf.coef_, before)


def test_loading_looks_at_every_class_once(monkeypatch):
    """Room is counted as classes come, not anew for every one of them."""
    from aircl.engine.moments import SecondMoment

    asked, nbytes = [0], SecondMoment.nbytes.fget
    monkeypatch.setattr(
        SecondMoment, "nbytes", property(lambda self: (asked.__setitem__(0, asked[0] + 1), nbytes(self))[1])
    )
    space = Space(4, np.float64)
    per_class = []
    for n in (50, 500):
        asked[0] = 0
        OnePerClass("moment").restored({f"moment.{slot}": np.ones((1, 4)) for slot in range(n)}, space, n)
        per_class.append(asked[0] / n)
    assert per_class[1] == pytest.approx(per_class[0], rel=0.1)


def test_available_memory_is_what_is_left_in_every_group_around_the_process(tmp_path):
    groups, own = tmp_path / "cgroup", tmp_path / "own"
    inner = groups / "outer" / "inner"
    inner.mkdir(parents=True)
    own.write_text("0::/outer/inner\n")
    alone = available_memory(groups, own)
    (inner / "memory.max").write_text("max\n")
    (inner / "memory.current").write_text("1\n")
    (groups / "outer" / "memory.max").write_text("5000000\n")
    (groups / "outer" / "memory.current").write_text("3000000\n")
    assert available_memory(groups, own) == 2_000_000 < alone
    old = groups / "memory" / "job"
    old.mkdir(parents=True)
    own.write_text("7:cpu:/job\n3:memory,hugetlb:/job\n")
    (old / "memory.limit_in_bytes").write_text("900000")
    (old / "memory.usage_in_bytes").write_text("400000")
    assert available_memory(groups, own) == 500_000


def test_a_limit_that_is_set_later_is_kept_from_the_next_batch_on(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rng = np.random.default_rng(0)
    f, C = 100, 12
    X, y = rng.normal(size=(1200, f)), np.arange(1200) % C
    clf = AIRClassifier(0.5, **PAPER).fit(X, y).end_phase()
    before = clf.coef_.copy()
    with pytest.raises(ValueError, match="Raise memory_limit"):
        clf.set_params(memory_limit="1KB").partial_fit(X[:3], y[:3])
    limit = Space(f, np.float64).workspace_bytes + 3 * f * (f + 1) * 4
    clf.set_params(memory_limit=limit)
    np.testing.assert_array_equal(clf.coef_, before)
    with pytest.warns(UserWarning, match="memory_limit"):
        clf.partial_fit(X, y).end_phase()
    assert clf._learner.state.statistics.moments.nbytes <= limit - Space(f, np.float64).workspace_bytes
    again = AIRClassifier(0.5, **PAPER).fit(np.concatenate([X, X]), np.concatenate([y, y]))
    np.testing.assert_allclose(clf.coef_, again.coef_, rtol=1e-9, atol=1e-12)


def test_forgetting_rows_keeps_the_memory_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rng = np.random.default_rng(0)
    f, C = 100, 12
    X, y = rng.normal(size=(1200, f)), np.arange(1200) % C
    limit = Space(f, np.float64).workspace_bytes + 3 * f * (f + 1) * 4
    with pytest.warns(UserWarning, match="memory_limit"):
        clf = AIRClassifier(0.5, memory_limit=limit, **PAPER).fit(X, y).end_phase()
    clf.forget(X[: 2 * C], y[: 2 * C])
    assert clf._learner.state.statistics.moments.nbytes <= limit - Space(f, np.float64).workspace_bytes
    expected = Ridge(alpha=0.5, fit_intercept=False).fit(
        X[2 * C :], np.eye(C)[y[2 * C :]], sample_weight=clf.class_weight_[y[2 * C :]]
    )
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-7, atol=1e-10)


def first_three(X):
    return X[:, :3]


def test_aef_ocl_forgets_all_of_a_row_or_nothing():
    """The expanded features of these rows were learned, their inputs were not: one part accepts, the other refuses."""
    X, y = two_classes(5, 30, 12, np.float64)
    clf = AEFOCLClassifier(0.5, expansion=FunctionTransformer(first_three)).fit(X, y)
    before, count = clf.coef_.copy(), clf.class_count_.copy()
    wrong = X[:4].copy()
    wrong[:, 4] += 100.0
    with pytest.raises(StoreError, match="Nothing was changed"):
        clf.forget(wrong, y[:4])
    np.testing.assert_array_equal(clf.class_count_, count)
    np.testing.assert_array_equal(clf.refresh().coef_, before)
    expected = AEFOCLClassifier(0.5, expansion=FunctionTransformer(first_three)).fit(X[4:], y[4:])
    np.testing.assert_allclose(clf.forget(X[:4], y[:4]).coef_, expected.coef_, rtol=1e-8)


def statistics_of_one_class(X):
    clf = AIRClassifier(1.0, **PAPER).fit(X, np.zeros(len(X), int))
    arrays = clf._learner.sealed().statistics.arrays()
    return arrays["center"][0], arrays["moment.0"]


def test_two_rows_are_determined_by_their_statistics():
    """What the page on privacy says: 2 A - s's has one direction, the difference of the rows."""
    X = np.random.default_rng(0).normal(size=(2, 40))
    s, R = statistics_of_one_class(X)
    eigenvalues, V = np.linalg.eigh(2 * R.T @ R - np.outer(s, s))
    difference = np.sqrt(eigenvalues[-1]) * V[:, -1]
    found = np.array([s + difference, s - difference]) / 2
    np.testing.assert_allclose(found if found[0] @ X[0] > found[1] @ X[0] else found[::-1], X, atol=1e-7)


def test_three_rows_are_determined_up_to_a_rotation_which_knowledge_of_their_signs_tells():
    X = np.maximum(np.random.default_rng(0).normal(size=(3, 40)), 0)
    s, R = statistics_of_one_class(X)
    assert not any(np.allclose(row, held, atol=0.1) for row in X for held in R)  # by itself, the file has no row
    around = np.linalg.lstsq(R.T, s, rcond=None)[0]  # U'1 of every U for which the rows of UR add up to s
    basis, target = (np.linalg.qr(np.column_stack([v, np.eye(3)[:, :2]]))[0] for v in (around, np.ones(3)))
    basis[:, 0], target[:, 0] = around / np.linalg.norm(around), np.ones(3) / np.sqrt(3)
    turns = np.exp(1j * np.linspace(0, 2 * np.pi, 3600, endpoint=False))
    candidates = []
    for flip in (1.0, -1.0):
        for turn in turns:
            inner = np.eye(3)
            inner[1:, 1:] = [[turn.real, -turn.imag * flip], [turn.imag, turn.real * flip]]
            candidates.append(target @ inner @ basis.T @ R)
    found = min(candidates, key=lambda rows: -rows.clip(max=0).sum())
    closest = [min(np.abs(row - true).max() for row in found) for true in X]
    assert max(closest) < 0.01
    np.testing.assert_allclose(candidates[0].sum(0), s, atol=1e-8)  # any other one fits the statistics as well
    np.testing.assert_allclose(moment_of(candidates[700]), moment_of(X), atol=1e-8)


def moment_of(X):
    return X.T @ X


@pytest.mark.parametrize("calibrate", [False, True])
def test_probabilities_need_no_second_decomposition(monkeypatch, calibrate):
    made = []
    for name in ("cholesky", "eigh"):
        kernel = getattr(NumpyBackend, name)
        monkeypatch.setattr(
            NumpyBackend, name, lambda self, *given, kernel=kernel: (made.append(1), kernel(self, *given))[1]
        )
    X, y = two_classes(30, 100, 20, np.float64)
    clf = AIRClassifier(expansion=None, calibrate=calibrate).fit(X, y)
    clf.predict(X)
    n_made = len(made)
    clf.predict_proba(X)
    assert len(made) == n_made == len(clf.gamma_path_.gamma)
