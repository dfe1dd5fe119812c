"""The numerical kernels of the engine, for NumPy arrays; `torch_backend` has the same ones for torch tensors.

A symmetric matrix is held in one of two ways. *Lower*: an (f, f) array (Fortran-ordered in NumPy) of which only the
lower triangle is meaningful, the fastest to update. *Packed*: the f(f+1)/2 numbers of LAPACK's rectangular full packed
format, half the memory, still updated by level-3 BLAS; sums of packed matrices are sums of vectors.

Rows, sums and second moments are arrays of a backend. What there is one of per class or per row (counts, weights,
slots) is small and always NumPy; `column` and `index` bring it to where the rows are.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import blas, lapack
from scipy.special import log_softmax, softmax

from aircl.engine import kernels

# A tensor goes by this name too: the engine uses of an array only what the two have in common, or a backend's methods.
Array = npt.NDArray[Any]

# Sums of this many float32 rows lose no digit that matters.
SHORT_RUN = 64

# Numbers of a packed matrix that stay in a core's cache while others are added to them; few enough that BLAS does not
# wake up a second thread for them, which takes longer than the sum.
PACKED_PIECE = 2**13

# Up to so many rows, what NumPy does around a QR decomposition takes longer than the decomposition.
SMALL_QR = 32

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def is_tensor(X: Any) -> bool:
    """Tell whether X is a torch tensor, without importing torch: who has a tensor has imported it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def backend_of(X: Any) -> NumpyBackend:
    """Return the backend that computes with arrays like X, where X lives."""
    return torch_backend(X.device) if is_tensor(X) else NUMPY


def torch_backend(device: Any) -> NumpyBackend:
    """Return the backend of tensors on a device."""
    try:
        from aircl.engine.torch_backend import TorchBackend
    except ImportError as error:
        raise ImportError("tensors need torch, which is not installed: pip install 'aircl[torch]'.") from error
    return TorchBackend.on(device)


def packed_size(n_features: int) -> int:
    """Return how many numbers a packed symmetric (f, f) matrix has."""
    return n_features * (n_features + 1) // 2


def _kernel(module: Any, name: str, dtype: np.dtype[Any]) -> Any:
    return getattr(module, ("s" if dtype == np.float32 else "d") + name)


@dataclass(frozen=True)  # any two are equal, also after pickling
class NumpyBackend:
    """Arrays in main memory, by BLAS and LAPACK; what the engine uses, and what `TorchBackend` does with tensors."""

    name: ClassVar[str] = "NumPy arrays"
    device: ClassVar[str] = "cpu"
    spills: ClassVar[bool] = True  # a memory limit can be kept: arrays can live in files

    def no_grad(self) -> AbstractContextManager[Any]:
        """Return the context to change statistics in."""
        return nullcontext()

    # -- making and moving --
    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return zeros."""
        return np.zeros(shape, dtype=dtype)

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return room for numbers."""
        return np.empty(shape, dtype=dtype)

    def asarray(self, values: Array) -> Array:
        """Return a NumPy array as an array of this backend that nobody else holds."""
        return np.array(values)

    def to_numpy(self, A: Array) -> Array:
        """Return an array of this backend as a NumPy array."""
        return A

    def dtype(self, A: Array) -> np.dtype[Any]:
        """Return the dtype of an array, as NumPy names it."""
        return A.dtype

    def cast(self, A: Array, dtype: Any) -> Array:
        """Return A in another dtype, itself if it has it."""
        return A.astype(dtype, copy=False)

    def double(self, A: Array) -> Array:
        """Return A in float64."""
        return self.cast(A, np.float64)

    def copy(self, A: Array) -> Array:
        """Return a copy, in the layout A has."""
        return np.array(A)

    def index(self, indices: Array) -> Array:
        """Return whole numbers to index rows or columns with."""
        return indices

    def column(self, values: Array, like: Array) -> Array:
        """Return one number per row of `like`, in its dtype, as a column to multiply it with."""
        return values[:, None].astype(like.dtype, copy=False)

    def take(self, A: Array, rows: Array) -> Array:
        """Return a copy of some rows of A."""
        return np.take(A, rows, axis=0, mode="clip")  # indices are right

    def concatenate(self, arrays: list[Array]) -> Array:
        """Put rows below rows."""
        return np.concatenate(arrays)

    # -- numbers --
    def square(self, A: Array) -> Array:
        """Return the squares, float64."""
        squares: Array = self.double(A) ** 2
        return squares

    def clip(self, A: Array, low: float | None = None, high: float | None = None) -> Array:
        """Bring what is below `low` or above `high` to there, in place."""
        return np.clip(A, low, high, out=A)

    def exp(self, A: Array) -> Array:
        """Take the exponentials, in place."""
        return np.asarray(np.exp(A, out=A))

    def softmax(self, A: Array) -> Array:
        """Return the softmax of every row."""
        return np.asarray(softmax(A, axis=1))

    def log_softmax(self, A: Array) -> Array:
        """Return the logarithms of the softmax of every row."""
        return np.asarray(log_softmax(A, axis=1))

    def max_abs(self, A: Array) -> float:
        """Return the largest absolute value, NaN if there is one, 0 of nothing."""
        return max(abs(float(A.max())), abs(float(A.min()))) if len(A) else 0.0

    def trace(self, A: Array) -> float:
        """Return the trace, summed in float64."""
        return float(self.double(A.diagonal()).sum())

    # -- classes of rows --
    def class_sums(self, rows: Array, start: Array, weight: Array | None) -> Array:
        """Return the weighted sums of the rows from each start to the next, shape (k, f), float64."""
        one = np.ones(len(rows)) if weight is None else weight
        # Short runs in the rows' own dtype, fast; the runs of a class in float64, so that rounding does not grow.
        n_runs = -(-np.diff(np.append(start, len(rows))) // SHORT_RUN)
        first_run = np.cumsum(n_runs) - n_runs
        run_start = np.repeat(start - SHORT_RUN * first_run, n_runs) + SHORT_RUN * np.arange(n_runs.sum())
        indicator = sparse.csr_matrix(
            (one.astype(rows.dtype), np.arange(len(rows)), np.append(run_start, len(rows))),
            shape=(len(run_start), len(rows)),
        )
        return np.add.reduceat(indicator @ rows, first_run, axis=0, dtype=np.float64)

    def subtract_means(self, rows: Array, mean: Array, start: Array, root_weight: Array | None) -> Array:
        """Return every row minus `root_weight` times its class's mean (k, f); rows as in `class_sums`."""
        mean, centred = mean.astype(rows.dtype), np.empty(rows.shape, rows.dtype)
        for i, (first, last) in enumerate(zip(start.tolist(), [*start[1:].tolist(), len(rows)], strict=True)):
            scaled = mean[i] if root_weight is None else root_weight[first:last, None].astype(rows.dtype) * mean[i]
            np.subtract(rows[first:last], scaled, out=centred[first:last])
        return centred

    # -- symmetric matrices, lower --
    def lower_zeros(self, n_features: int, dtype: npt.DTypeLike) -> Array:
        """Return an (f, f) zero matrix that `add_gram` can update in place."""
        return np.zeros((n_features, n_features), dtype=dtype, order="F")

    def add_gram(self, A: Array, X: Array, alpha: float = 1.0) -> None:
        """Add alpha X'X to A in the lower triangle, in place (SYRK: half the work of a general product)."""
        kernels.syrk(alpha, np.ascontiguousarray(X, dtype=A.dtype), A)

    def symmetric_product(self, A: Array, B: Array) -> Array:
        """Return AB for a symmetric A in its lower form, shape (f, k)."""
        return kernels.symm(A, B)

    def inner_product(self, A: Array, B: Array) -> float:
        """Return tr(AB) for symmetric matrices in their lower form, summed in float64."""
        lower = np.tril(B).astype(np.float64, copy=False)
        lower[np.diag_indices_from(lower)] /= 2.0
        return 2.0 * float(np.einsum("ij,ij->", A, lower))

    def symmetric(self, A: Array) -> Array:
        """Mirror the lower triangle of A into a new, complete symmetric matrix."""
        full: Array = np.tril(A)
        full += np.tril(A, -1).T
        return full

    # -- symmetric matrices, packed --
    def packed_add_gram(self, P: Array, X: Array, alpha: float = 1.0) -> None:
        """Add alpha X'X to a packed P, in place."""
        kernels.sfrk(alpha, np.ascontiguousarray(X, dtype=P.dtype), P)

    def packed_add(self, P: Array, terms: list[tuple[float, Array]]) -> None:
        """Add weighted packed matrices to P, in place: piece by piece, so that of P each piece moves to memory once."""
        axpy = _kernel(blas, "axpy", P.dtype)
        for start in range(0, len(P), PACKED_PIECE):
            piece = slice(start, start + PACKED_PIECE)
            for weight, Q in terms:
                axpy(Q[piece], P[piece], a=weight)

    def unpack(self, P: Array, n_features: int) -> Array:
        """Return a packed matrix in its lower form."""
        A, _ = _kernel(lapack, "tfttr", P.dtype)(n_features, P, uplo="L")
        return np.asarray(A)

    def pack(self, A: Array) -> Array:
        """Return a lower matrix in its packed form."""
        P, _ = _kernel(lapack, "trttf", A.dtype)(A, uplo="L")
        return np.asarray(P)

    # -- factorisations --
    def eigh(self, A: Array) -> tuple[Array, Array]:
        """Return the eigenvalues of a complete symmetric A, ascending, and its eigenvectors as columns."""
        try:
            eigenvalues, V = np.linalg.eigh(A)
        except np.linalg.LinAlgError as error:  # numbers that were learned do not come to this, forged ones may
            size = f"{np.abs(A[np.isfinite(A)]).max(initial=0.0):.1e}"
            raise ValueError(
                f"second moments of a size up to {size} cannot be solved ({error}). Learn again, or scale the features."
            ) from error
        return eigenvalues, V

    def qr(self, A: Array) -> tuple[Array, Array]:
        """Return Q of A = QR, R upper triangular with a diagonal >= 0, and that diagonal; float64."""
        if len(A) > SMALL_QR or A.shape[1] > len(A):
            Q, R = np.linalg.qr(A)
        else:
            R, tau, *_ = lapack.dgeqrf(A)
            Q, *_ = lapack.dorgqr(R, tau)
        diagonal = R.diagonal()
        return Q * np.where(diagonal < 0, -1.0, 1.0), np.abs(diagonal)

    def cholesky(self, A: Array, shift: float) -> Array | None:
        """Return the Cholesky factor of A (lower) + shift I in float64, None if that is not positive definite."""
        shifted = np.array(A, dtype=np.float64, order="F")
        shifted[np.diag_indices_from(shifted)] += shift
        return shifted if kernels.potrf(shifted) else None

    def cholesky_solve(self, L: Array, B: Array) -> Array:
        """Return the solution of LL'W = B, float64."""
        return kernels.potrs(L, B)

    def cholesky_inverse(self, L: Array) -> Array:
        """Return the inverse of LL', lower, float64."""
        K, _ = lapack.dpotri(L, lower=1)
        return np.asarray(K)

    def reciprocal_condition(self, A: Array, L: Array) -> float:
        """Return an estimate of the reciprocal condition number of A (lower) with Cholesky factor L."""
        lower = np.abs(np.tril(A))
        strict = lower - np.diag(np.diag(lower))
        one_norm = float((lower.sum(axis=0) + strict.sum(axis=1)).max())
        return float(lapack.dpocon(L, one_norm, uplo="L")[0])


NUMPY = NumpyBackend()
