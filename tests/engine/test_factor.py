"""A factor is a function of A_y alone, loses nothing, and can be taken apart again."""

from itertools import pairwise

import numpy as np
import pytest

from aircl.engine import Space, StoreError
from aircl.engine.factor import GROUP_ROWS, factor, grouped, without_rows
from aircl.engine.moments import SecondMoment


def moments(R):
    return R.T.astype(np.float64) @ R.astype(np.float64)


def random_orthogonal(n, rng):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


@pytest.mark.parametrize("rows", [1, 2, 3, 17])
def test_a_factor_depends_on_the_second_moment_alone(rows):
    rng = np.random.default_rng(0)
    X = np.maximum(rng.normal(size=(rows, 40)), 0)
    X[:, :5] = 0  # leading zero columns, where a QR factor would return raw rows
    np.testing.assert_allclose(factor(random_orthogonal(rows, rng) @ X), factor(X), atol=1e-10)
    np.testing.assert_allclose(moments(factor(X)), moments(X), atol=1e-12)


@pytest.mark.parametrize("rows", [2, 5, 16])
def test_repeated_eigenvalues_do_not_matter(rows):
    """Orthogonal rows of equal length: every basis of them is one of eigenvectors, and still there is one factor."""
    rng = np.random.default_rng(0)
    for X in (np.eye(40)[:rows], random_orthogonal(40, rng)[:rows]):
        R = factor(random_orthogonal(rows, rng) @ X)
        np.testing.assert_allclose(R, factor(X), atol=1e-12)
        np.testing.assert_allclose(moments(R), moments(X), atol=1e-12)
        assert np.abs(R @ X.T).max() < 0.999  # no row of X, nor its negative


def test_a_factor_is_its_own_factor():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 30))
    R = factor(np.concatenate([X, X[:4]]))
    assert len(R) == 9
    np.testing.assert_allclose(factor(R), R, atol=1e-12)


def test_null_directions_are_dropped_and_small_ones_kept():
    rng = np.random.default_rng(0)
    for small in (0.1, 1e-6):
        X = rng.normal(size=(3, 30)) * np.array([[1.0], [0.3], [small]])
        R = factor(np.concatenate([X, X, np.zeros((2, 30))]))
        if small == 0.1:
            assert len(R) == 3
        singular = np.linalg.svd(R, compute_uv=False)[:3]
        np.testing.assert_allclose(singular, np.sqrt(2) * np.linalg.svd(X, compute_uv=False), rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [[1] * 100, [40, 3, 120, 1], [GROUP_ROWS] * 4, [GROUP_ROWS - 1] * 7])
def test_blocks_add_up(sizes, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(sum(sizes), 400)).astype(dtype)
    moment, start = SecondMoment(Space(400, dtype)), 0
    for size in sizes:
        moment = moment.plus(X[start : start + size])
        start += size
    assert moment.packed is None
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(moments(moment.all_rows()), moments(X), atol=50 * eps * np.trace(moments(X)))
    assert moment.n_rows <= len(X)
    raw = {row.tobytes() for row in X}
    assert not any(row.tobytes() in raw for row in moment.all_rows())
    sealed = moment.sealed()
    assert len(sealed.rows) == 1
    np.testing.assert_allclose(moments(sealed.all_rows()), moments(X), atol=50 * eps * np.trace(moments(X)))
    np.testing.assert_allclose(sealed.all_rows(), factor(X), atol=5e5 * eps)


@pytest.mark.parametrize("rows", [40, 127])
def test_a_factor_is_grouped_without_a_loss(rows):
    """Parts of a factor are factored again when it is merged: none of their directions may seem to be missing."""
    X = np.maximum(np.random.default_rng(0).normal(size=(rows, 300)), 0)
    R = factor(X)
    for part in (R, R[:15], R[-15:], R[10:27]):
        np.testing.assert_allclose(moments(factor(part)), moments(part), atol=1e-10)
        np.testing.assert_allclose(moments(grouped(part)), moments(part), atol=1e-10)
    np.testing.assert_allclose(factor(grouped(R)), R, atol=1e-9)


@pytest.mark.parametrize("sizes", [[1, 40], [40, 1], [1, 1, 20], [17, 1, 1, 16]])
def test_no_row_of_several_stays_as_it_came(sizes):
    X = np.random.default_rng(0).normal(size=(sum(sizes), 200))
    moment = SecondMoment(Space(200, np.float64))
    for rows in np.split(X, np.cumsum(sizes)[:-1]):
        moment = moment.plus(rows)
    R = moment.all_rows()
    np.testing.assert_allclose(moments(R), moments(X), atol=1e-10)
    alike = R @ X.T / (np.linalg.norm(R, axis=1)[:, None] * np.linalg.norm(X, axis=1))
    assert np.abs(alike).max() < 0.99


@pytest.mark.parametrize("n", [GROUP_ROWS + 1, 2 * GROUP_ROWS + 3])
def test_groups_have_the_second_moments_of_their_rows_and_none_of_the_rows(n):
    X = np.random.default_rng(0).normal(size=(n, 40))
    k = -(-n // GROUP_ROWS)
    for start, stop in pairwise(n * group // k for group in range(k + 1)):
        R = grouped(X)[start:stop]
        assert 2 <= len(R) <= GROUP_ROWS
        np.testing.assert_allclose(moments(R), moments(X[start:stop]), atol=1e-10)
        alike = R @ X.T / (np.linalg.norm(R, axis=1)[:, None] * np.linalg.norm(X, axis=1))
        assert np.abs(alike).max() < 0.9


@pytest.mark.parametrize("duplicates", [0, 5])
def test_rows_are_taken_out_even_near_duplicates(duplicates):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 50))
    X[1 : 1 + duplicates] = X[0] + 1e-9 * rng.normal(size=(duplicates, 50))
    left = without_rows(factor(X), X[:4])
    np.testing.assert_allclose(moments(left), moments(X[4:]), atol=1e-12 * np.trace(moments(X)))
    assert np.allclose(moments(without_rows(left, X[4:])), 0, atol=1e-12 * np.trace(moments(X)))


def test_rows_that_are_not_in_it_are_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 50))
    for not_learned in (rng.normal(size=(1, 50)), 2 * X[:1], np.concatenate([X[:1], X[:1]])):
        with pytest.raises(StoreError, match="not all learned"):
            without_rows(factor(X), not_learned)
