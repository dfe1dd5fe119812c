from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest


@pytest.fixture(scope="session")
def stream():
    """Return long-tailed rows of 12 features: X, y (60 to 1 a class) and sample weights."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(8), [60, 40, 30, 20, 10, 5, 2, 1]))
    X = rng.standard_normal((len(y), 12)) + 0.3 * y[:, None]
    return X, y, rng.integers(1, 4, len(y)).astype(float)


@pytest.fixture(scope="session")
def shards(stream):
    """Return the rows in seven shards of unequal size, one of them empty."""
    X, y, _ = stream
    bounds = [0, 20, 21, 60, 60, 100, 150, len(y)]
    return [(X[a:b], y[a:b]) for a, b in pairwise(bounds)]


def check_same(classifier, reference):
    """To the 1e-9 of the laws: rounding follows the order of sums."""
    np.testing.assert_array_equal(classifier.classes_, reference.classes_)
    np.testing.assert_allclose(classifier.class_count_, reference.class_count_, rtol=1e-12)
    np.testing.assert_allclose(classifier.coef_, reference.coef_, rtol=1e-9, atol=1e-9 * np.abs(reference.coef_).max())


def check_same_bits(classifier, reference):
    ours, theirs = (model._learner.sealed().statistics.arrays() for model in (classifier, reference))
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    np.testing.assert_array_equal(classifier._learner.state.labels.seen, reference._learner.state.labels.seen)


@pytest.fixture(scope="session")
def assert_same():
    return check_same


@pytest.fixture(scope="session")
def assert_same_bits():
    return check_same_bits
