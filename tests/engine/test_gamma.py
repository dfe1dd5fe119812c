"""The criterion behind gamma="auto", term by term against plain linear algebra."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import Ridge

from aircl.engine import Space
from aircl.engine import gamma as gamma_module
from aircl.engine import probes as probes_module
from aircl.engine.air import PerClass
from aircl.engine.batch import sort_by_class
from aircl.engine.gamma import GRID, Spectrum, choose_gamma, estimated_losses, log_error_odds
from aircl.engine.means import Shared
from aircl.engine.probes import Probes
from aircl.engine.problem import Problem
from aircl.engine.problem import pooled_scatter_uncertainty as uncertainty_of


def problem(store_type, f=12, counts=(60, 9, 3, 1), seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    X = (rng.normal(size=(len(y), f)) * rng.uniform(0.2, 2, f) + 2 * rng.normal(size=(len(counts), f))[y]).astype(dtype)
    store = store_type.empty(Space(f, dtype)).padded(len(counts)).plus(sort_by_class(X, y, None))
    pi = 1 / store.count
    given = Problem.of(store, pi, 1 / pi.mean())
    return X, y, given, given.pi, Spectrum(given)


def gamma_grid(given):
    """The gammas that are searched."""
    return GRID * np.trace(given.G) / len(given.G)


def losses(given, spectrum, gammas):
    return estimated_losses(given, spectrum, spectrum.shrinkage(gammas / spectrum.unit**2))


def direct(G, in_sample, sums, count, pi, gamma, new_sample=None):
    """L_y by the formula, one class and one gamma at a time, A_y / n_y given for the leverage and for the residual."""
    K = np.linalg.inv(G + gamma * np.eye(len(G)))
    W = K @ (sums * pi[:, None]).T
    losses = []
    for c, (A, A_new) in enumerate(zip(in_sample, new_sample or in_sample, strict=True)):
        rss = 1 - 2 * W[:, c] @ sums[c] / count[c] + np.trace(W.T @ A_new @ W)
        losses.append(rss / (1 - pi[c] * np.trace(K @ A)) ** 2)
    return losses


def full(G):
    return np.tril(G) + np.tril(G, -1).T


@pytest.mark.parametrize("f", [12, 40])  # packed classes and factors, n > f and n < f
def test_own_form_is_the_formula(f):
    X, y, store, pi, spectrum = problem(PerClass, f)
    G = full(store.G)
    gammas = gamma_grid(store)[::6]
    own = losses(store, spectrum, gammas)[-1]
    A = [X[y == c].T @ X[y == c] / np.sum(y == c) for c in range(4)]
    expected = [direct(G, A, store.sums, store.count, pi, gamma) for gamma in gammas]
    np.testing.assert_allclose(own, expected, rtol=1e-6)


@pytest.mark.parametrize("store_type", [PerClass, Shared])
@pytest.mark.parametrize("f", [3, 12])  # more and fewer classes than features
def test_shared_form_is_the_formula(store_type, f):
    X, y, store, pi, spectrum = problem(store_type, f)
    G = full(store.G)
    gammas = gamma_grid(store)[4::5]
    as_one, apart = losses(store, spectrum, gammas)[:2]
    n = store.count
    M = store.sums / n[:, None]
    Z = X - M[y]
    S_w = Z.T @ Z / len(y)
    in_sample = [(1 - 1 / n[c]) * S_w + np.outer(M[c], M[c]) for c in range(4)]
    new_sample = [S_w + np.outer(M[c], M[c]) for c in range(4)]
    expected = np.array([direct(G, in_sample, store.sums, n, pi, gamma, new_sample) for gamma in gammas])
    inside = np.isfinite(expected) & (as_one < 1e6)  # where the leverage was not clamped below 1
    assert inside.mean() >= 0.9
    np.testing.assert_allclose(as_one[inside], expected[inside], rtol=1e-6)
    for i, gamma in enumerate(gammas):
        K = np.linalg.inv(G + gamma * np.eye(f))
        W = K @ (store.sums * pi[:, None]).T
        h = (pi @ n) * np.trace(K @ S_w) / (len(y) - 4)
        at_mean = np.square(np.eye(4) - M @ W).sum(axis=1) / (1 - pi * np.einsum("cf,fg,cg->c", M, K, M)) ** 2
        np.testing.assert_allclose(apart[i], at_mean + np.trace(W.T @ S_w @ W) / (1 - h) ** 2, rtol=1e-6)


def test_one_sample_has_its_leave_one_out_error():
    """For a class of one sample the own form is exact: its squared error when it is left out of the ridge."""
    X, y, store, pi, spectrum = problem(PerClass)
    gamma = gamma_grid(store)[12]
    loss = losses(store, spectrum, np.array([gamma]))[-1][0, 3]
    left = y != 3
    W = Ridge(alpha=gamma, fit_intercept=False).fit(X[left], np.eye(4)[y[left]], sample_weight=pi[y[left]]).coef_.T
    np.testing.assert_allclose(loss, np.square(np.eye(4)[3] - X[~left][0] @ W).sum(), rtol=1e-8)


def test_sign_vectors_tell_the_traces_of_wide_packed_matrices(monkeypatch):
    _, _, store, _, spectrum = problem(PerClass, f=100, counts=(300, 120, 80, 60))
    exact = losses(store, spectrum, gamma_grid(store))[-1]
    monkeypatch.setattr(probes_module, "EXACT_WIDTH", 10)
    estimated = losses(store, spectrum, gamma_grid(store))[-1]
    np.testing.assert_allclose(estimated, exact, rtol=0.25)
    assert not np.array_equal(estimated, exact)


@pytest.mark.parametrize("n_gammas", [2, 20])  # which way rows are taken depends on how many there are
def test_rows_and_matrix_agree_with_the_traces(n_gammas):
    X, _, store, pi, spectrum = problem(PerClass, f=20)
    gammas = np.geomspace(0.1, 10, n_gammas)
    probes = Probes(spectrum, spectrum.shrinkage(gammas / spectrum.unit**2))
    G, A = full(store.G), X.T @ X
    K = [np.linalg.inv(G + gamma * np.eye(20)) for gamma in gammas]
    W = [k @ (store.sums * pi[:, None]).T for k in K]
    expected = [np.trace(k @ A) for k in K], [np.trace(w.T @ A @ w) for w in W]
    for found in (probes.of_rows([X[:5], X[5:]]), probes.of_matrix(np.asfortranarray(A), 0)):
        np.testing.assert_allclose(np.array(found) / spectrum.unit**2, expected, rtol=1e-9)


def log_odds(spectrum, gammas, uncertainty):
    return log_error_odds(spectrum, spectrum.shrinkage(gammas / spectrum.unit**2), spectrum.within, uncertainty)


@pytest.mark.parametrize("uncertainty", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("f", [3, 12])
def test_odds_of_an_error_are_the_formula(f, uncertainty):
    X, y, store, pi, spectrum = problem(Shared, f)
    G, n, C = full(store.G), store.count, 4
    gammas = gamma_grid(store)[8::4]
    M = store.sums / n[:, None]
    S_w = (X - M[y]).T @ (X - M[y]) / (len(y) - C)
    any_direction = np.trace(S_w) / f * np.eye(f)
    for gamma, found in zip(gammas, log_odds(spectrum, gammas, uncertainty), strict=True):
        K = np.linalg.inv(G + gamma * np.eye(f))
        W = K @ (store.sums * pi[:, None]).T
        h = (pi @ n) / len(y) * np.trace(K @ S_w)
        noise = (1 - uncertainty) * np.trace(K @ S_w) / (1 - h) + uncertainty * np.trace(K @ any_direction)
        cov = W.T @ ((1 - uncertainty) * S_w / (1 - h) ** 2 + uncertainty * any_direction) @ W
        right = []
        for c in range(C):
            at_mean = (1 + pi[c] * noise) * M[c] @ W - pi[c] * noise * np.eye(C)[c]
            rivals = [z for z in range(C) if z != c]
            sd = [np.sqrt(cov[c, c] + cov[z, z] - 2 * cov[c, z]) for z in rivals]
            right.append(np.prod(norm.cdf((at_mean[c] - at_mean[rivals]) / sd)))
        p = np.clip(np.mean(right), 1e-3, 1 - 1e-3)
        np.testing.assert_allclose(found, np.log((1 - p) / p), rtol=1e-6)


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
    _, _, store, _, spectrum = problem(Shared, 20, counts)
    gammas = gamma_grid(store)
    all_of_them = log_odds(spectrum, gammas, 0.1)
    monkeypatch.setattr(gamma_module, "MANY_CLASSES", 30)
    some = log_odds(spectrum, gammas, 0.1)
    assert np.all(some < all_of_them)
    assert abs(int(np.argmin(some)) - int(np.argmin(all_of_them))) <= 2


@pytest.mark.parametrize("store_type", [PerClass, Shared])
@pytest.mark.parametrize("counts", [(5,), (1, 1, 1), (30, 1)])  # one class, no scatter at all, a class without
def test_odds_are_finite_whatever_was_learned(store_type, counts):
    _, _, store, _, spectrum = problem(store_type, 6, counts)
    uncertainty = store.uncertainty(spectrum.within)
    odds = log_odds(spectrum, gamma_grid(store), uncertainty)
    assert 0 <= uncertainty <= 1
    assert np.all(np.isfinite(odds))


def test_uncertainty_is_of_uneven_shares_and_of_few_samples():
    S, even = np.diag([1.0, 1.0, 0.0]), np.ones(4)  # two directions
    assert uncertainty_of(S, even, 75 * even) == pytest.approx(3 / 300)
    assert uncertainty_of(S, even, 3 * even) == pytest.approx(3 / 12)
    assert uncertainty_of(S, even, np.array([1e9, 1.0, 1.0, 1.0])) == pytest.approx(1, abs=1e-6)
    counts = np.array([30.0, 10.0])
    assert uncertainty_of(S, 1 / counts, counts) == pytest.approx(3 / (4 / (1 / counts).sum()))
    assert uncertainty_of(S, np.ones(1), np.array([300.0])) == pytest.approx(3 / 300)  # a class alone has all of it
    assert 0 <= uncertainty_of(0 * S, even, even) <= 1


def test_no_features_but_zeros_still_gives_a_grid():
    store = Shared.empty(Space(3, np.float64)).padded(2).plus(sort_by_class(np.zeros((4, 3)), np.arange(4) % 2, None))
    path = choose_gamma(Problem.of(store, 1 / store.count, 1.0))
    assert np.all(path.gamma > 0)
    assert np.all(np.isfinite(path.criterion))
