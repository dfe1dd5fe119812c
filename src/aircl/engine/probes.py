"""Traces of one class's second moment at every gamma: exact for few rows, estimated for a large packed matrix."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from aircl.engine.backend import Array, symmetric_product
from aircl.engine.gamma import Spectrum

# Up to this width a packed matrix is turned into the eigenbasis, which costs O(f^3) a class.
EXACT_WIDTH = 512
# Beyond, traces are means over this many random sign vectors (Hutchinson), at O(f^2) a class.
N_PROBES = 16


class Probes:
    """tr(K A) and tr(W'A W) for K and W at every gamma, as functions of A.

    A class is packed once it has f/2 rows or more. Its leverage is then small and its second moment of high rank, where
    a few sign vectors tell the trace well; the same vectors serve all gammas and classes, so curves stay smooth.

    Parameters
    ----------
    spectrum : Spectrum
    shrinkage : array of shape (g, f)
        Diagonals of K in the eigenbasis.

    References
    ----------
    M. F. Hutchinson, "A Stochastic Estimator of the Trace of the Influence Matrix for Laplacian Smoothing Splines",
    1989.
    """

    def __init__(self, spectrum: Spectrum, shrinkage: Array) -> None:
        self._V, self._B, self._means, self._count = spectrum.V, spectrum.B, spectrum.means, spectrum.count
        self._d = shrinkage

    def of_rows(self, blocks: list[Array]) -> tuple[Array, Array]:
        """Return both traces for A = R'R, R in blocks of rows. Cost O(r f (f + g C))."""
        diagonal = np.zeros(self._d.shape[1])
        spread = np.zeros(len(self._d))
        for block in blocks:
            Z = block @ self._V
            diagonal += np.square(Z, dtype=np.float64).sum(axis=0)
            for i, d in enumerate(self._d.astype(Z.dtype)):
                spread[i] += np.square((Z * d) @ self._B.T, dtype=np.float64).sum()
        return self._d @ diagonal, spread

    def of_matrix(self, A: Array, slot: int) -> tuple[Array, Array]:
        """Return both traces for the A of a class, in its lower form. Cost O(f^3), or O(f^2 g) for wide ones."""
        if len(A) <= EXACT_WIDTH:
            in_basis = self._V.T @ symmetric_product(A, self._V)
            spread = np.einsum("gf,fg->g", self._d, (in_basis * self._BB).astype(np.float64) @ self._d.T)
            return self._d @ np.diag(in_basis).astype(np.float64), spread
        # The mean stands out of the scatter around it, so its part n m'm is taken exactly and only the rest estimated.
        signs, signs_in_basis, scores = self._signs
        count, mean = self._count[slot], self._means[slot]  # in the eigenbasis
        of_mean = count * (self._d @ np.square(mean, dtype=np.float64))
        along = self._V.T @ symmetric_product(A, signs) - count * np.outer(mean, mean @ signs_in_basis)  # (f, q)
        leverage = of_mean + self._d @ (along * signs_in_basis).mean(axis=1)
        mean_scores = (mean @ self._V.T) @ scores  # (g q,)
        spread = (scores * symmetric_product(A, scores)).sum(axis=0, dtype=np.float64) - count * mean_scores**2
        spread_of_mean = count * np.square((mean * self._d) @ self._B.T).sum(axis=1)
        return leverage, spread_of_mean + spread.reshape(len(self._d), -1).mean(axis=1)

    @cached_property
    def _BB(self) -> Array:
        return np.asarray(self._B.T @ self._B)

    @cached_property
    def _signs(self) -> tuple[Array, Array, Array]:
        """Sign vectors of the features, also in the eigenbasis, (f, q); and W times those of the classes, (f, g q)."""
        rng = np.random.default_rng(0)
        dtype = self._V.dtype
        signs = np.asfortranarray(rng.choice([-1.0, 1.0], size=(len(self._V), N_PROBES)), dtype=dtype)
        Bw = self._B.T @ rng.choice([-1.0, 1.0], size=(len(self._B), N_PROBES)).astype(dtype)  # (f, q)
        shrunk = self._d.astype(dtype).T[:, :, None] * Bw[:, None, :]  # (f, g, q)
        return signs, (self._V.T @ signs).astype(np.float64), self._V @ shrunk.reshape(len(self._V), -1)
