"""The engine's own functions on tensors, where they have a second way out: singular, indefinite and empty matrices."""

import numpy as np
import pytest

from aircl.engine import StoreError
from aircl.engine.factor import factor, grouped, without_rows
from aircl.engine.solve import SingularError, solve_ridge

torch = pytest.importorskip("torch", reason="torch is not installed")


def problem(n, f):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, f))
    return X.T @ X, X.T @ rng.normal(size=(n, 3))


def test_solve_reads_the_lower_triangle_only():
    G, B = problem(50, 20)
    spoiled = torch.from_numpy(np.tril(G) + np.triu(np.full_like(G, np.nan), 1))
    np.testing.assert_allclose(solve_ridge(spoiled, torch.from_numpy(B), 0.3), solve_ridge(G, B, 0.3), rtol=1e-10)


def test_gamma_zero_solves_a_regular_problem_and_refuses_a_singular_one():
    G, B = problem(50, 20)
    W = solve_ridge(torch.from_numpy(G), torch.from_numpy(B), 0.0)
    np.testing.assert_allclose(W, solve_ridge(G, B, 0.0), rtol=1e-8)
    for n in (1, 19):
        G, B = problem(n, 20)
        with pytest.raises(SingularError, match="gamma > 0"):
            solve_ridge(torch.from_numpy(G), torch.from_numpy(B), 0.0)
    with pytest.raises(SingularError):
        solve_ridge(torch.zeros(3, 3), torch.zeros(3, 2), 0.0)


def test_rounding_below_zero_is_clipped():
    G, B = problem(10, 20)
    V = np.linalg.eigh(G)[1][:, :5]
    dented = G - 1e-5 * V @ V.T
    W = solve_ridge(torch.from_numpy(dented), torch.from_numpy(B), 1e-6)
    expected = solve_ridge(G, B, 1e-6)
    np.testing.assert_allclose(W, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("rows", [0, 1, 2, 17, 40])
def test_a_factor_is_that_of_arrays(rows):
    X = np.maximum(np.random.default_rng(0).normal(size=(rows, 60)), 0)
    np.testing.assert_allclose(factor(torch.from_numpy(X)), factor(X), atol=1e-9)
    R = grouped(torch.from_numpy(X))
    np.testing.assert_allclose(R, grouped(X), atol=1e-9)
    np.testing.assert_allclose(R.T @ R, X.T @ X, atol=1e-12)


def test_rows_are_taken_out_to_the_last_and_others_refused():
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(10, 50)))
    with pytest.raises(StoreError, match="not all learned"):
        without_rows(factor(X), 2 * X[:1])
    left = without_rows(factor(X), X[:4])
    np.testing.assert_allclose(left.T @ left, X[4:].T @ X[4:], atol=1e-11)
    nothing = without_rows(left, X[4:])
    np.testing.assert_allclose(nothing.T @ nothing, 0, atol=1e-11)
    assert len(without_rows(X[:0], X[:0])) == 0
