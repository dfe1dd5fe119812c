"""gamma chooses itself: generalised cross-validation taken class by class, from the statistics alone.

Ordinary GCV divides the mean residual by one mean leverage, which stands for head and tail alike and picks badly under
imbalance. Here every class has its own: with K = (sum_y pi_y A_y + gamma I)^-1 and W the solution,

    L_y(gamma) = (RSS_y / n_y) / (1 - h_y)^2,   RSS_y = n_y - 2 W_y's_y + tr(W'A_y W),   h_y = pi_y tr(K A_y) / n_y,

and gamma minimises the mean over classes of log L_y. A_y is taken in two forms where the store has both, the class's
own and one that all classes share, and L_y is the mean of the two: either alone can vanish for a class of one or two
samples when there are more features than samples and W interpolates; the larger of the two then decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aircl.engine.backend import Array, symmetric

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
    mean_eigenvalue = float(np.trace(G, dtype=np.float64)) / len(G)
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
        eigenvalues, self.V = np.linalg.eigh(symmetric(G))
        self.eigenvalues = np.maximum(eigenvalues.astype(np.float64), 0.0)
        self.count, self.pi = count, pi
        self.means = (sums / count[:, None]).astype(G.dtype) @ self.V  # m_y in the eigenbasis, (C, f)
        self.B = self.means * (pi * count)[:, None].astype(G.dtype)  # pi_y s_y, so that W = K B', (C, f)

    def shrinkage(self, gammas: Array) -> Array:
        """Return the diagonals of K in the eigenbasis, shape (g, f)."""
        return np.asarray(1.0 / (self.eigenvalues + np.asarray(gammas)[:, None]))

    def losses(self, shrinkage: Array, moments: Moments) -> Array:
        """Return L_y, the leave-one-out error of every class, shape (g, C)."""
        fitted = shrinkage @ np.square(self.means, dtype=np.float64).T * (self.pi * self.count)  # W_y'm_y
        rss = 1.0 - 2.0 * fitted + moments.spread
        h = self.pi * moments.leverage
        return np.asarray(np.maximum(rss, 1e-12) / np.square(1.0 - np.minimum(h, 1.0 - 1e-6)))


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
    """Take A_y / n_y from the scatter S_w that all classes share and from the class's mean m_y.

    In the sample the scatter is (1 - 1/n_y) S_w: one sample has none, so the leverage has this factor. A new sample of
    the class scatters by S_w whatever n_y is, and that is what the residual has: measured, it keeps the error of the
    tail from vanishing where W interpolates.

    Cost O(f^3), and O(C f min(C, f)) for each gamma.
    """
    V, means, B = spectrum.V, spectrum.means, spectrum.B
    S = V.T @ symmetric(within.astype(V.dtype, copy=False)) @ V
    BB = B.T @ B
    leverage_of_scatter = shrinkage @ np.diag(S).astype(np.float64)
    S *= BB  # tr(W'S W) = d'(S * BB)d with d the shrinkage
    spread_of_scatter = np.einsum("gf,fg->g", shrinkage, S.astype(np.float64) @ shrinkage.T)
    spread_of_mean = np.empty((len(shrinkage), len(means)))
    for i, d in enumerate(shrinkage.astype(V.dtype)):
        shrunk = means * d  # K m_y, (C, f)
        if len(means) <= len(d):
            spread_of_mean[i] = np.square(shrunk @ B.T, dtype=np.float64).sum(axis=1)  # |W'm_y|^2
        else:
            spread_of_mean[i] = np.einsum("ij,ij->i", shrunk @ BB, shrunk, dtype=np.float64)
    within_sample = np.maximum(1.0 - 1.0 / spectrum.count, 0.0)
    leverage_of_mean = shrinkage @ np.square(means, dtype=np.float64).T  # m_y'K m_y
    return Moments(
        leverage=within_sample * leverage_of_scatter[:, None] + leverage_of_mean,
        spread=spread_of_scatter[:, None] + spread_of_mean,
    )


def criterion(spectrum: Spectrum, shrinkage: Array, forms: Sequence[Moments]) -> Array:
    """Return the mean over classes of log L_y, with L_y the mean over the forms that A_y was taken in, shape (g,)."""
    losses = np.mean([spectrum.losses(shrinkage, form) for form in forms], axis=0)
    return np.asarray(np.log(losses).mean(axis=1))
