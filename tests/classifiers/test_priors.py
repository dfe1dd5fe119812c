"""Class priors at prediction time: an exact change of the odds, which nothing is learned or solved for."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from aircl import ACILClassifier, AIRClassifier


def tail():
    X, y = load_digits(return_X_y=True)
    keep = np.concatenate([np.flatnonzero(y[:900] == digit)[: 80 >> digit // 2] for digit in range(10)])
    return X[keep] / 16, y[keep], X[900:] / 16, y[900:]


@pytest.mark.parametrize("calibrate", [True, False])
@pytest.mark.parametrize("priors", ["count", "equal", {digit: 1 + digit for digit in range(10)}])
@pytest.mark.parametrize("cls", [AIRClassifier, ACILClassifier])
def test_odds_change_by_the_ratio_of_the_priors(cls, priors, calibrate):
    X, y, X_test, _ = tail()
    clf = cls(0.1, calibrate=calibrate, expansion=None).fit(X, y)
    before, solution = clf.predict_log_proba(X_test), clf._learner.solved(clf._rule())
    clf.set_params(priors=priors)
    after = clf.predict_log_proba(X_test)
    assert clf._learner.solved(clf._rule()) is solution
    implied = np.ones(10) if cls is AIRClassifier else clf.class_count_
    asked = {"count": clf.class_count_, "equal": np.ones(10)}.get(str(priors), np.arange(1.0, 11.0))
    expected = before + np.log(asked / implied)
    expected -= np.log(np.exp(expected).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(after, expected, atol=1e-9)


@pytest.mark.parametrize("priors", ["count", {0: 0.5, 1: 0.5}])
def test_scores_answers_and_probabilities_agree(priors):
    X, y, X_test, _ = tail()
    for rows in (y < 10, y < 2) if priors == "count" else (y < 2,):
        clf = AIRClassifier(calibrate=True, priors=priors, expansion=None).fit(X[rows], y[rows])
        scores, P = clf.decision_function(X_test), clf.predict_proba(X_test)
        first = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        assert np.array_equal(clf.classes_[first], clf.predict(X_test))
        assert np.array_equal(clf.classes_[P.argmax(axis=1)], clf.predict(X_test))
        assert np.array_equal(clf.snapshot().predict_proba(X_test), P)


def test_counts_as_priors_are_right_for_data_as_imbalanced_as_the_stream():
    X, y, X_test, y_test = tail()
    rows = np.concatenate([np.flatnonzero(y_test == digit)[: 80 >> digit // 2] for digit in range(10)])
    clf = AIRClassifier(calibrate=True, expansion=None).fit(X, y)
    own = y_test[rows]
    before = -clf.predict_log_proba(X_test[rows])[np.arange(len(rows)), own].mean()
    expected = clf.expected_accuracy()
    clf.set_params(priors="count")
    after = -clf.predict_log_proba(X_test[rows])[np.arange(len(rows)), own].mean()
    assert after < before
    by_count = clf.expected_accuracy()
    assert by_count.overall == pytest.approx(by_count.per_class @ clf.class_count_ / clf.class_count_.sum())
    assert by_count.per_class[:2].mean() > expected.per_class[:2].mean()  # the head wins, the tail loses
    assert by_count.per_class[8:].mean() < expected.per_class[8:].mean()


def test_a_class_that_cannot_occur_is_not_predicted():
    X, y, X_test, _ = tail()
    clf = AIRClassifier(
        0.1, calibrate=True, priors={digit: float(digit != 3) for digit in range(10)}, expansion=None
    ).fit(X, y)
    assert not np.any(clf.predict(X_test) == 3)
    assert clf.predict_proba(X_test)[:, 3].max() == 0.0
    assert clf.expected_accuracy().per_class[3] == 0.0


def test_bad_priors_are_refused_and_change_nothing():
    X, y, X_test, _ = tail()
    clf = AIRClassifier(0.1, expansion=None).fit(X, y)
    answers = clf.predict(X_test)
    for priors, message in (
        ("often", "priors='often'"),
        (0.5, "priors=0.5"),
        ({0: 1.0}, r"no probability for the classes \[1, 2"),
        (dict.fromkeys(range(10), -1.0), "not negative"),
        (dict.fromkeys(range(10), 0.0), "not all zero"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.set_params(priors=priors).predict(X_test)
    assert np.array_equal(clf.set_params(priors=None).predict(X_test), answers)


@pytest.mark.parametrize("priors", [None, "count", {"a": 3.0, "b": 1.0}])
def test_a_file_keeps_them(priors, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3)) + 1.0
    clf = AIRClassifier(0.1, calibrate=True, priors=priors, expansion=None).fit(X, np.repeat(["a", "b"], [30, 10]))
    clf.save(tmp_path / "model.safetensors")
    loaded = AIRClassifier.load(tmp_path / "model.safetensors")
    assert loaded.priors == priors
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=1e-6)
