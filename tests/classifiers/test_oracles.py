"""Members of the family against scikit-learn and against each other; test_published.py has their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from aircl import (
    ACILClassifier,
    AEFOCLClassifier,
    DSALClassifier,
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
    recursive, iterative = (
        RecursiveACILClassifier(gamma, expansion=buffer),
        ACILClassifier(gamma, expansion=buffer, calibrate=False),
    )
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


# -- RanPAC --
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
    acil = in_phases(ACILClassifier(gamma, expansion=RandomReLU(100, random_state=3), calibrate=False), X, y)
    expected = acil.decision_function(X_test)
    np.testing.assert_allclose(ours.decision_function(X_test), expected, rtol=1e-7, atol=1e-9)


# -- AEF-OCL --
def test_aefocl_on_balanced_data_is_acil(digits):
    X, y, X_test, _ = digits
    keep = np.concatenate([np.flatnonzero(y == digit)[:40] for digit in range(10)])
    buffer = RandomReLU(100, random_state=0)
    ours = AEFOCLClassifier(0.1, expansion=buffer).fit(X[keep], y[keep])
    acil = ACILClassifier(0.1, expansion=buffer, calibrate=False).fit(X[keep], y[keep])
    np.testing.assert_allclose(ours.decision_function(X_test), acil.decision_function(X_test), rtol=1e-9, atol=1e-12)


def test_aefocl_is_fair_to_rare_classes(digits):
    X, y, X_test, y_test = digits
    keep = long_tailed(X, y)
    buffer = RandomReLU(300, random_state=0)
    tail = y_test >= 8
    ours = AEFOCLClassifier(expansion=buffer).fit(X[keep], y[keep]).score(X_test[tail], y_test[tail])
    acil = ACILClassifier(expansion=buffer, calibrate=False).fit(X[keep], y[keep]).score(X_test[tail], y_test[tail])
    assert ours > acil + 0.1
