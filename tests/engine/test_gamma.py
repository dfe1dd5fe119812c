"""The criterion behind gamma="auto", term by term against plain linear algebra, and the search."""

import numpy as np
import pytest
from scipy.stats import norm

from aircl import AIRClassifier
from aircl.engine import Space
from aircl.engine import gamma as gamma_module
from aircl.engine.air import PerClass
from aircl.engine.backend import NumpyBackend
from aircl.engine.batch import sort_by_class
from aircl.engine.gamma import GRID, MAX_TRIALS_NEAR, STRIDES, Criterion, choose_gamma, descend
from aircl.engine.means import Shared
from aircl.engine.problem import Problem
from aircl.engine.problem import pooled_scatter_uncertainty as uncertainty_of


def make_problem(store_type, f=12, counts=(60, 9, 3, 1), seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    X = rng.normal(size=(len(y), f)) * rng.uniform(0.2, 2, f) + 2 * rng.normal(size=(len(counts), f))[y]
    store = store_type.empty(Space(f, np.float64)).padded(len(counts)).plus(sort_by_class(X, y, None))
    pi = 1 / store.count
    return X, y, Problem.of(store, pi, 1 / pi.mean())


def gamma_grid(problem):
    """The gammas that are searched."""
    return GRID * np.trace(problem.G) / len(problem.G)


def full(G):
    return np.tril(G) + np.tril(G, -1).T


def direct(X, y, problem, gamma, uncertainty):
    """Both terms by the formulas of the module's docstring, one class at a time."""
    n, pi, f, C = problem.count, problem.pi, X.shape[1], len(problem.count)
    M, K = problem.sums / n[:, None], np.linalg.inv(full(problem.G) + gamma * np.eye(f))
    W = K @ (problem.sums * pi[:, None]).T
    S_w = (X - M[y]).T @ (X - M[y]) / len(y)
    S, any_direction = (A * len(y) / (len(y) - C) for A in (S_w, np.trace(S_w) / f * np.eye(f)))
    h = (pi @ n) * np.trace(K @ S_w) / (len(y) - C)
    t = pi * ((1 - uncertainty) * np.trace(K @ S) / (1 - h) + uncertainty * np.trace(K @ any_direction))
    cov = W.T @ ((1 - uncertainty) * S / (1 - h) ** 2 + uncertainty * any_direction) @ W
    right, losses = [], []
    for c in range(C):
        at_mean = (1 + t[c]) * M[c] @ W - t[c] * np.eye(C)[c]
        rivals = [z for z in range(C) if z != c]
        sd = [np.sqrt(cov[c, c] + cov[z, z] - 2 * cov[c, z]) for z in rivals]
        right.append(np.prod(norm.cdf((at_mean[c] - at_mean[rivals]) / sd)))
        error, spread = np.square(np.eye(C)[c] - M[c] @ W).sum(), np.trace(W.T @ S_w @ W)
        of_mean, in_sample = pi[c] * M[c] @ K @ M[c], 1 - 1 / n[c]
        as_one = (error + spread) / (1 - of_mean - pi[c] * in_sample * np.trace(K @ S_w)) ** 2
        losses.append((as_one + error / (1 - of_mean) ** 2 + spread / (1 - h) ** 2) / 2)
    p = np.clip(np.mean(right), 1e-3, 1 - 1e-3)
    return np.log((1 - p) / p), np.mean(np.log(losses))


@pytest.mark.parametrize("uncertainty", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("store_type", "f"), [(PerClass, 12), (Shared, 3), (Shared, 12)])  # f below and above C
def test_the_criterion_is_the_formula(store_type, f, uncertainty):
    X, y, problem = make_problem(store_type, f)
    problem.__dict__["uncertainty"] = uncertainty  # in place of what it would be
    for gamma in gamma_grid(problem)[12::3]:  # where no leverage is near 1
        odds, error = direct(X, y, problem, gamma, uncertainty)
        found = Criterion(problem).at(gamma)
        np.testing.assert_allclose([found.error, found.criterion], [error, odds + error], rtol=1e-6)


def test_sign_vectors_tell_the_traces_where_the_leverage_is_small(monkeypatch):
    _, _, problem = make_problem(Shared, f=100, counts=(300, 120, 80, 60))
    gammas = gamma_grid(problem)
    exact = np.array([Criterion(problem).at(gamma).criterion for gamma in gammas])
    monkeypatch.setattr(gamma_module, "EXACT_WIDTH", 10)
    estimated = np.array([Criterion(problem).at(gamma).criterion for gamma in gammas])
    np.testing.assert_allclose(estimated, exact, atol=0.1)
    assert not np.array_equal(estimated, exact)


def test_the_traces_are_exact_where_samples_are_interpolated(monkeypatch):
    _, _, problem = make_problem(Shared, f=100, counts=(20, 15, 10, 5))
    exact = [Criterion(problem).at(gamma).criterion for gamma in gamma_grid(problem)[:8]]
    monkeypatch.setattr(gamma_module, "EXACT_WIDTH", 10)
    np.testing.assert_allclose([Criterion(problem).at(gamma).criterion for gamma in gamma_grid(problem)[:8]], exact)


def test_scores_at_the_true_mean_are_told_from_the_statistics():
    """Drawn again and again, a tail class's score at its true mean is (1 + t) W'm - t on average, far from W'm."""
    rng = np.random.default_rng(0)
    f, counts = 30, np.array([200, 2])
    mu = np.zeros((2, f))
    mu[1, 0] = 3.0
    y = np.repeat([0, 1], counts)
    pi = counts.mean() / counts
    seen, told, true = [], [], []
    for _ in range(300):
        X = np.column_stack([mu[y] + rng.normal(size=(len(y), f)), np.ones(len(y))])
        K = np.linalg.inv(X.T @ (X * pi[y, None]) + 10.0 * np.eye(f + 1))
        m = X[y == 1].mean(axis=0)
        w = K @ (pi[1] * counts[1] * m)
        t = pi[1] * np.trace(K[:f, :f])  # S = I, but for the constant
        seen.append(w @ m)
        told.append((1 + t) * (w @ m) - t)
        true.append(w @ np.append(mu[1], 1.0))
    assert np.mean(seen) - np.mean(true) > 0.1
    assert abs(np.mean(told) - np.mean(true)) < 0.3 * (np.mean(seen) - np.mean(true))


def test_some_classes_stand_for_many(monkeypatch):
    """Half of the classes, from head to tail, have half of the rivals and so less odds, but nearly the same minimum."""
    counts = np.maximum(60 * 0.93 ** np.arange(60), 2).astype(int)
    _, _, problem = make_problem(Shared, 20, counts)
    gammas = gamma_grid(problem)
    all_of_them = [Criterion(problem).at(gamma).criterion for gamma in gammas]
    monkeypatch.setattr(gamma_module, "MANY_CLASSES", 30)
    some = [Criterion(problem).at(gamma).criterion for gamma in gammas]
    assert np.mean(some) < np.mean(all_of_them)
    assert abs(int(np.argmin(some)) - int(np.argmin(all_of_them))) <= 2


@pytest.mark.parametrize("store_type", [PerClass, Shared])
@pytest.mark.parametrize("counts", [(5,), (1, 1, 1), (30, 1)])  # one class, no scatter at all, a class without
def test_the_criterion_is_finite_whatever_was_learned(store_type, counts):
    _, _, problem = make_problem(store_type, 6, counts)
    assert all(np.isfinite(Criterion(problem).at(gamma).criterion) for gamma in gamma_grid(problem))


def test_uncertainty_is_of_uneven_shares_and_of_few_samples():
    S, even = np.diag([1.0, 1.0, 0.0]), np.ones(4)  # two directions
    assert uncertainty_of(S, even, 75 * even) == pytest.approx(3 / 300)
    assert uncertainty_of(S, even, 3 * even) == pytest.approx(3 / 12)
    assert uncertainty_of(S, even, np.array([1e9, 1.0, 1.0, 1.0])) == pytest.approx(1, abs=1e-6)
    counts = np.array([30.0, 10.0])
    assert uncertainty_of(S, 1 / counts, counts) == pytest.approx(3 / (4 / (1 / counts).sum()))
    assert uncertainty_of(S, np.ones(1), np.array([300.0])) == pytest.approx(3 / 300)  # a class alone has all of it
    assert 0 <= uncertainty_of(0 * S, even, even) <= 1


def test_no_features_but_zeros_still_gives_a_gamma():
    store = Shared.empty(Space(3, np.float64)).padded(2).plus(sort_by_class(np.zeros((4, 3)), np.arange(4) % 2, None))
    path, best = choose_gamma(Problem.of(store, 1 / store.count, 1.0))
    assert np.all(path.gamma > 0)
    assert np.all(np.isfinite(path.criterion))
    assert np.all(best.W == 0)


@pytest.mark.parametrize("start", [0, 5, 24])
@pytest.mark.parametrize("lowest", range(25))
def test_a_valley_is_descended_to_its_lowest_place(start, lowest):
    assert descend(lambda place: abs(place - lowest), start, (4, 2, 1, 1)) == lowest


def test_of_equals_the_largest_is_taken():
    assert descend(lambda place: 0.0, 12, STRIDES) == 24
    assert descend(lambda place: max(10 - place, 0), 12, STRIDES) == 24


@pytest.mark.parametrize("store_type", [PerClass, Shared])
@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_the_lowest_of_the_grid(store_type, seed, monkeypatch):
    _, _, problem = make_problem(store_type, 12, (60, 20, 9, 5, 3), seed)
    path, best = choose_gamma(problem)
    every = [Criterion(problem).at(gamma).criterion for gamma in gamma_grid(problem)]
    assert path.best == pytest.approx(gamma_grid(problem)[int(np.argmin(every))])
    assert len(path.gamma) <= 10
    np.testing.assert_array_equal(np.sort(path.gamma), path.gamma)
    np.testing.assert_array_equal(best.W, Criterion(problem).at(path.best).W)
    monkeypatch.setattr(gamma_module, "WIDE", 1)
    path, best = choose_gamma(problem)
    assert best.criterion < min(every) + 0.01 * np.ptp(every)
    assert len(path.gamma) <= 8


def test_near_the_last_gamma_few_are_tried_and_the_way_leads_to_the_lowest():
    _, _, problem = make_problem(PerClass, 12, (60, 20, 9, 5, 3))
    best = choose_gamma(problem)[0].best
    path, _ = choose_gamma(problem, near=best)
    assert path.best == best
    assert len(path.gamma) == 3  # and its neighbours
    near = gamma_grid(problem)[24]
    for _ in range(3):
        path, _ = choose_gamma(problem, near)
        assert len(path.gamma) <= MAX_TRIALS_NEAR
        near = path.best
    assert near == best


def test_a_stream_costs_few_factorisations(monkeypatch):
    """A new class: at most five gammas and no solve beside. refresh() and fit() search as widely as ever."""
    calls, cholesky = [], NumpyBackend.cholesky
    monkeypatch.setattr(NumpyBackend, "cholesky", lambda *args: (calls.append(1), cholesky(*args))[1])
    monkeypatch.setattr(NumpyBackend, "eigh", None)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 40)
    X = rng.normal(size=(320, 20)) + 1.5 * rng.normal(size=(8, 20))[y]
    clf = AIRClassifier(expansion=None, calibrate=False).fit(X[:40], y[:40])
    clf.predict(X[:1])
    for label in (1, 2):  # one or two classes tell too little of what is best for more
        calls.clear()
        clf.partial_fit(X[y == label], y[y == label]).predict(X[:1])
        assert len(calls) > MAX_TRIALS_NEAR
    for label in range(3, 8):
        calls.clear()
        clf.partial_fit(X[y == label], y[y == label]).predict(X[:1])
        assert 3 <= len(calls) <= MAX_TRIALS_NEAR
    calls.clear()
    clf.partial_fit(X[:10], y[:10]).predict(X[:1])
    assert len(calls) == 1  # gamma stands
    clf.refresh()
    assert (
        clf.gamma_
        == AIRClassifier(expansion=None, calibrate=False)
        .fit(np.concatenate([X, X[:10]]), np.concatenate([y, y[:10]]))
        .gamma_
    )
