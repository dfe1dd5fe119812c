"""Traces of one class's second moment at every gamma: exact for few rows, estimated for a large packed matrix."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from aircl.engine.backend import Array
from aircl.engine.gamma import Spectrum
from aircl.engine.moment import SecondMoment

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
        self._V, self._B, self._count = spectrum.V, spectrum.B, spectrum.count
        self._means = spectrum.means * spectrum.unit  # those of A, whose units are the features' own
        self._d = shrinkage
        self._backend = spectrum.backend

    def of(self, moment: SecondMoment, slot: int) -> tuple[Array, Array]:
        """Return tr(K A_y) and tr(W'A_y W) at every gamma, each of shape (g,), for the A_y of a slot."""
        return self.of_rows(moment.blocks()) if moment.packed is None else self.of_matrix(moment.dense(), slot)

    def of_rows(self, blocks: list[Array]) -> tuple[Array, Array]:
        """Return both traces for A = R'R, R in blocks of rows. Cost O(r f (f + g C)) or O((r + g) f^2)."""
        backend, (g, f), C = self._backend, self._d.shape, len(self._B)
        rows = sum(len(block) for block in blocks)
        if rows * g * C > (rows + g) * f:
            return self._in_basis(sum(Z.T @ Z for Z in (block @ self._V for block in blocks)))
        diagonal = backend.zeros(f, np.float64)
        spread = backend.zeros(g, np.float64)
        for block in blocks:
            Z = block @ self._V
            diagonal += backend.square(Z).sum(0)
            for i, d in enumerate(backend.cast(self._d, Z.dtype)):
                spread[i] += backend.square((Z * d) @ self._B.T).sum()
        return self._d @ diagonal, spread

    def of_matrix(self, A: Array, slot: int) -> tuple[Array, Array]:
        """Return both traces for the A of a class, in its lower form. Cost O(f^3), or O(f^2 g) for wide ones."""
        backend = self._backend
        if len(A) <= EXACT_WIDTH:
            return self._in_basis(self._V.T @ backend.symmetric_product(A, self._V))
        # The mean stands out of the scatter around it, so its part n m'm is taken exactly and only the rest estimated.
        signs, signs_in_basis, scores = self._signs
        count, mean = self._count[slot], self._means[slot]  # in the eigenbasis
        of_mean = count * (self._d @ backend.square(mean))
        wide = backend.double(mean)
        along = backend.double(self._V.T @ backend.symmetric_product(A, signs))
        along -= count * wide[:, None] * (wide @ signs_in_basis)  # (f, q)
        leverage = of_mean + self._d @ (along * signs_in_basis).mean(1)
        mean_scores = (mean @ self._V.T) @ scores  # (g q,)
        spread = backend.double(scores * backend.symmetric_product(A, scores)).sum(0) - count * mean_scores**2
        spread_of_mean = count * backend.square((wide * self._d) @ backend.double(self._B).T).sum(1)
        return leverage, spread_of_mean + spread.reshape(len(self._d), -1).mean(1)

    def _in_basis(self, A: Array) -> tuple[Array, Array]:
        """Return both traces for an A that is given in the eigenbasis."""
        double = self._backend.double
        spread = (self._d.T * (double(A * self._BB) @ self._d.T)).sum(0)
        return self._d @ double(A.diagonal()), spread

    @cached_property
    def _BB(self) -> Array:
        BB: Array = self._B.T @ self._B
        return BB

    @cached_property
    def _signs(self) -> tuple[Array, Array, Array]:
        """Sign vectors of the features, also in the eigenbasis, (f, q); and W times those of the classes, (f, g q)."""
        rng, backend, V = np.random.default_rng(0), self._backend, self._V
        signs, class_signs = (
            backend.cast(backend.asarray(rng.choice([-1.0, 1.0], size=(size, N_PROBES))), V.dtype)
            for size in (len(V), len(self._B))
        )
        Bw = self._B.T @ class_signs  # (f, q)
        shrunk = backend.cast(self._d, V.dtype).T[:, :, None] * Bw[:, None, :]  # (f, g, q)
        return signs, backend.double(V.T @ signs), V @ shrunk.reshape(len(V), -1)
