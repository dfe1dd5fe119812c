"""The kernels of `backend` for torch tensors, on the device they live on: the one file here that imports torch.

Nothing here brings rows, sums or second moments to the CPU; what travels is one number per class or per row, and single
numbers. A packed matrix has the same layout as in NumPy, so files are the same too.
"""

# mypy: disable-error-code="override, misc"
# tensors in place of arrays, and a device that is not the same for all

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from aircl.engine.backend import Array, NumpyBackend, packed_size

_DTYPES: dict[np.dtype[Any], torch.dtype] = {np.dtype(np.float64): torch.float64, np.dtype(np.float32): torch.float32}
_NAMES = {ours: name for name, ours in _DTYPES.items()}


@dataclass(frozen=True)
class TorchBackend(NumpyBackend):
    """Tensors on one device; what the methods do, `NumpyBackend` says.

    Parameters
    ----------
    device : str
    """

    device: str
    spills: ClassVar[bool] = False

    @classmethod
    def on(cls, device: Any) -> TorchBackend:
        """Return the backend of a device by any of its names: "cuda" is "cuda:0" to a tensor."""
        if not isinstance(device, torch.device):
            device = torch.empty(0, device=device).device
        if device.type == "mps":
            raise ValueError("an 'mps' device has no float64 to solve in. Use tensors on the CPU: X.cpu().")
        return cls(str(device))

    @property
    def name(self) -> str:
        """What it holds, for messages."""
        return f"torch tensors on {self.device}"

    @contextmanager
    def no_grad(self) -> Iterator[None]:
        """Return the context to change statistics in: what is made in inference mode could not be updated later."""
        with torch.inference_mode(False), torch.no_grad():
            yield

    # -- making and moving --
    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Tensor:
        return torch.zeros(shape, dtype=_DTYPES[np.dtype(dtype)], device=self.device)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return torch.empty(shape, dtype=_DTYPES[np.dtype(dtype)], device=self.device)

    def asarray(self, values: Array) -> Tensor:
        return torch.tensor(values, device=self.device)

    def to_numpy(self, A: Tensor) -> Array:
        return A.cpu().numpy()

    def dtype(self, A: Tensor) -> np.dtype[Any]:
        return _NAMES[A.dtype]

    def cast(self, A: Tensor, dtype: Any) -> Tensor:
        return A.to(dtype if isinstance(dtype, torch.dtype) else _DTYPES[np.dtype(dtype)])

    def copy(self, A: Tensor) -> Tensor:
        return A.clone()

    def index(self, indices: Array) -> Tensor:
        return torch.as_tensor(np.asarray(indices, dtype=np.int64), device=self.device)

    def column(self, values: Array, like: Tensor) -> Tensor:
        return torch.as_tensor(values, dtype=like.dtype, device=self.device)[:, None]

    def take(self, A: Tensor, rows: Array) -> Tensor:
        return torch.index_select(A, 0, self.index(rows))

    def concatenate(self, arrays: list[Tensor]) -> Tensor:
        return torch.cat(arrays)

    # -- numbers --
    def clip(self, A: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
        return A.clamp_(low, high)

    def exp(self, A: Tensor) -> Tensor:
        return A.exp_()

    def softmax(self, A: Tensor) -> Tensor:
        return A.softmax(1)

    def log_softmax(self, A: Tensor) -> Tensor:
        return A.log_softmax(1)

    # -- classes of rows --
    def class_sums(self, rows: Tensor, start: Array, weight: Array | None) -> Tensor:
        sums = torch.zeros((len(start), rows.shape[1]), dtype=torch.float64, device=self.device)
        wide = rows.double()
        if weight is not None:
            wide = wide * self.column(weight, wide)
        return sums.index_add_(0, self._class_of_row(start, len(rows)), wide)

    def subtract_means(self, rows: Tensor, mean: Tensor, start: Array, root_weight: Array | None) -> Tensor:
        means = mean.to(rows.dtype).index_select(0, self._class_of_row(start, len(rows)))
        return rows - (means if root_weight is None else means.mul_(self.column(root_weight, rows)))

    def _class_of_row(self, start: Array, n_rows: int) -> Tensor:
        return self.index(np.repeat(np.arange(len(start)), np.diff(np.append(start, n_rows))))

    # -- symmetric matrices, lower --
    def lower_zeros(self, n_features: int, dtype: Any) -> Tensor:
        return self.zeros((n_features, n_features), dtype)

    def add_gram(self, A: Tensor, X: Tensor, alpha: float = 1.0) -> None:
        if len(X):
            X = X.to(A.dtype)
            A.addmm_(X.T, X, alpha=alpha)

    def symmetric_product(self, A: Tensor, B: Tensor) -> Tensor:
        return self.symmetric(A) @ B

    def inner_product(self, A: Tensor, B: Tensor) -> float:
        lower = B.tril().double()
        lower.diagonal().div_(2.0)
        return 2.0 * float((A * lower).sum())

    def symmetric(self, A: Tensor) -> Tensor:
        return A.tril().add_(A.tril(-1).T)

    # -- symmetric matrices, packed --
    def packed_add_gram(self, P: Tensor, X: Tensor, n_features: int, alpha: float = 1.0) -> None:
        """Add alpha X'X to a packed P, in place: three quarters of the work of a general product."""
        if len(X) == 0:
            return
        X = X.to(P.dtype)
        low, below, high = self._parts(P, n_features)
        left, right = X[:, : len(low)], X[:, len(low) :]
        low += (left.T @ left).tril_().mul_(alpha)
        below.addmm_(right.T, left, alpha=alpha)
        high += (right.T @ right).tril_().mul_(alpha)

    def packed_add(self, P: Tensor, terms: list[tuple[float, Tensor]]) -> None:
        for weight, Q in terms:
            P.add_(Q, alpha=weight)

    def unpack(self, P: Tensor, n_features: int) -> Tensor:
        low, below, high = self._parts(P, n_features)
        A = P.new_zeros((n_features, n_features))
        A[: len(low), : len(low)] = low.tril()
        A[len(low) :, : len(low)] = below
        A[len(low) :, len(low) :] = high.tril()
        return A

    def pack(self, A: Tensor) -> Tensor:
        P = A.new_zeros(packed_size(len(A)))
        low, below, high = self._parts(P, len(A))
        low += A[: len(low), : len(low)].tril()
        below += A[len(low) :, : len(low)]
        high += A[len(low) :, len(low) :].tril()
        return P

    def _parts(self, P: Tensor, n_features: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return views of A's blocks: A_11 and A_22, of which only the lower triangles are theirs, and A_21 between.

        P is a rectangle of c columns. The lower triangle of the first c rows and columns of A starts at row `shift`,
        followed by the other rows of these columns; the rest of A stands transposed in the upper triangle that starts
        at column `1 - shift`.
        """
        c, shift = (n_features + 1) // 2, 1 - n_features % 2
        rectangle = P.reshape(c, -1).T
        return rectangle[shift : c + shift], rectangle[c + shift :], rectangle[: n_features - c, 1 - shift :].T

    # -- factorisations --
    def eigh(self, A: Tensor) -> tuple[Tensor, Tensor]:
        eigenvalues, V = torch.linalg.eigh(A)
        return eigenvalues, V

    def qr(self, A: Tensor) -> tuple[Tensor, Tensor]:
        Q, R = torch.linalg.qr(A)
        diagonal = R.diagonal()
        return Q * torch.where(diagonal < 0, -1.0, 1.0).to(A.dtype), diagonal.abs()

    def cholesky(self, A: Tensor, shift: float) -> Tensor | None:
        shifted = A.to(torch.float64, copy=True)
        shifted.diagonal().add_(shift)
        L, info = torch.linalg.cholesky_ex(shifted)  # reads the lower triangle only
        return L if int(info) == 0 else None

    def cholesky_solve(self, L: Tensor, B: Tensor) -> Tensor:
        return torch.cholesky_solve(B.double(), L)

    def cholesky_inverse(self, L: Tensor) -> Tensor:
        return torch.cholesky_inverse(L)

    def reciprocal_condition(self, A: Tensor, L: Tensor) -> float:
        eigenvalues = torch.linalg.eigvalsh(A.double())
        return max(float(eigenvalues[0] / eigenvalues[-1]), 0.0)
