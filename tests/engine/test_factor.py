"""A factor is a function of A_y alone, loses nothing, and can be taken apart again."""

import numpy as np
import pytest

from aircl.engine.factor import TAIL, Factor, rotate
from aircl.engine.statistics import StoreError


def moments(R):
    return R.T.astype(np.float64) @ R.astype(np.float64)


def random_orthogonal(n, rng):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


@pytest.mark.parametrize("rows", [1, 2, 3, 17])
def test_rotate_depends_on_the_second_moment_alone(rows):
    rng = np.random.default_rng(0)
    X = np.maximum(rng.normal(size=(rows, 40)), 0)
    X[:, :5] = 0  # leading zero columns, where a QR factor would return raw rows
    np.testing.assert_allclose(rotate(random_orthogonal(rows, rng) @ X), rotate(X), atol=1e-10)
    np.testing.assert_allclose(moments(rotate(X)), moments(X), atol=1e-12)


def test_rotate_drops_null_directions_and_keeps_small_ones():
    rng = np.random.default_rng(0)
    for small in (0.1, 1e-6):
        X = rng.normal(size=(3, 30)) * np.array([[1.0], [0.3], [small]])
        R = rotate(np.concatenate([X, X, np.zeros((2, 30))]))
        if small == 0.1:
            assert len(R) == 3
        singular = np.linalg.svd(R, compute_uv=False)[:3]
        np.testing.assert_allclose(singular, np.sqrt(2) * np.linalg.svd(X, compute_uv=False), rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [[1] * 100, [40, 3, 200, 1], [TAIL] * 4, [TAIL - 1] * 7])
def test_blocks_add_up(sizes, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(sum(sizes), 400)).astype(dtype)
    factor, start = Factor(400, np.dtype(dtype)), 0
    for size in sizes:
        factor.append(X[start : start + size])
        start += size
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(moments(factor.rows()), moments(X), atol=50 * eps * np.trace(moments(X)))
    assert len(factor) <= len(X)
    factor.seal()
    assert len(factor.blocks) == 1
    np.testing.assert_allclose(moments(factor.rows()), moments(X), atol=50 * eps * np.trace(moments(X)))
    np.testing.assert_allclose(factor.rows(), rotate(X), atol=5e4 * eps)


@pytest.mark.parametrize("duplicates", [0, 5])
def test_subtract_takes_rows_out_even_near_duplicates(duplicates):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 50))
    X[1 : 1 + duplicates] = X[0] + 1e-9 * rng.normal(size=(duplicates, 50))
    factor = Factor(50, np.dtype(np.float64))
    factor.append(X)
    left = factor.subtract(X[:4])
    np.testing.assert_allclose(moments(left.rows()), moments(X[4:]), atol=1e-12 * np.trace(moments(X)))
    assert np.allclose(moments(left.subtract(X[4:]).rows()), 0, atol=1e-12 * np.trace(moments(X)))


def test_subtract_refuses_rows_that_are_not_in_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 50))
    factor = Factor(50, np.dtype(np.float64))
    factor.append(X)
    for stranger in (rng.normal(size=(1, 50)), 2 * X[:1], np.concatenate([X[:1], X[:1]])):
        with pytest.raises(StoreError, match="not all learned"):
            factor.subtract(stranger)
