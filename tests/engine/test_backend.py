"""Lower and packed forms hold the same symmetric matrix, and every backend computes the same."""

import importlib.util

import numpy as np
import pytest

from aircl.engine.backend import NUMPY, PACKED_PIECE, packed_size, torch_backend

without_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(params=["numpy", pytest.param("torch", marks=without_torch)])
def backend(request):
    return NUMPY if request.param == "numpy" else torch_backend("cpu")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 64])
def test_lower_and_packed_updates_agree_with_numpy(backend, n_features, dtype):
    rng = np.random.default_rng(0)
    A = backend.lower_zeros(n_features, dtype)
    P = backend.zeros(packed_size(n_features), dtype)
    expected = np.zeros((n_features, n_features))
    for rows, alpha in ((5, 1.0), (0, 1.0), (3, -0.5)):
        X = rng.normal(size=(rows, n_features)).astype(dtype)
        backend.add_gram(A, backend.asarray(X), alpha)
        backend.packed_add_gram(P, backend.asarray(X), alpha)
        expected += alpha * X.T.astype(float) @ X
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    unpacked = backend.unpack(P, n_features)
    np.testing.assert_allclose(backend.to_numpy(backend.symmetric(A)), expected, **tolerance)
    np.testing.assert_allclose(backend.to_numpy(backend.symmetric(unpacked)), expected, **tolerance)
    np.testing.assert_array_equal(backend.pack(unpacked), P)
    B = rng.normal(size=(n_features, 2)).astype(dtype)
    product = backend.to_numpy(backend.symmetric_product(A, backend.asarray(np.asfortranarray(B))))
    np.testing.assert_allclose(product, expected @ B, **tolerance)
    twice = backend.copy(P)
    backend.packed_add(twice, [(0.5, P), (1.5, P)])
    np.testing.assert_allclose(backend.to_numpy(twice), 3 * backend.to_numpy(P), rtol=1e-6)


def test_long_packed_matrices_are_added_in_pieces(backend):
    P, Q, R = np.random.default_rng(0).normal(size=(3, 2 * PACKED_PIECE + 17))
    total = backend.asarray(P.copy())
    backend.packed_add(total, [(2.0, backend.asarray(Q)), (-0.5, backend.asarray(R))])
    np.testing.assert_allclose(backend.to_numpy(total), P + 2.0 * Q - 0.5 * R, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_features", [1, 2, 3, 8])
def test_the_packed_layout_is_lapacks(backend, n_features):
    A = np.tril(np.random.default_rng(0).normal(size=(n_features, n_features)))
    np.testing.assert_array_equal(backend.to_numpy(backend.pack(backend.asarray(A))), NUMPY.pack(np.asfortranarray(A)))


def test_rows_of_another_layout_are_taken(backend):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(9, 4)))
    A = backend.lower_zeros(4, np.float64)
    backend.add_gram(A, backend.asarray(X)[::2])
    np.testing.assert_allclose(backend.to_numpy(backend.symmetric(A)), X[::2].T @ X[::2])


def test_cholesky_tells_rounding_from_a_negative_eigenvalue(backend):
    A = backend.asarray(np.diag([1.0, 1e-3, -1e-9]))
    assert backend.cholesky(A, 1e-8) is not None
    assert backend.cholesky(A, 1e-10) is None


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_and_means_of_sorted_rows(backend, weighted):
    rng = np.random.default_rng(0)
    rows, start = rng.normal(size=(6, 3)), np.array([0, 1, 4])
    weight = rng.uniform(size=6) if weighted else None
    w = np.ones(6) if weight is None else weight
    expected = [(w[a:b, None] * rows[a:b]).sum(axis=0) for a, b in ((0, 1), (1, 4), (4, 6))]
    sums = backend.class_sums(backend.asarray(rows), start, weight)
    np.testing.assert_allclose(backend.to_numpy(sums), expected)
    centred = backend.subtract_means(backend.asarray(rows), sums, start, weight)
    expected = rows - w[:, None] * np.repeat(expected, [1, 3, 2], axis=0)
    np.testing.assert_allclose(backend.to_numpy(centred), expected)


@pytest.mark.parametrize("shape", [(5, 5), (40, 6), (6, 40), (9, 4)])
def test_a_qr_decomposition_has_a_positive_diagonal(backend, shape):
    A = np.random.default_rng(0).normal(size=shape)
    Q, diagonal = (backend.to_numpy(part) for part in backend.qr(backend.asarray(A)))
    R = Q.T @ A
    np.testing.assert_allclose(Q @ R, A, atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(min(shape)), atol=1e-12)
    np.testing.assert_allclose(np.diagonal(R), diagonal, atol=1e-12)
    assert np.all(diagonal > 0)
    np.testing.assert_allclose(np.tril(R, -1), 0, atol=1e-12)
