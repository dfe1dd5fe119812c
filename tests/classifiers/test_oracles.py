"""Every member of the family against something independent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

from aircl import (
    ACILClassifier,
    AEFOCLClassifier,
    DSALClassifier,
    FeCAMClassifier,
    GKEALClassifier,
    NCMClassifier,
    RandomReLU,
    RanPACClassifier,
    RecursiveACILClassifier,
    SLDAClassifier,
)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16, y[:900], X[900:] / 16, y[900:]


def long_tailed(X, y):
    return np.concatenate([np.flatnonzero(y == digit)[: 80 >> digit // 2] for digit in range(10)])


PHASES = ([0, 1, 2, 3, 4], [5, 6], [7], [8, 9])


def in_phases(clf, X, y, phases=PHASES, batch=37):
    for phase in phases:
        rows = np.flatnonzero(np.isin(y, phase))
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            clf.partial_fit(X[part], y[part])
        clf.end_phase()
    return clf


# -- recursive ACIL --
@pytest.mark.parametrize("gamma", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("batch", [1, 37, 900])
def test_recursive_equals_iterative_acil(digits, gamma, batch):
    X, y = digits[0][:400], digits[1][:400]
    buffer = RandomReLU(120, random_state=0)
    recursive, iterative = RecursiveACILClassifier(gamma, expansion=buffer), ACILClassifier(gamma, expansion=buffer)
    for clf in (recursive, iterative):
        in_phases(clf, X, y, batch=batch)
    np.testing.assert_allclose(recursive.coef_, iterative.coef_, rtol=1e-8, atol=1e-8 * np.abs(iterative.coef_).max())


def test_recursive_with_weights_equals_ridge(digits):
    X, y, *_ = digits
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    clf = RecursiveACILClassifier(0.5).fit(X, y, sample_weight=weight)
    oracle = Ridge(0.5, fit_intercept=False, solver="svd").fit(X, np.eye(10)[y], sample_weight=weight)
    np.testing.assert_allclose(clf.coef_, oracle.coef_, rtol=1e-8, atol=1e-9)


def test_another_gamma_is_as_if_it_had_been_so_from_the_start(digits):
    X, y, *_ = digits
    changed = RecursiveACILClassifier(1.0).fit(X[:500], y[:500]).change_gamma(0.02).partial_fit(X[500:], y[500:])
    oracle = Ridge(0.02, fit_intercept=False, solver="svd").fit(X, np.eye(10)[y])
    np.testing.assert_allclose(changed.coef_, oracle.coef_, rtol=1e-7, atol=1e-8)


# -- SLDA --
def test_slda_is_scikit_learns_discriminant_analysis_less_the_log_priors(digits):
    X, y, X_test, _ = digits
    keep = long_tailed(X, y)
    X = X + 0.05 * np.random.default_rng(0).normal(size=X.shape)  # no constant pixel: S is regular
    oracle = LinearDiscriminantAnalysis(solver="lsqr").fit(X[keep], y[keep])
    expected = oracle.decision_function(X_test) - np.log(oracle.priors_)
    clf = SLDAClassifier(0.0)
    for rows in np.array_split(keep, 7):
        clf.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(clf.decision_function(X_test), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(clf.predict_proba(X_test).sum(axis=1), 1.0)


def test_slda_shrinks_towards_the_unit_matrix(digits):
    X, y, X_test, _ = digits
    means = np.stack([X[y == digit].mean(axis=0) for digit in range(10)])
    expected = X_test @ means.T - 0.5 * (means**2).sum(axis=1)  # with e = 1, the nearest mean
    np.testing.assert_allclose(SLDAClassifier(1.0).fit(X, y).decision_function(X_test), expected, rtol=1e-9)


# -- NCM --
def test_ncm_is_the_cosine_to_the_class_means(digits):
    X, y, X_test, _ = digits
    means = np.stack([X[y == digit].mean(axis=0) for digit in range(10)])
    clf = NCMClassifier().fit(X, y)
    np.testing.assert_allclose(clf.means_, means, rtol=1e-9)
    np.testing.assert_allclose(clf.decision_function(X_test), cosine_similarity(X_test, means), rtol=1e-9)
    assert np.all(clf.decision_function(np.zeros((1, 64))) == 0)


# -- FeCAM --
def fecam_oracle(rows, x, shrinkage, power):
    """The published formulas, with explicit matrices and scipy's distance."""
    rows, x = (np.sign(a) * np.abs(a) ** power for a in (rows, x))
    S = np.cov(rows.T, bias=True)
    f = len(S)
    V1, V2 = np.diag(S).mean(), S[~np.eye(f, dtype=bool)].mean()
    S = S + shrinkage * (V1 * np.eye(f) + V2 * (1 - np.eye(f)))
    deviations = np.sqrt(np.diag(S))
    correlations = S / np.outer(deviations, deviations)
    return mahalanobis(x, rows.mean(axis=0), np.linalg.inv(correlations)) ** 2


@pytest.mark.parametrize("per_class", [3, 20, 80])  # rows below f/2, a matrix beyond
@pytest.mark.parametrize("shrinkage", [0.3, 1.0, 100.0])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_fecam_is_scipys_mahalanobis_distance(digits, per_class, shrinkage, power):
    X, y, X_test, _ = digits
    keep = np.concatenate([np.flatnonzero(y == digit)[:per_class] for digit in range(10)])
    clf = FeCAMClassifier(shrinkage, power=power).fit(X[keep], y[keep])
    ours = -clf.decision_function(X_test[:5])
    for digit in range(10):
        rows = X[keep][y[keep] == digit]
        expected = [fecam_oracle(rows, x, shrinkage, power) for x in X_test[:5]]
        np.testing.assert_allclose(ours[:, digit], expected, rtol=1e-6)


def test_a_class_of_one_sample_is_round(digits):
    X, y, X_test, _ = digits
    keep = np.concatenate([np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:1]])
    clf = FeCAMClassifier(power=1.0).fit(X[keep], y[keep])
    expected = ((X_test - X[keep[-1]]) ** 2).sum(axis=1)
    np.testing.assert_allclose(-clf.decision_function(X_test)[:, 3], expected, rtol=1e-9)


# -- RanPAC --
def test_ranpac_is_ridge_with_the_chosen_gamma(digits):
    X, y, X_test, _ = digits
    clf = in_phases(RanPACClassifier(n_components=80, random_state=0), X, y)
    H, H_test = (clf.expansion_.transform(a) for a in (X, X_test))
    oracle = Ridge(clf.gamma_, fit_intercept=False, solver="svd").fit(H, np.eye(10)[y])
    np.testing.assert_allclose(clf.decision_function(X_test), oracle.predict(H_test), rtol=1e-6, atol=1e-7)


def held_out(y):
    """Every fifth row of a class."""
    return np.array([np.sum(y[: i + 1] == label) % 5 == 0 for i, label in enumerate(y)])


def test_ranpac_chooses_gamma_on_the_held_out_rows_of_the_phase(digits):
    X, y, *_ = digits
    noisy = X + np.random.default_rng(0).normal(size=X.shape)  # so that the best is inside the grid
    clf = RanPACClassifier(n_components=80, random_state=0)
    for phase in ([0, 1, 2, 3, 4], [5, 6], [7, 8, 9]):
        rows = np.flatnonzero(np.isin(y, phase))
        clf.partial_fit(noisy[rows], y[rows]).end_phase()
        H, Y, held = clf.expansion_.transform(noisy[rows]), np.eye(10)[y[rows]], held_out(y[rows])
        errors = [
            (
                (Ridge(g, fit_intercept=False, solver="svd").fit(H[~held], Y[~held]).predict(H[held]) - Y[held]) ** 2
            ).sum()
            for g in 10.0 ** np.arange(-8, 9)
        ]
        best = np.flatnonzero(errors <= min(errors) + 1e-7 * held.sum())[-1]  # of equals, the largest
        assert clf.gamma_ == pytest.approx(10.0 ** (best - 8))
    assert 1e-8 < clf.gamma_ < 1e8


def test_a_phase_of_rare_classes_leaves_ranpacs_gamma_as_it_was(digits):
    X, y, *_ = digits
    clf = RanPACClassifier(n_components=80, random_state=0)
    rows = np.flatnonzero(y < 8)
    before = clf.partial_fit(X[rows], y[rows]).end_phase().gamma_
    rare = np.concatenate([np.flatnonzero(y == 8)[:1], np.flatnonzero(y == 9)[:40]])  # eight rows held out
    assert clf.partial_fit(X[rare], y[rare]).end_phase().gamma_ == before


# -- DS-AL --
@pytest.mark.parametrize("gamma", [0.1, "auto"])
def test_dsal_without_compensation_is_acil(digits, gamma):
    X, y, X_test, _ = digits
    ours = in_phases(DSALClassifier(gamma, compensation=0.0, n_components=100, random_state=3), X, y)
    acil = in_phases(ACILClassifier(gamma, expansion=RandomReLU(100, random_state=3)), X, y)
    expected = acil.decision_function(X_test)
    np.testing.assert_allclose(ours.decision_function(X_test), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("batch", [17, 900])
def test_dsal_is_two_regressions_the_second_on_cleansed_residuals(digits, batch):
    """The published algorithm, with all rows of a phase at hand."""
    X, y, X_test, _ = digits
    f, gamma, c = 60, 0.2, 0.8
    clf = in_phases(DSALClassifier(gamma, compensation=c, n_components=f, random_state=1), X, y, batch=batch)
    P, P_test = (clf.expansion_.project(a) for a in (X, X_test))
    H, T = np.maximum(P, 0), np.tanh(P)
    G, Q, G_t, Q_t = np.zeros((f, f)), np.zeros((f, 10)), np.zeros((f, f)), np.zeros((f, 10))
    for phase in PHASES:
        rows = np.isin(y, phase)
        Y = np.eye(10)[y[rows]]
        G, Q, G_t = G + H[rows].T @ H[rows], Q + H[rows].T @ Y, G_t + T[rows].T @ T[rows]
        W = np.linalg.solve(G + gamma * np.eye(f), Q)
        residual = Y - H[rows] @ W
        residual[:, ~np.isin(np.arange(10), phase)] = 0
        Q_t += T[rows].T @ residual
    W_t = np.linalg.solve(G_t + gamma * np.trace(G_t) / np.trace(G) * np.eye(f), Q_t)
    expected = np.maximum(P_test, 0) @ W + c * np.tanh(P_test) @ W_t
    np.testing.assert_allclose(clf.decision_function(X_test), expected, rtol=1e-7, atol=1e-8)


# -- GKEAL --
def test_gkeal_is_ridge_on_scikit_learns_rbf_kernel(digits):
    X, y, X_test, _ = digits
    clf = GKEALClassifier(0.1, n_components=100, sigma=1.5, random_state=0).fit(X, y)
    centers = clf.expansion_.centers_
    assert all(any(np.array_equal(center, x) for x in X) for center in centers)
    H, H_test = (rbf_kernel(a, centers, gamma=1 / (2 * 1.5**2)) for a in (X, X_test))
    oracle = Ridge(0.1, fit_intercept=False, solver="svd").fit(H, np.eye(10)[y])
    np.testing.assert_allclose(clf.decision_function(X_test), oracle.predict(H_test), rtol=1e-6, atol=1e-7)


# -- AEF-OCL --
def test_aefocl_on_balanced_data_is_acil(digits):
    X, y, X_test, _ = digits
    keep = np.concatenate([np.flatnonzero(y == digit)[:40] for digit in range(10)])
    buffer = RandomReLU(100, random_state=0)
    ours = AEFOCLClassifier(0.1, expansion=buffer).fit(X[keep], y[keep])
    acil = ACILClassifier(0.1, expansion=buffer).fit(X[keep], y[keep])
    np.testing.assert_allclose(ours.decision_function(X_test), acil.decision_function(X_test), rtol=1e-9, atol=1e-12)


def test_aefocl_fills_every_class_with_its_own_mean_and_spread(digits):
    X, y, *_ = digits
    keep = long_tailed(X, y)
    clf = AEFOCLClassifier(0.1, random_state=5).fit(X[keep], y[keep])
    rule, spread = clf._rule(), clf._learner.absorb().statistics.variances
    drawn = list(rule.pseudo_features(spread, np.arange(10)))
    pseudo, slots = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    np.testing.assert_array_equal(np.bincount(slots, minlength=10), 80 - clf.class_count_)
    for digit in (4, 6):  # 20 and 10 samples
        rows = X[keep][y[keep] == digit]
        mine = pseudo[slots == digit]
        error = rows.std(axis=0) / np.sqrt(len(mine))
        assert np.all(np.abs(mine.mean(axis=0) - rows.mean(axis=0)) <= 5 * error + 1e-12)
        np.testing.assert_allclose(mine.std(axis=0), rows.std(axis=0), rtol=0.6, atol=1e-12)
    # and what is solved is ACIL on all of them
    acil = ACILClassifier(0.1).fit(np.concatenate([X[keep], pseudo]), np.concatenate([y[keep], slots]))
    np.testing.assert_allclose(clf.coef_, acil.coef_, rtol=1e-7, atol=1e-9)


def test_aefocl_is_fair_to_rare_classes(digits):
    X, y, X_test, y_test = digits
    keep = long_tailed(X, y)
    buffer = RandomReLU(300, random_state=0)
    tail = y_test >= 8
    ours = AEFOCLClassifier(expansion=buffer).fit(X[keep], y[keep]).score(X_test[tail], y_test[tail])
    acil = ACILClassifier(expansion=buffer).fit(X[keep], y[keep]).score(X_test[tail], y_test[tail])
    assert ours > acil + 0.1
