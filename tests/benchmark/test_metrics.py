"""The metrics of the protocol, against hand-computed cases and scikit-learn."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from aircl.benchmark.metrics import (
    accuracy,
    backward_transfer,
    balanced_accuracy,
    calibration,
    class_accuracy,
    confusion_matrix,
    forgetting,
    forward_transfer,
    group_accuracies,
    mean_and_standard_error,
)

CLASSES = np.array([2, 3, 5, 9])


@given(st.lists(st.tuples(st.sampled_from(CLASSES.tolist()), st.sampled_from(CLASSES.tolist())), min_size=1))
def test_against_scikit_learn(pairs):
    true, predicted = np.array(pairs).T
    confusion = confusion_matrix(true, predicted, CLASSES)
    np.testing.assert_array_equal(confusion, sklearn_metrics.confusion_matrix(true, predicted, labels=CLASSES))
    assert accuracy(confusion) == pytest.approx(sklearn_metrics.accuracy_score(true, predicted))
    present = np.unique(true)
    recall = sklearn_metrics.recall_score(true, predicted, labels=present, average=None, zero_division=0)
    assert balanced_accuracy(confusion) == pytest.approx(recall.mean())
    np.testing.assert_allclose(class_accuracy(confusion)[np.isin(CLASSES, present)], recall)
    assert np.isnan(class_accuracy(confusion)[~np.isin(CLASSES, present)]).all()


def test_nothing_to_measure_is_nan():
    empty = confusion_matrix(CLASSES[:0], CLASSES[:0], CLASSES)
    assert np.isnan(accuracy(empty))
    assert np.isnan(balanced_accuracy(empty))


def test_forgetting_by_hand():
    nan = np.nan
    # Class 0: best 0.9, now 0.5. Class 1: best 0.8, now 0.9. Class 2 came last. Class 3 has no test samples.
    by_phase = np.array([[0.9, nan, nan, nan], [0.7, 0.8, nan, nan], [0.5, 0.9, 1.0, nan]])
    assert forgetting(by_phase) == pytest.approx((0.4 - 0.1) / 2)
    assert forgetting(by_phase[:1]) == 0.0


def test_groups_have_the_limits_of_the_protocol():
    counts = np.array([101, 100, 20, 19, 1])
    assert group_accuracies(np.array([0.1, 0.2, 0.4, 0.5, 0.7]), counts) == {
        "head": pytest.approx(0.1),
        "middle": pytest.approx(0.3),
        "tail": pytest.approx(0.6),
    }
    assert group_accuracies(np.array([np.nan, 0.2]), np.array([500, 50])) == {"middle": 0.2}


def test_standard_error():
    assert mean_and_standard_error([1.0, 2.0, 4.0]) == pytest.approx((7 / 3, np.std([1, 2, 4], ddof=1) / np.sqrt(3)))
    mean, error = mean_and_standard_error([0.5])
    assert mean == 0.5
    assert np.isnan(error)


def test_transfer_by_hand():
    nan = np.nan
    by_class = np.array([[0.9, nan, nan], [0.6, 0.8, nan], [0.7, 0.5, 0.9]])
    assert backward_transfer(by_class) == pytest.approx((0.7 - 0.9 + 0.5 - 0.8) / 2)
    assert backward_transfer(by_class[:1]) == 0.0
    by_domain = np.array([[0.9, 0.5, 0.4], [0.8, 0.9, 0.6], [0.7, 0.8, 0.9]])
    assert forward_transfer(by_domain, chance=0.1) == pytest.approx((0.5 + 0.6) / 2 - 0.1)
    assert np.isnan(forward_transfer(by_domain[:1, :1], chance=0.1))


def test_calibration_against_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 500)
    true = CLASSES[rng.integers(0, 4, 500)]
    found = calibration(true, CLASSES, p)
    assert found["NLL"] == pytest.approx(sklearn_metrics.log_loss(true, p, labels=CLASSES))
    assert found["expected_accuracy"] == pytest.approx(p.max(axis=1).mean())
    right, sure = p.argmax(axis=1) == np.searchsorted(CLASSES, true), p.max(axis=1)
    edges = np.linspace(0, 1, 16)
    bins = [(sure >= low) & (sure < high) for low, high in pairwise(edges)]
    assert found["ECE"] == pytest.approx(sum(abs(right[b].mean() - sure[b].mean()) * b.mean() for b in bins if b.any()))


def test_probabilities_that_are_right_have_no_error():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 100_000)
    true = CLASSES[(p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)]
    found = calibration(true, CLASSES, p)
    assert found["ECE"] < 0.01
    assert found["expected_accuracy"] == pytest.approx(
        np.mean(p.argmax(axis=1) == np.searchsorted(CLASSES, true)), abs=0.01
    )
