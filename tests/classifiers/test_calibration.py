"""Calibrated probabilities of the classifiers: the laws, and what they gain on data."""

import importlib.util

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from aircl import (
    ACILClassifier,
    AEFOCLClassifier,
    AIRClassifier,
    DSALClassifier,
    GKEALClassifier,
    RandomReLU,
    RanPACClassifier,
    RecursiveACILClassifier,
    SLDAClassifier,
)
from aircl.engine import calibration

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

STORES = ("per-class", "shared", "pooled")
every_store = pytest.mark.parametrize("store", STORES)


def digits(tail):
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)
    if tail:
        keep = np.concatenate([np.flatnonzero(y == digit)[: 80 >> digit // 2] for digit in range(10)])
        X, y = X[keep], y[keep]
    return X, X_test, y, y_test


def gaussian(tail):
    rng = np.random.default_rng(1)
    C, f = 8, 20
    means, mix = rng.normal(size=(C, f)) * 0.5 + 1.0, rng.normal(size=(f, f)) / f**0.5 + 0.5 * np.eye(f)

    def draw(counts):
        y = np.repeat(np.arange(C), counts)
        return means[y] + rng.normal(size=(len(y), f)) @ mix, y

    (X, y), (X_test, y_test) = draw([128 >> c if tail else 60 for c in range(C)]), draw([500] * C)
    return X, X_test, y, y_test


def stream():
    X, _, y, _ = digits(tail=True)
    return X, np.array([f"digit {label}" for label in y])


def same(one, other):
    """The stated tolerance: 1e-9 of the intercepts, which are of the size of 0.01 to 0.1."""
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-9)
    assert one.temperature_ == pytest.approx(other.temperature_, rel=1e-8)


@every_store
def test_order_split_and_merge_change_nothing(store):
    X, y = stream()
    clf = AIRClassifier(0.1, store=store, calibrate=True, expansion=None)
    once = AIRClassifier(0.1, store=store, calibrate=True, expansion=None).fit(X, y)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 7):
        clf.partial_fit(X[rows], y[rows])
    same(once, clf)
    cut = np.isin(y, [f"digit {digit}" for digit in (1, 4, 9)])
    parts = [
        AIRClassifier(0.1, store=store, calibrate=True, expansion=None).fit(X[part], y[part]) for part in (cut, ~cut)
    ]
    same(once, parts[0].merge(parts[1]))


def test_forgetting_is_as_never_learned():
    X, y = stream()
    clf = AIRClassifier(0.1, calibrate=True, expansion=None).fit(X, y).forget(classes=["digit 3"])
    same(clf, AIRClassifier(0.1, calibrate=True, expansion=None).fit(X[y != "digit 3"], y[y != "digit 3"]))


@every_store
def test_a_file_keeps_it(store, tmp_path):
    X, y = stream()
    clf = AIRClassifier(store=store, calibrate=True, expansion=None).fit(X, y)
    clf.save(tmp_path / "model.safetensors")
    loaded = AIRClassifier.load(tmp_path / "model.safetensors")
    assert loaded.calibrate is True
    same(clf, loaded)
    assert loaded.gamma_ == clf.gamma_
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=1e-4)


@every_store
def test_a_file_of_float32_changes_scores_by_what_the_solve_makes_of_rounding(store, tmp_path):
    """Sealing rounds A_y, and the solve multiplies that by tr(G) / gamma at the most; calibration adds nothing."""
    X, y = stream()
    clf = AIRClassifier(store=store)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 5):
        clf.partial_fit(X[rows].astype(np.float32), y[rows])
    scores, b = clf.decision_function(X.astype(np.float32)), clf.intercept_
    tolerance = np.finfo(np.float32).eps * np.trace(clf._solution().problem.G) / clf.gamma_
    clf.save(tmp_path / "model.safetensors")
    loaded = AIRClassifier.load(tmp_path / "model.safetensors")
    assert tolerance < 0.02
    np.testing.assert_allclose(loaded.decision_function(X.astype(np.float32)), scores, rtol=0, atol=tolerance)
    np.testing.assert_allclose(loaded.intercept_, b, rtol=0, atol=1e-4)


def test_fit_twice_has_the_same_bits():
    X, y = stream()
    np.random.seed(0)  # noqa: NPY002 - the global state, which must not matter
    one = AIRClassifier(calibrate=True, expansion=None).fit(X, y).intercept_
    np.random.seed(1)  # noqa: NPY002
    assert one.tobytes() == AIRClassifier(calibrate=True, expansion=None).fit(X, y).intercept_.tobytes()


@every_store
def test_other_labels_permute_the_intercept(store):
    X, y = stream()
    clf = AIRClassifier(0.1, store=store, calibrate=True, expansion=None).fit(X, y)
    order = np.random.default_rng(0).permutation(10)
    labels = order[np.searchsorted(clf.classes_, y)]
    other = AIRClassifier(0.1, store=store, calibrate=True, expansion=None).fit(X, labels)
    np.testing.assert_allclose(other.intercept_[order], clf.intercept_, atol=1e-5)
    assert other.temperature_ == pytest.approx(clf.temperature_, rel=1e-4)
    assert clf.intercept_.std() > 1e-3  # it is not that there is nothing to permute


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_tensors_give_the_same():
    import torch

    X, y = stream()
    clf = AIRClassifier(0.1, calibrate=True, expansion=None).fit(X, y)
    tensors = AIRClassifier(0.1, calibrate=True, expansion=None).fit(torch.from_numpy(X), y)
    np.testing.assert_allclose(tensors.intercept_.numpy(), clf.intercept_, atol=1e-5)
    log_p = tensors.predict_log_proba(torch.from_numpy(X[:5]))
    np.testing.assert_allclose(log_p.numpy(), clf.predict_log_proba(X[:5]), atol=1e-3)


# Of digits the temperature was far too low. Of normal classes with one covariance the leave-one-out temperature is
# right already; where nothing tells that they have one, being careful costs a little.
@pytest.mark.parametrize(("data", "most", "band"), [(digits, 0.8, 0.06), (gaussian, 1.05, 0.1)])
@pytest.mark.parametrize("tail", [False, True], ids=["whole", "tail"])
@pytest.mark.parametrize("expansion", [None, RandomReLU(300, random_state=0)], ids=["plain", "buffer"])
@every_store
def test_log_loss_and_expected_accuracy(data, most, band, tail, expansion, store):
    X, X_test, y, y_test = data(tail)
    before = AIRClassifier(store=store, expansion=expansion, calibrate=False).fit(X, y)
    after = AIRClassifier(store=store, expansion=expansion, calibrate=True).fit(X, y)
    losses = [log_loss(y_test, clf.predict_proba(X_test)) for clf in (before, after)]
    real = [balanced_accuracy_score(y_test, clf.predict(X_test)) for clf in (before, after)]
    assert losses[1] < most * (1.0 if store == "per-class" else 1.1) * losses[0], losses
    assert real[1] > real[0] - 0.005, real
    expected = after.expected_accuracy()
    assert abs(expected.overall - real[1]) < band, (expected.overall, real)


@every_store
def test_classes_that_scatter_towards_their_rivals_are_not_taken_for_certain(store):
    # Half of a class lies near one rival: the pooled scatter hardly has that direction, and would expect 100 %.
    rng = np.random.default_rng(0)
    C, f, n = 30, 60, 40
    centres = rng.normal(size=(C, f)) * 2.0

    def sample():
        y = np.repeat(np.arange(C), n)
        share = np.where(rng.random(len(y)) < 0.5, 0.0, rng.uniform(0.3, 0.8, len(y)))[:, None]
        mixed = (1 - share) * centres[y] + share * centres[(y + 1) % C]
        return np.maximum(mixed + rng.normal(size=(len(y), f)) * 0.5, 0.0), y

    (X, y), (X_test, y_test) = sample(), sample()
    clf = AIRClassifier(store=store, calibrate=True, expansion=None).fit(X, y)
    P = clf.predict_proba(X_test)
    accuracy = (clf.classes_[P.argmax(axis=1)] == y_test).mean()
    assert 0.8 < accuracy < 0.95
    assert abs(clf.expected_accuracy().overall - accuracy) < 0.06
    assert np.mean(P.max(axis=1).round(6) == 1.0) < 0.01
    exact = AIRClassifier(calibrate=True, expansion=None).fit(X, y).predict_proba(X_test)
    assert log_loss(y_test, P) < 1.1 * log_loss(y_test, exact)


def test_scores_answers_and_probabilities_agree():
    X, X_test, y, _ = digits(tail=True)
    for rows in (y < 10, y < 2):
        clf = AIRClassifier(calibrate=True, expansion=None).fit(X[rows], y[rows])
        scores, P, log_P = clf.decision_function(X_test), clf.predict_proba(X_test), clf.predict_log_proba(X_test)
        answers = clf.predict(X_test)
        first = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        assert np.array_equal(clf.classes_[first], answers)
        assert np.array_equal(clf.classes_[P.argmax(axis=1)], answers)
        np.testing.assert_allclose(np.exp(log_P), P, rtol=1e-9)
        if scores.ndim == 2:
            np.testing.assert_allclose(scores, X_test @ clf.coef_.T + clf.intercept_, rtol=1e-9, atol=1e-12)
            assert np.array_equal(clf.snapshot().predict_log_proba(X_test), log_P)


def test_they_agree_where_two_scores_differ_in_their_last_digit():
    rng = np.random.default_rng(0)
    means, y = rng.normal(size=(10, 8)), np.arange(300) % 10
    clf = AIRClassifier(expansion=None).fit(means[y] + 0.3 * rng.normal(size=(300, 8)), y)
    one, other = means[rng.integers(0, 10, (2, 200))]
    own = clf.predict(one)
    for _ in range(60):  # to where the answer changes
        middle = (one + other) / 2
        same = (clf.predict(middle) == own)[:, None]
        one, other = np.where(same, middle, one), np.where(same, other, middle)
    X = np.concatenate([one, other])
    scores = np.sort(clf.decision_function(X), axis=1)
    assert np.mean(scores[:, -1] - scores[:, -2] < 1e-15) > 0.5
    for found in (clf.decision_function(X), clf.predict_proba(X), clf.predict_log_proba(X)):
        assert np.array_equal(clf.classes_[found.argmax(axis=1)], clf.predict(X))


def test_log_probabilities_do_not_vanish():
    clf = AIRClassifier(1e-3, calibrate=True, expansion=None).fit(*classes_far_apart())
    far = 1e4 * np.eye(2)
    log_p = clf.predict_log_proba(far)
    assert np.all(np.isfinite(log_p))
    assert clf.predict_proba(far).min() == 0.0
    assert log_p.min() < -1000


def classes_far_apart():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    return np.eye(2)[y] + 0.1 * rng.normal(size=(40, 2)), y


def test_uniform_weights_weigh_by_counts():
    X, X_test, y, _ = gaussian(tail=True)
    clf = ACILClassifier(calibrate=True, expansion=None).fit(X, y)
    expected, count = clf.expected_accuracy(), np.bincount(y)
    assert expected.overall == pytest.approx(expected.per_class @ count / count.sum())
    assert clf.predict_proba(X_test).mean(axis=0)[0] > 1.5 / 8  # a prior of a half, and test data of an eighth


def test_expected_confusions_add_up_and_are_sorted():
    X, _, y, _ = digits(tail=False)
    clf = AIRClassifier(calibrate=True, expansion=None).partial_fit(X, y, classes=np.arange(11))
    expected = clf.expected_accuracy()
    wrong = np.zeros(11)
    for true, _, share in expected.confusions:
        wrong[true] += share
    np.testing.assert_allclose(wrong[:10] + expected.per_class[:10], 1.0)
    assert np.isnan(expected.per_class[10])
    shares = [share for _, _, share in expected.confusions]
    assert shares == sorted(shares, reverse=True)
    assert clf.predict_log_proba(X[:1])[0, 10] == -np.inf


def test_it_can_be_switched_on_later():
    X, _, y, _ = digits(tail=False)
    clf = AIRClassifier(**PAPER).fit(X, y)
    assert not clf.intercept_.any()
    with pytest.raises(ValueError, match=r"set_params\(calibrate=True\)"):
        clf.expected_accuracy()
    path = clf.gamma_path_
    clf.set_params(calibrate=True)
    assert clf.intercept_.any()
    assert clf.gamma_path_ is path  # nothing was searched for again
    same(clf, AIRClassifier(calibrate=True, expansion=None).fit(X, y))
    with pytest.raises(ValueError, match="calibrate='yes'"):
        clf.set_params(calibrate="yes").predict(X)


def test_one_sample_of_each_class_is_not_calibrated_but_answers():
    X, y = np.eye(4), np.array(list("abcd"))
    clf = AIRClassifier(0.1, calibrate=True, expansion=None).fit(X, y)
    assert clf.predict(X).tolist() == list("abcd")
    P = clf.predict_proba(X)
    assert P.max() / P.min() < np.e + 1e-9
    assert np.isnan(clf.expected_accuracy().overall)


# -- other scores that are linear in x --
@pytest.mark.parametrize("tail", [False, True], ids=["whole", "tail"])
def test_discriminants_are_calibrated_by_the_same_means(tail):
    X, X_test, y, y_test = digits(tail)
    plain, calibrated = (SLDAClassifier(calibrate=calibrate).fit(X, y) for calibrate in (False, True))
    losses = [log_loss(y_test, clf.predict_proba(X_test)) for clf in (plain, calibrated)]
    assert losses[1] < 0.8 * losses[0], losses
    real = [balanced_accuracy_score(y_test, clf.predict(X_test)) for clf in (plain, calibrated)]
    assert real[1] > real[0] - 0.01
    assert calibrated.temperature_ > plain.temperature_ == 1.0
    P = calibrated.predict_proba(X_test)
    assert np.array_equal(calibrated.classes_[P.argmax(axis=1)], calibrated.predict(X_test))


def test_calibrated_discriminants_obey_the_laws(tmp_path):
    X, y = stream()
    once = SLDAClassifier(calibrate=True).fit(X, y)
    clf = SLDAClassifier(calibrate=True)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 7):
        clf.partial_fit(X[rows], y[rows])
    unit = once.decision_function(X).std()
    np.testing.assert_allclose(clf.intercept_, once.intercept_, atol=1e-4 * unit)
    clf.save(tmp_path / "model.safetensors")
    loaded = SLDAClassifier.load(tmp_path / "model.safetensors")
    assert loaded.temperature_ == pytest.approx(once.temperature_, rel=1e-4)
    single = SLDAClassifier(calibrate=True).fit(np.eye(3), [0, 1, 2])  # no scatter: nothing can be told
    assert single.predict(np.eye(3)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="calibrate='yes'"):
        SLDAClassifier(calibrate="yes").fit(X, y)


BUFFER = RandomReLU(300, random_state=0)
OTHERS = [
    RanPACClassifier(n_components=300, random_state=0),
    DSALClassifier(n_components=150, random_state=0),
    AEFOCLClassifier(expansion=BUFFER),
    GKEALClassifier(n_components=300, random_state=0),
    RecursiveACILClassifier(0.1, expansion=BUFFER),
]


@pytest.mark.parametrize("clf", OTHERS, ids=lambda clf: type(clf).__name__)
def test_other_regressions_are_calibrated_by_the_same_means(clf):
    X, X_test, y, y_test = digits(tail=False)
    plain = clone(clf).fit(X, y)
    calibrated = clone(clf).set_params(calibrate=True).fit(X, y)
    scores, log_p = calibrated.decision_function(X_test), calibrated.predict_log_proba(X_test)
    assert calibrated.intercept_.any()
    assert np.array_equal(calibrated.classes_[log_p.argmax(axis=1)], calibrated.predict(X_test))
    assert calibrated.score(X_test, y_test) > plain.score(X_test, y_test) - 0.01
    temperatures = calibrated.temperature_ * np.logspace(-1, 1, 41)
    best = min(log_loss(y_test, softmax(scores / temperature, axis=1)) for temperature in temperatures)
    assert log_loss(y_test, np.exp(log_p)) < 1.2 * best
    if not isinstance(clf, GKEALClassifier):  # whose probabilities rank classes
        assert not hasattr(plain, "predict_proba")


def test_what_is_the_same_regression_has_the_same_probabilities():
    X, X_test, y, _ = digits(tail=True)
    expected = ACILClassifier(0.1, expansion=None).fit(X, y).predict_proba(X_test)
    recursive = RecursiveACILClassifier(0.1, calibrate=True).fit(X, y)
    np.testing.assert_allclose(recursive.predict_proba(X_test), expected, atol=1e-4)
    held_out = RanPACClassifier(0.1, n_components=None, calibrate=True).fit(X, y)
    np.testing.assert_allclose(held_out.predict_proba(X_test), expected, atol=1e-4)


def test_of_many_classes_some_stand_for_all(monkeypatch):
    """More than so many classes: what is expected of the others is not told, the mean is; the laws hold."""
    monkeypatch.setattr(calibration, "ALL_CLASSES", 20)
    monkeypatch.setattr(calibration, "EXPECTED_SCORES", 1)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(80), 6)
    X = rng.normal(size=(80, 12))[y] + rng.normal(size=(480, 12))
    clf, order = AIRClassifier(expansion=None).fit(X, y), rng.permutation(480)
    expected = clf.expected_accuracy()
    assert np.isfinite(expected.per_class).sum() == 64
    assert expected.overall == pytest.approx(np.nanmean(expected.per_class))
    assert not clf.intercept_.any()
    again = AIRClassifier(expansion=None).fit(X[order], -y[order])
    assert again.temperature_ == pytest.approx(clf.temperature_, rel=1e-9)
    np.testing.assert_array_equal(again.expected_accuracy().per_class[::-1], expected.per_class)
