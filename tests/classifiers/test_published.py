"""Every member of the family against its published formula, written once more in plain NumPy.

Nothing of the package is called but the classifier under test: a random layer's weights and a kernel's centres are
taken from it as data.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score

from aircl import (
    ACILClassifier,
    AEFOCLClassifier,
    AIRClassifier,
    DSALClassifier,
    FeCAMClassifier,
    GKEALClassifier,
    NCMClassifier,
    RandomReLU,
    RanPACClassifier,
    RecursiveACILClassifier,
    SLDAClassifier,
)

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

PHASES = ([0, 1, 2, 3, 4], [5, 6], [7], [8, 9])


def assert_close(ours, published):
    np.testing.assert_allclose(ours, published, rtol=1e-6, atol=1e-6 * np.abs(published).max())


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16, y[:900], X[900:] / 16, y[900:]


@pytest.fixture(scope="module")
def long_tailed(digits):
    X, y, X_test, _ = digits
    keep = np.concatenate([np.flatnonzero(y == digit)[: 64 >> digit] for digit in range(8)])  # 64, 32 .. 1, and 0
    keep = np.random.default_rng(0).permutation(keep)
    return X[keep], y[keep], X_test


def one_phase_after_the_other(y):
    return [np.flatnonzero(np.isin(y, phase)) for phase in PHASES]


def in_phases(clf, X, y, batch=37):
    for rows in one_phase_after_the_other(y):
        for start in range(0, len(rows), batch):
            clf.partial_fit(X[rows[start : start + batch]], y[rows[start : start + batch]])
        clf.end_phase()
    return clf


def ridge(H, Y, gamma):
    return np.linalg.solve(H.T @ H + gamma * np.eye(H.shape[1]), H.T @ Y)


# -- AIR --
def test_air_is_algorithm_2_after_every_phase(long_tailed):
    """The paper's algorithm for streams in which classes return; pi at the mean 1, as in its authors' code."""
    X, y, _ = long_tailed
    gamma, f = 0.3, X.shape[1]
    A, C, N = np.zeros((10, f, f)), np.zeros((10, f, 10)), np.zeros(10)
    clf = AIRClassifier(gamma, **PAPER)
    for phase in np.array_split(np.arange(len(y)), 4):  # of shuffled rows: classes return
        clf.partial_fit(X[phase], y[phase]).end_phase()
        for x, label in zip(X[phase], y[phase], strict=True):
            A[label] += np.outer(x, x)
            C[label, :, label] += x
            N[label] += 1
        seen = np.flatnonzero(N)
        pi = 1 / N[seen]
        pi = pi / pi.mean()
        A_all = np.tensordot(pi, A[seen], 1)
        C_all = np.tensordot(pi, C[seen], 1)
        W = np.linalg.inv(A_all + gamma * np.eye(f)) @ C_all
        assert_close(clf.coef_, W[:, seen].T)


def test_pooled_air_is_algorithm_1_after_every_phase(long_tailed):
    """One pair of sums for all closed phases, each beginning at zero; pi at the mean 1 over the classes so far."""
    X, y, _ = long_tailed
    gamma, f = 0.3, X.shape[1]
    A, C, shares = np.zeros((f, f)), np.zeros((f, 0)), []
    clf = AIRClassifier(gamma, store="pooled", **PAPER)
    for phase, rows in zip(PHASES, one_phase_after_the_other(y), strict=True):
        clf.partial_fit(X[rows], y[rows]).end_phase()
        for label in [label for label in phase if np.any(y == label)]:
            own = X[y == label]
            shares.append(1 / len(own))
            A = A + own.T @ own / len(own)
            C = np.hstack([C, own.sum(axis=0)[:, None] / len(own)])
        scale = 1 / np.mean(shares)
        assert_close(clf.coef_, (np.linalg.inv(scale * A + gamma * np.eye(f)) @ (scale * C)).T)


# -- ACIL, GACL --
@pytest.mark.parametrize("classifier", [partial(ACILClassifier, **PAPER), RecursiveACILClassifier])
def test_acil_is_the_authors_recursion(digits, classifier):
    """Phase by phase, each with classes of its own: old columns W - R X'X W, new columns R X'Y."""
    X, y, *_ = digits
    gamma = 0.5
    R, W = np.eye(64) / gamma, np.zeros((64, 0))
    clf = classifier(gamma)
    for phase, rows in zip(PHASES, one_phase_after_the_other(y), strict=True):
        clf.partial_fit(X[rows], y[rows]).end_phase()
        Xk, Yk = X[rows], (y[rows, None] == np.array(phase)).astype(float)
        R = R - R @ Xk.T @ np.linalg.inv(np.eye(len(rows)) + Xk @ R @ Xk.T) @ Xk @ R
        W = np.hstack([W - R @ Xk.T @ (Xk @ W), R @ Xk.T @ Yk])
        assert_close(clf.coef_, W.T)


@pytest.mark.parametrize("classifier", [partial(ACILClassifier, **PAPER), RecursiveACILClassifier])
def test_gacl_is_the_authors_recursion_where_classes_return(long_tailed, classifier):
    """The same with labels of known classes in the old columns: W - R X'X W + R X'Y_known."""
    X, y, _ = long_tailed
    gamma = 0.5
    R, W, seen = np.eye(64) / gamma, np.zeros((64, 0)), []
    clf = classifier(gamma)
    for batch in np.array_split(np.arange(len(y)), 9):
        clf.partial_fit(X[batch], y[batch])
        new = [label for label in dict.fromkeys(y[batch].tolist()) if label not in seen]
        Xk, Y_known, Y_new = X[batch], y[batch, None] == np.array(seen), y[batch, None] == np.array(new)
        R = R - R @ Xk.T @ np.linalg.inv(np.eye(len(batch)) + Xk @ R @ Xk.T) @ Xk @ R
        W = np.hstack([W - R @ Xk.T @ (Xk @ W) + R @ Xk.T @ Y_known, R @ Xk.T @ Y_new])
        seen = seen + new
        assert_close(clf.coef_, W[:, np.argsort(seen)].T)


# -- RanPAC --
def test_ranpac_is_a_ridge_of_the_gamma_that_it_chose(digits):
    X, y, X_test, _ = digits
    clf = in_phases(RanPACClassifier(n_components=80, random_state=0), X, y)
    H, H_test = (np.maximum(a @ clf.expansion_.components_, 0) for a in (X, X_test))
    assert_close(clf.decision_function(X_test), H_test @ ridge(H, np.eye(10)[y], clf.gamma_))


@pytest.mark.parametrize("seed", range(4))
def test_ranpac_chooses_gamma_on_a_held_out_fifth_of_the_phase(seed, digits):
    X, y, *_ = digits
    # So that the best is inside the grid, and another one with other rows held out.
    noisy = X + np.random.default_rng(seed).normal(size=X.shape)
    clf = RanPACClassifier(n_components=80, random_state=0)
    for phase in ([0, 1, 2, 3, 4], [5, 6], [7, 8, 9]):
        rows = np.flatnonzero(np.isin(y, phase))
        clf.partial_fit(noisy[rows], y[rows]).end_phase()
        H, Y = np.maximum(noisy[rows] @ clf.expansion_.components_, 0), np.eye(10)[y[rows]]
        held = np.array([np.sum(y[rows][: i + 1] == label) % 5 == 0 for i, label in enumerate(y[rows])])
        errors = [((H[held] @ ridge(H[~held], Y[~held], 10.0**p) - Y[held]) ** 2).sum() for p in range(-8, 9)]
        best = np.flatnonzero(errors <= min(errors) + 1e-7 * held.sum())[-1]  # of equals, the largest
        assert clf.gamma_ == pytest.approx(10.0 ** (best - 8))
    assert 1e-8 < clf.gamma_ < 1e8


# -- DS-AL --
@pytest.mark.parametrize("batch", [17, 900])
def test_dsal_is_two_regressions_the_second_on_cleansed_residuals(digits, batch):
    """With all rows of a phase at hand; the second ridge is scaled by the size of its features, which is ours."""
    X, y, X_test, _ = digits
    f, gamma, c = 60, 0.2, 0.8
    clf = in_phases(DSALClassifier(gamma, compensation=c, n_components=f, random_state=1), X, y, batch)
    P, P_test = (a @ clf.expansion_.components_ for a in (X, X_test))
    H, T = np.maximum(P, 0), np.tanh(P)
    G, Q, G_t, Q_t = np.zeros((f, f)), np.zeros((f, 10)), np.zeros((f, f)), np.zeros((f, 10))
    for phase, rows in zip(PHASES, one_phase_after_the_other(y), strict=True):
        Y = np.eye(10)[y[rows]]
        G, Q, G_t = G + H[rows].T @ H[rows], Q + H[rows].T @ Y, G_t + T[rows].T @ T[rows]
        W = np.linalg.solve(G + gamma * np.eye(f), Q)
        residual = Y - H[rows] @ W
        residual[:, ~np.isin(np.arange(10), phase)] = 0  # previous label cleansing
        Q_t += T[rows].T @ residual
    W_t = np.linalg.solve(G_t + gamma * np.trace(G_t) / np.trace(G) * np.eye(f), Q_t)
    assert_close(clf.decision_function(X_test), np.maximum(P_test, 0) @ W + c * np.tanh(P_test) @ W_t)


# -- GKEAL --
@pytest.mark.parametrize("sigma", [1.5, 10.0, "median"])
def test_gkeal_is_a_ridge_on_kernel_values_at_samples(digits, sigma):
    X, y, X_test, _ = digits
    first = slice(0, 300)
    clf = GKEALClassifier(0.1, n_components=100, sigma=sigma, random_state=0).partial_fit(X[first], y[first])
    clf.partial_fit(X[300:], y[300:])  # no centre of these, and no part in the median
    centers = clf.expansion_.centers_
    assert all(any(np.array_equal(center, x) for x in X[first]) for center in centers)
    if sigma == "median":
        apart = np.linalg.norm(X[first, None] - X[None, first], axis=2)[np.triu_indices(300, 1)]
        sigma = np.median(apart)
    kernel = lambda a: np.exp(-(np.linalg.norm(a[:, None] - centers[None], axis=2) ** 2) / (2 * sigma**2))  # noqa: E731
    assert_close(clf.decision_function(X_test), kernel(X_test) @ ridge(kernel(X), np.eye(10)[y], 0.1))


def test_gkeals_width_is_in_the_units_of_the_features_and_in_the_file(digits, tmp_path):
    X, y, X_test, _ = digits
    clf = GKEALClassifier(0.1, n_components=100, random_state=0).fit(X, y)
    scaled = GKEALClassifier(0.1, n_components=100, random_state=0).fit(1000 * X, y)
    assert_close(scaled.decision_function(1000 * X_test), clf.decision_function(X_test))
    clf.save(tmp_path / "model")
    loaded = GKEALClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X_test), clf.decision_function(X_test))
    assert loaded.expansion_.sigma_ == clf.expansion_.sigma_ != 10


# -- AEF-OCL --
@pytest.mark.parametrize(("spread", "ddof"), [("sample", 1), ("population", 0)])
@pytest.mark.parametrize("width", [None, 90])
def test_aefocl_is_acil_on_classes_filled_up_with_pseudo_features(long_tailed, spread, ddof, width):
    """Published is the deviation over n - 1; of a class of one sample there are copies."""
    X, y, _ = long_tailed
    buffer = None if width is None else RandomReLU(width, random_state=0)
    clf = AEFOCLClassifier(0.1, spread=spread, expansion=buffer, random_state=5).fit(X, y)
    labels, count = np.unique(y, return_counts=True)
    assert set(count) >= {64, 2, 1}
    mean = np.stack([X[y == label].mean(axis=0) for label in labels])
    std = np.stack([X[y == label].std(axis=0, ddof=min(ddof, n - 1)) for label, n in zip(labels, count, strict=True)])
    lacking = np.repeat(np.arange(len(labels)), count.max() - count)
    noise = np.random.default_rng(5).standard_normal((len(lacking), X.shape[1]))
    filled = np.concatenate([X, mean[lacking] + std[lacking] * noise])
    H = filled if width is None else np.maximum(filled @ clf.expansion_.components_, 0)
    Y = np.concatenate([y, labels[lacking]])[:, None] == labels
    assert_close(clf.coef_, ridge(H, Y, 0.1).T)


def test_weights_below_one_sample_do_not_blow_up_aefocls_spread(long_tailed):
    """n - 1 of a class of two rows that weigh 1.001 together would make 1000 times the variance of it."""
    X, y, _ = long_tailed
    weight = np.where(y == 5, 1.001 / 2, 1.0)
    assert np.sum(y == 5) == 2
    clf = AEFOCLClassifier(0.1).fit(X, y, sample_weight=weight)
    plain = AEFOCLClassifier(0.1).fit(X, y)
    assert np.abs(clf.coef_ - plain.coef_).max() < 0.5 * np.abs(plain.coef_).max()


# -- SLDA --
def test_slda_is_the_running_means_and_the_running_covariance(long_tailed):
    """Sample by sample: S grows by c/(c + 1) of the square around the mean of the c samples before.

    The paper's t/(t + 1), for t samples of all classes, is that for a stream of one class.
    """
    X, y, X_test = long_tailed
    e, f = 1e-4, X.shape[1]
    mean, count, S = np.zeros((10, f)), np.zeros(10), np.zeros((f, f))
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        off, c = x - mean[label], count[label]
        S = (t * S + c / (c + 1) * np.outer(off, off)) / (t + 1)
        mean[label] += off / (c + 1)
        count[label] += 1
    mean = mean[count > 0]
    W = np.linalg.inv((1 - e) * S + e * np.eye(f)) @ mean.T
    clf = SLDAClassifier(e)
    for rows in np.array_split(np.arange(len(y)), 7):
        clf.partial_fit(X[rows], y[rows])
    assert_close(clf.decision_function(X_test), X_test @ W - 0.5 * (mean.T * W).sum(axis=0))


# -- FeCAM --
def shrunk(S, alpha):
    f = len(S)
    V1, V2 = np.diag(S).mean(), S[~np.eye(f, dtype=bool)].mean()
    return S + alpha * (V1 * np.eye(f) + V2 * (1 - np.eye(f)))


def fecam_distances(rows, X, alpha, rounds, normalize, power):
    """Tukey; S over n - 1, shrunk; correlations; features and mean at length 1; the distance."""
    rows, X = (np.sign(a) * np.abs(a) ** power for a in (rows, X))
    mean, S = rows.mean(axis=0), np.cov(rows.T)
    for _ in range(rounds):
        S = shrunk(S, alpha)
    deviations = np.sqrt(np.diag(S))
    if normalize:
        X, mean = X / np.linalg.norm(X, axis=1, keepdims=True), mean / np.linalg.norm(mean)
    off = X - mean
    return np.einsum("ni,ij,nj->n", off, np.linalg.pinv(S / np.outer(deviations, deviations)), off)


@pytest.mark.parametrize("per_class", [3, 20, 80])  # rows below f/2, a matrix beyond
@pytest.mark.parametrize("alpha", [0.3, 1.0, 100.0])
@pytest.mark.parametrize(("rounds", "normalize"), [(2, True), (1, False)])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_fecam_is_the_published_distance(digits, per_class, alpha, rounds, normalize, power):
    X, y, X_test, _ = digits
    keep = np.concatenate([np.flatnonzero(y == digit)[:per_class] for digit in range(10)])
    clf = FeCAMClassifier(alpha, rounds=rounds, normalize=normalize, power=power).fit(X[keep], y[keep])
    ours = -clf.decision_function(X_test[:5])
    for digit in range(10):
        rows = X[keep][y[keep] == digit]
        assert_close(ours[:, digit], fecam_distances(rows, X_test[:5], alpha, rounds, normalize, power))


def test_fecam_shrinks_by_the_sizes_of_the_classes(digits):
    X, y, X_test, _ = digits
    # f = 64; 20, 10 and 5 samples: the mean of 1/n is 0.35 / 3
    keep = np.concatenate([np.flatnonzero(y == digit)[: 20 >> digit] for digit in range(3)])
    auto = FeCAMClassifier().fit(X[keep], y[keep])
    assert auto.shrinkage_ == pytest.approx(64 / 5 * 0.35 / 3)
    given = FeCAMClassifier(auto.shrinkage_).fit(X[keep], y[keep])
    assert_close(auto.decision_function(X_test), given.decision_function(X_test))
    assert FeCAMClassifier().fit(X, y).shrinkage_ == 1.0  # no less than is published
    wide = np.tile(X[:20], 50)
    assert FeCAMClassifier().fit(wide, y[:20]).shrinkage_ == 100.0  # and no more


def test_fecams_default_is_better_than_one_round_of_1_on_a_long_tail(digits):
    X, y, X_test, y_test = digits
    keep = np.concatenate([np.flatnonzero(y == digit)[: 80 >> digit // 2] for digit in range(10)])
    scores = [
        balanced_accuracy_score(y_test, clf.fit(X[keep], y[keep]).predict(X_test))
        for clf in (FeCAMClassifier(), FeCAMClassifier(1.0, rounds=1, normalize=False))
    ]
    assert scores[0] > scores[1] + 0.03


@pytest.mark.parametrize("normalize", [True, False])
def test_a_class_of_one_sample_is_round(digits, normalize):
    X, y, X_test, _ = digits
    keep = np.concatenate([np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:1]])
    clf = FeCAMClassifier(power=1.0, normalize=normalize).fit(X[keep], y[keep])
    x, Z = X[keep[-1]], X_test
    if normalize:
        x, Z = x / np.linalg.norm(x), Z / np.linalg.norm(Z, axis=1, keepdims=True)
    assert_close(-clf.decision_function(X_test)[:, 3], ((Z - x) ** 2).sum(axis=1))


# -- NCM --
def test_ncm_is_the_cosine_to_the_class_means(digits):
    X, y, X_test, _ = digits
    means = np.stack([X[y == digit].mean(axis=0) for digit in range(10)])
    clf = NCMClassifier().fit(X, y)
    assert_close(clf.means_, means)
    lengths = np.linalg.norm(X_test, axis=1)[:, None] * np.linalg.norm(means, axis=1)
    assert_close(clf.decision_function(X_test), X_test @ means.T / lengths)
    assert np.all(clf.decision_function(np.zeros((1, 64))) == 0)


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (FeCAMClassifier("much"), "shrinkage='much' is not possible.*'auto'"),
        (FeCAMClassifier(rounds=0), "rounds=0 is not possible"),
        (AEFOCLClassifier(spread="n"), "spread='n' is unknown.*'population'"),
        (GKEALClassifier(sigma="mean"), "sigma must be .* or 'median', got 'mean'"),
    ],
)
def test_what_is_not_possible_is_refused(digits, classifier, message):
    with pytest.raises(ValueError, match=message):
        classifier.fit(digits[0][:50], digits[1][:50])
