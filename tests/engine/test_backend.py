"""Lower and packed forms hold the same symmetric matrix."""

import numpy as np
import pytest

from aircl.engine import backend


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 64])
def test_lower_and_packed_updates_agree_with_numpy(n_features, dtype):
    rng = np.random.default_rng(0)
    A = backend.lower_zeros(n_features, dtype)
    P = np.zeros(backend.packed_size(n_features), dtype)
    expected = np.zeros((n_features, n_features))
    for rows, alpha in ((5, 1.0), (0, 1.0), (3, -0.5)):
        X = rng.normal(size=(rows, n_features)).astype(dtype)
        backend.add_gram(A, X, alpha)
        backend.packed_add_gram(P, X, n_features, alpha)
        expected += alpha * X.T.astype(float) @ X
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(backend.symmetric(A), expected, **tolerance)
    np.testing.assert_allclose(backend.symmetric(backend.unpack(P, n_features)), expected, **tolerance)
    np.testing.assert_array_equal(backend.pack(backend.unpack(P, n_features)), P)
    np.testing.assert_array_equal(backend.packed_diagonal(P, n_features), np.diag(backend.unpack(P, n_features)))
    twice = P.copy()
    backend.packed_axpy(twice, P, 2.0)
    np.testing.assert_allclose(twice, 3 * P, rtol=1e-6)


def test_rows_of_another_layout_are_taken():
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(9, 4)))[::2]
    A = backend.lower_zeros(4, np.float64)
    backend.add_gram(A, X)
    np.testing.assert_allclose(backend.symmetric(A), X.T @ X)


def test_is_positive_tells_rounding_from_a_negative_eigenvalue():
    A = np.diag([1.0, 1e-3, -1e-9])
    assert backend.is_positive(A, slack=1e-8)
    assert not backend.is_positive(A, slack=1e-10)
