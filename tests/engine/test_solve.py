"""The closed-form solution, where it exists and where it does not."""

import numpy as np
import pytest

from aircl.engine.solve import SingularError, solve_ridge


def problem(n, f, rng=0):
    rng = np.random.default_rng(rng)
    X = rng.normal(size=(n, f))
    return X.T @ X, X.T @ rng.normal(size=(n, 3))


def test_solves_the_normal_equations_and_reads_the_lower_triangle_only():
    G, B = problem(50, 20)
    W = solve_ridge(np.tril(G) + np.triu(np.full_like(G, np.nan), 1), B, 0.3)
    np.testing.assert_allclose((G + 0.3 * np.eye(20)) @ W, B, rtol=1e-9, atol=1e-9)


def test_gamma_zero_solves_a_regular_problem_and_refuses_a_singular_one():
    G, B = problem(50, 20)
    np.testing.assert_allclose(G @ solve_ridge(G, B, 0.0), B, rtol=1e-8, atol=1e-8)
    for n in (1, 19):
        G, B = problem(n, 20)
        with pytest.raises(SingularError, match="gamma > 0"):
            solve_ridge(G, B, 0.0)
    with pytest.raises(SingularError):
        solve_ridge(np.zeros((3, 3)), np.zeros((3, 2)), 0.0)


def test_rounding_below_zero_is_clipped():
    """float32 sums can have eigenvalues slightly below zero; the solution is that of the nearest sum of squares."""
    G, B = problem(10, 20)
    V = np.linalg.eigh(G)[1][:, :5]
    dented = G - 1e-5 * V @ V.T
    clean, rounded = solve_ridge(G, B, 1e-6), solve_ridge(dented, B, 1e-6)
    np.testing.assert_allclose(rounded, clean, rtol=1e-6, atol=1e-6 * np.abs(clean).max())
