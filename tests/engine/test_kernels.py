"""The kernels are those of SciPy's wrappers, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import blas, lapack

from aircl.engine import kernels

DTYPES = [np.float32, np.float64]


def wrapper(module, name, dtype):
    return getattr(module, ("s" if dtype == np.float32 else "d") + name)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype, rng):
    X = rng.standard_normal((30, 17)).astype(dtype)
    A = np.asfortranarray(rng.standard_normal((17, 17)).astype(dtype))
    B = rng.standard_normal((17, 5)).astype(dtype)
    np.testing.assert_array_equal(kernels.symm(A, B), wrapper(blas, "symm", dtype)(1.0, A, B, lower=1))
    expected = wrapper(blas, "syrk", dtype)(0.3, X.T, beta=1.0, c=A, lower=1)
    kernels.syrk(0.3, X, A)
    np.testing.assert_array_equal(np.tril(A), np.tril(expected))


@pytest.mark.parametrize("f", [16, 17])
@pytest.mark.parametrize("dtype", DTYPES)
def test_packed_products(f, dtype, rng):
    X, P = rng.standard_normal((30, f)).astype(dtype), rng.standard_normal(f * (f + 1) // 2).astype(dtype)
    expected = wrapper(lapack, "sfrk", dtype)(f, 30, 0.3, X.T, 1.0, P.copy(), uplo="L")
    kernels.sfrk(0.3, X, P)
    np.testing.assert_array_equal(P, expected)


def test_factorisations(rng):
    X = rng.standard_normal((30, 17))
    A, B = np.asfortranarray(X.T @ X), rng.standard_normal((17, 5))
    L = A.copy(order="F")
    assert kernels.potrf(L)
    expected, _ = lapack.dpotrf(A, lower=1, clean=0)
    np.testing.assert_array_equal(np.tril(L), np.tril(expected))
    np.testing.assert_array_equal(kernels.potrs(L, B), lapack.dpotrs(L, B, lower=1)[0])
    assert not kernels.potrf(np.asfortranarray(-A))
    assert B.flags.c_contiguous


def test_an_array_in_another_order_is_refused(rng):
    with pytest.raises(ValueError, match="Fortran order"):
        kernels.syrk(1.0, rng.standard_normal((30, 17)), np.zeros((17, 17)))
