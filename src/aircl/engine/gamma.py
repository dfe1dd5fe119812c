"""gamma chooses itself: generalised cross-validation taken class by class, from the statistics alone.

Ordinary GCV divides the mean residual by one mean leverage, which stands for head and tail alike and picks badly under
imbalance. Here every class has its own: with K = (sum_y pi_y A_y + gamma I)^-1 and W the solution,

    L_y(gamma) = (RSS_y / n_y) / (1 - h_y)^2,   RSS_y = n_y - 2 W_y's_y + tr(W'A_y W),   h_y = pi_y tr(K A_y) / n_y,

and gamma minimises the mean over classes of log L_y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aircl.engine.backend import Array, backend_of

# Relative to the mean eigenvalue of the weighted second moments: four points a decade.
GRID = np.logspace(-4, 2, 25)


@dataclass(frozen=True)
class GammaPath:
    """The grid that was searched and the criterion on it.

    Attributes
    ----------
    gamma : array of shape (g,)
    criterion : array of shape (g,)
        Mean over classes of the log of the leave-one-out error.
    """

    gamma: Array
    criterion: Array

    @property
    def best(self) -> float:
        """The gamma of least criterion; the largest of several."""
        return float(self.gamma[::-1][np.argmin(self.criterion[::-1])])


def gamma_grid(G: Array) -> Array:
    """Return the grid for second moments G; they may be all zero."""
    mean_eigenvalue = backend_of(G).trace(G) / len(G)
    return GRID * (mean_eigenvalue or 1.0)


class Spectrum:
    """The weighted second moments in their eigenbasis: one eigendecomposition serves every gamma.

    Parameters
    ----------
    G : array of shape (f, f)
        Weighted second moments, lower triangle.
    sums : array of shape (C, f)
        Class sums s_y.
    count, pi : arrays of shape (C,)
        Class counts and scaled class weights.

    Notes
    -----
    Cost O(f^3 + C f^2).
    """

    def __init__(self, G: Array, sums: Array, count: Array, pi: Array) -> None:
        backend = self.backend = backend_of(G)
        eigenvalues, self.V = backend.eigh(backend.symmetric(G))
        self.eigenvalues = backend.double(eigenvalues).clip(min=0.0)
        self.count, self.pi = backend.asarray(count), backend.asarray(pi)
        self.means = backend.cast(sums / self.count[:, None], G.dtype) @ self.V  # m_y in the eigenbasis, (C, f)
        self.B = self.means * backend.column(pi * count, self.means)  # pi_y s_y, so that W = K B', (C, f)

    def shrinkage(self, gammas: Array) -> Array:
        """Return the diagonals of K in the eigenbasis, shape (g, f)."""
        d: Array = 1.0 / (self.eigenvalues + self.backend.column(gammas, self.eigenvalues))
        return d

    def losses(self, shrinkage: Array, moments: Moments) -> Array:
        """Return L_y, the leave-one-out error of every class, shape (g, C)."""
        fitted = shrinkage @ self.backend.square(self.means).T * (self.pi * self.count)  # W_y'm_y
        rss = 1.0 - 2.0 * fitted + moments.spread
        h = self.pi * moments.leverage
        losses: Array = rss.clip(min=1e-12) / (1.0 - h.clip(max=1.0 - 1e-6)) ** 2
        return losses


@dataclass(frozen=True)
class Moments:
    """What the criterion needs of A_y / n_y at every gamma.

    Attributes
    ----------
    leverage : array of shape (g, C)
        tr(K A_y) / n_y
    spread : array of shape (g, C)
        tr(W'A_y W) / n_y
    """

    leverage: Array
    spread: Array


def shared_moments(spectrum: Spectrum, within: Array, shrinkage: Array) -> Moments:
    """Take A_y / n_y = (1 - 1/n_y) S_w + m_y'm_y for every class: one sample has no scatter.

    Cost O(f^3), and O(C f min(C, f)) for each gamma.
    """
    backend, V, means, B = spectrum.backend, spectrum.V, spectrum.means, spectrum.B
    S = V.T @ backend.symmetric(backend.cast(within, V.dtype)) @ V
    BB = B.T @ B
    leverage_of_scatter = shrinkage @ backend.double(S.diagonal())
    S *= BB  # tr(W'S W) = d'(S * BB)d with d the shrinkage
    spread_of_scatter = (shrinkage.T * (backend.double(S) @ shrinkage.T)).sum(0)
    of_means = []
    for d in backend.cast(shrinkage, V.dtype):
        shrunk = means * d  # K m_y, (C, f)
        if len(means) <= len(d):
            of_means.append(backend.square(shrunk @ B.T).sum(1))  # |W'm_y|^2
        else:
            of_means.append((backend.double(shrunk @ BB) * shrunk).sum(1))
    spread_of_mean = backend.stack(of_means)
    scatter = (1.0 - 1.0 / spectrum.count).clip(min=0.0)
    leverage_of_mean = shrinkage @ backend.square(means).T  # m_y'K m_y
    return Moments(
        leverage=scatter * leverage_of_scatter[:, None] + leverage_of_mean,
        spread=scatter * spread_of_scatter[:, None] + spread_of_mean,
    )


def criterion(spectrum: Spectrum, shrinkage: Array, forms: Sequence[Moments]) -> Array:
    """Return the mean over classes, and over the forms that A_y was taken in, of log L_y, shape (g,)."""
    backend = spectrum.backend
    means = [backend.log(spectrum.losses(shrinkage, form)).mean(1) for form in forms]
    return np.asarray(np.mean([backend.to_numpy(mean) for mean in means], axis=0))
