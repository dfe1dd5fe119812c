"""Simulated scores of unseen samples against plain NumPy, and what is made of them."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.datasets import load_digits

from aircl import AIRClassifier
from aircl.engine import calibration
from aircl.engine.calibration import LinearScores, calibrate, draw, fit, unseen_scores
from aircl.engine.gamma import Criterion

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

STORES = ("per-class", "shared", "pooled")
GAMMA = 0.3


def classes(counts, f=6, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    means = rng.normal(size=(len(counts), f)) + 1.0
    spread = rng.uniform(0.2, 0.8, size=(len(counts), f))
    return means[y] + rng.normal(size=(len(y), f)) * spread[y], y


def solved(X, y, store="per-class", **parameters):
    solution = AIRClassifier(GAMMA, store=store, **parameters, **PAPER).fit(X, y)._solution()
    return solution.problem, solution.W


def calibrated(problem, W):
    trial = Criterion(problem).at(GAMMA)
    return calibrate(problem, W, trial.trace, trial.leverage)


def plain(X, y, pi, own_scatter):
    """The formulas at the head of the module, sample by sample."""
    count = np.bincount(y)
    n, C = len(y), len(count)
    Y, unit = np.eye(C)[y], np.eye(C)
    K = np.linalg.inv((X * pi[y][:, None]).T @ X + GAMMA * np.eye(X.shape[1]))
    W = K @ (X * pi[y][:, None]).T @ Y
    means = Y.T @ X / count[:, None]
    S_w = (X - means[y]).T @ (X - means[y]) / n
    S = S_w * n / (n - C)
    in_G = ((X - means[y]) * pi[y][:, None]).T @ (X - means[y])
    h = np.trace(K @ in_G) / (n - C)
    t = pi * np.trace(K @ S) / (1 - h)
    mean = np.array([(1 + t[c]) * W.T @ means[c] - t[c] * unit[c] for c in range(C)])

    p = mean.clip(min=0)
    p /= p.sum(axis=1, keepdims=True)
    v = p * (1 - p) / ((pi * count) @ (p * (1 - p)) / (pi @ count))
    pooled, known = W.T @ S @ W, (count - 1) * own_scatter
    own = [W.T @ np.cov(X[y == c].T) @ W if known[c] else pooled for c in range(C)]
    excess, prior = v.diagonal() - 1, 10 * (v.diagonal() - 1).mean()
    own_ratio = np.array([own[c][c, c] / pooled[c, c] for c in range(C)])
    a = np.clip((known @ (own_ratio - 1) + prior / 2) / (known @ excess + prior), 0, 1)
    tails = 1 + 2 / 3 * np.clip(a * excess.mean() / 2, 0, 1)
    covariance = []
    for c in range(C):
        D = np.diag(np.sqrt(1 + a * (v[c] - 1)))
        V = (known[c] * own[c] + 10 * D @ pooled @ D) / (known[c] + 10)
        covariance.append(tails * (1 + 1 / count[c]) * V / (1 - h) ** 2)
    return W, LinearScores(W, np.zeros(C), 1 + t, t, h), mean, np.array(covariance)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("counts", [[30, 30, 30], [40, 2, 1, 9]])
def test_moments_of_unseen_scores_are_the_formulas(store, counts):
    # Uniform weights are those for which the other stores are exact.
    weighting = "inverse" if store == "per-class" or len(set(counts)) == 1 else "uniform"
    X, y = classes(counts)
    problem, W = solved(X, y, store, weighting=weighting)
    plain_W, linear, mean, covariance = plain(X, y, problem.pi, own_scatter=store == "per-class")
    np.testing.assert_allclose(W, plain_W, rtol=1e-9, atol=1e-12)
    share = problem.pi * problem.count / (problem.pi @ problem.count)
    new = unseen_scores(problem, linear, share)
    assert new.rivals[:, 0].tolist() == list(range(len(counts)))
    assert new.log_weight.tolist() == [0.0] * len(counts)
    for c, rivals in enumerate(new.rivals):
        np.testing.assert_allclose(new.mean[c], mean[c, rivals], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(new.covariance[c], covariance[c][np.ix_(rivals, rivals)], rtol=1e-6, atol=1e-9)
    with_h = calibrated(problem, W)  # t and h are those of the formulas too
    np.testing.assert_allclose(with_h.scores.mean(axis=1), new.mean, atol=1e-5)


def test_draws_have_the_stated_moments():
    A = np.random.default_rng(0).normal(size=(3, 3, 3))
    covariance = A @ A.swapaxes(1, 2)
    draws = draw(covariance, np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]]), np.array([0.3, 1.7, 2.2]))
    np.testing.assert_allclose(draws.mean(axis=1), 0.0, atol=1e-12)
    for c in range(3):
        ratio = np.linalg.eigvals(np.linalg.solve(covariance[c], np.cov(draws[c].T))).real
        assert np.all((ratio > 0.8) & (ratio < 1.25)), ratio


def test_draws_are_continuous_functions_of_keys_and_covariances():
    covariance = np.stack([np.eye(3) + 0.5] * 3)
    rivals = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])
    key = np.array([0.3, 1.7, 2.2])
    draws = draw(covariance, rivals, key)
    order = np.array([2, 0, 1])  # the same classes in other slots
    slot = np.argsort(order)
    again = draw(covariance, slot[rivals[order]], key[order])
    np.testing.assert_allclose(again, draws[order], atol=1e-9)
    assert np.abs(draw(covariance, rivals, key + 1e-12) - draws).max() < 1e-4
    assert np.corrcoef(draws[0].ravel(), draws[1].ravel())[0, 1] < 0.1  # but classes have noise of their own


def test_fit_minimises_the_penalised_loss():
    rng = np.random.default_rng(0)
    C, share = 4, np.array([0.1, 0.2, 0.3, 0.4])
    rivals = np.array([np.roll(np.arange(C), -c) for c in range(C)])
    scores = rng.normal(size=(C, 50, C)) * 0.3
    scores[:, :, 0] += 0.5
    scores[:, :, 1] += 0.2 * (rivals[:, 1] == 2)[:, None]
    b, T = fit(scores, rivals, np.zeros(C), share)

    def objective(b, T):
        log_p = log_softmax((scores + b[rivals][:, None, :]) / T, axis=2)[:, :, 0]
        return -share @ log_p.mean(axis=1) + 0.01 * np.mean((b / T) ** 2)

    least = objective(b, T)
    for c in range(C):
        for step in (-1e-3, 1e-3):
            assert objective(b + step * np.eye(C)[c], T) > least
    assert min(objective(b, T * 0.99), objective(b, T * 1.01)) > least
    assert abs(T - 1.0) > 0.05


@pytest.mark.parametrize("lift", [-0.5, 1e4])
def test_a_slope_at_its_limit_ends_the_search_and_its_intercepts_are_best(lift):
    C, share = 3, np.array([0.2, 0.3, 0.5])
    rivals = np.array([np.roll(np.arange(C), -c) for c in range(C)])
    scores = np.random.default_rng(0).normal(size=(C, 40, C))
    scores[:, :, 0] += lift  # the higher the score, the less likely the class; or so likely that nothing is gained
    b, T = fit(scores, rivals, np.zeros(C), share)
    if lift < 0.0:
        assert scores.std() / T == pytest.approx(1e-3)

    def objective(b):
        log_p = log_softmax((scores + b[rivals][:, None, :]) / T, axis=2)[:, :, 0]
        return -share @ log_p.mean(axis=1) + 0.01 * np.mean((b / T) ** 2)

    for c in range(C):
        for step in (-1e-2 * T, 1e-2 * T):
            assert objective(b + step * np.eye(C)[c]) > objective(b)


@pytest.mark.parametrize("store", STORES)
def test_without_any_scatter_there_is_no_intercept_and_a_wide_temperature(store):
    X, y = classes([1, 1, 1])
    problem, W = solved(X, y, store)
    found = calibrated(problem, W)
    assert not found.b.any()
    assert found.temperature == pytest.approx(np.ptp(X @ W))
    assert np.isnan(found.share @ found.predicted(found.b)[:, 0])


def test_one_class_is_right_always():
    problem, W = solved(*classes([5]))
    found = calibrated(problem, W)
    assert found.b.tolist() == [0.0]
    assert found.predicted(found.b).tolist() == [[1.0]]


def right(found):
    return found.share @ found.predicted(found.b)[:, 0]


def test_some_rivals_stand_for_all(monkeypatch):
    X, y = classes([12] * 60, f=10)
    problem, W = solved(X, y)
    every = calibrated(problem, W)
    for name, value in {"MANY_CLASSES": 20, "STRONGEST": 12, "STAND_INS": 6, "ALL_CLASSES": 60}.items():
        monkeypatch.setattr(calibration, name, value)
    some = calibrated(problem, W)
    assert some.rivals.shape == (60, 19)
    assert some.temperature == pytest.approx(every.temperature, rel=0.1)
    assert np.corrcoef(some.b, every.b)[0, 1] > 0.9
    assert right(some) == pytest.approx(right(every), abs=0.03)


@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_some_classes_stand_for_all(store, monkeypatch):
    X, y = classes([12] * 101, f=20)
    problem, W = solved(X, y, store)
    every = calibrated(problem, W)
    for name, value in {"ALL_CLASSES": 100, "EXPECTED_SCORES": 7000}.items():
        monkeypatch.setattr(calibration, name, value)
    some = calibrated(problem, W)
    assert every.b.any()
    assert not some.b.any()
    assert some.rivals.shape == (69, 101)
    assert len(np.unique(some.rivals[:, 0])) == 69

    def loss(log_T):  # without intercepts
        return -every.share @ log_softmax(every.scores / np.exp(log_T), axis=2)[:, :, 0].mean(axis=1)

    assert np.log(some.temperature) == pytest.approx(minimize_scalar(loss, bracket=(-6.0, -3.0)).x, abs=0.1)
    of_some, of_every = some.predicted(some.b)[:, 0], every.predicted(some.b)[some.rivals[:, 0], 0]
    assert of_some.mean() == pytest.approx(of_every.mean(), abs=0.02)
    assert np.corrcoef(of_some, of_every)[0, 1] > 0.95


@pytest.mark.parametrize("counts", [[1, 2] * 5, [1, 3] * 5, [1, 1, 2, 6, 9] * 2, [1, 30] * 5])
@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
def test_the_leverage_is_below_1_and_is_that_of_the_samples(counts, gamma):
    X, y = classes(counts, f=80)  # more features than most of these have samples
    problem, _ = solved(X, y)
    pi, count = problem.pi, np.array(counts)
    K = np.linalg.inv((X * pi[y][:, None]).T @ X + gamma * np.eye(80))
    deviation = X - (np.eye(len(counts))[y].T @ X / count[:, None])[y]
    of_samples = pi[y] * ((deviation @ K) * deviation).sum(axis=1)
    found = Criterion(problem).at(gamma).leverage
    assert 0.0 < found < 1.0
    np.testing.assert_allclose(found, of_samples.sum() / (len(y) - len(counts)), rtol=1e-7)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("counts", [[1, 2], [1, 3], [1, 11], [1, 2, 3, 5, 8]])
def test_a_few_rows_of_unequal_classes_are_told_apart_as_without_calibration(store, counts):
    X, y = load_digits(return_X_y=True)
    few = np.concatenate(
        [np.flatnonzero(y[:900] == digit)[:n] for digit, n in enumerate(np.resize(counts, 10).tolist())]
    )
    calibrated, plain = (AIRClassifier(store=store, calibrate=how).fit(X[few], y[few]) for how in (True, False))
    assert calibrated.score(X[900:], y[900:]) >= plain.score(X[900:], y[900:]) - 0.03
    assert calibrated.predict_proba(X[900:]).max(axis=1).mean() > 0.15  # of ten classes
