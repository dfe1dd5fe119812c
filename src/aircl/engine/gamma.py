"""gamma chooses itself: generalised cross-validation taken class by class, from the statistics alone.

Ordinary GCV divides the mean residual by one mean leverage, which stands for head and tail alike and picks badly under
imbalance. Here every class has its own: with K = (sum_y pi_y A_y + gamma I)^-1 and W the solution,

    L_y(gamma) = (RSS_y / n_y) / (1 - h_y)^2,   RSS_y = n_y - 2 W_y's_y + tr(W'A_y W),   h_y = pi_y tr(K A_y) / n_y,

and gamma minimises the mean over classes of log L_y. A_y is taken as the class's own where the store has it, and in two
forms that all classes share; L_y is the mean of these estimates. Each alone can vanish or explode for some classes when
there are more features than samples and W interpolates; together, measured, they choose well on all data tried.
"""

from __future__ import annotations

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

    def fitted(self, shrinkage: Array) -> Array:
        """Return W_y'm_y, the score of the class's own mean for the class, shape (g, C)."""
        return np.asarray(shrinkage @ np.square(self.means, dtype=np.float64).T * (self.pi * self.count))


def loss(residual: Array, leverage: Array) -> Array:
    """Return a squared residual as it is without the sample itself. Both stay just within their bounds."""
    return np.asarray(np.maximum(residual, 1e-12) / np.square(1.0 - np.minimum(leverage, 1.0 - 1e-6)))


def own_losses(spectrum: Spectrum, shrinkage: Array, traces: Array) -> Array:
    """Return L_y from the class's own A_y, shape (g, C).

    Parameters
    ----------
    spectrum : Spectrum
    shrinkage : array of shape (g, f)
    traces : array of shape (C, 2, g)
        tr(K A_y) and tr(W'A_y W) at every gamma.
    """
    leverage, spread = (traces / spectrum.count[:, None, None]).transpose(1, 2, 0)
    return loss(1.0 - 2.0 * spectrum.fitted(shrinkage) + spread, spectrum.pi * leverage)


def shared_losses(spectrum: Spectrum, shrinkage: Array, within: Array) -> list[Array]:
    """Return two estimates of L_y with A_y made of the scatter S_w that all classes share and the class's mean m_y.

    In the sample the scatter is (1 - 1/n_y) S_w: one sample has none, so the leverage has this factor. A new sample of
    the class scatters by S_w whatever n_y is, and that is what the residual has.

    The first takes residual and leverage of the class as one, as `own_losses` does. The second takes the mean and the
    scatter around it apart: the error at the mean has the mean's leverage, and the spread has that of a sample in the
    pooled scatter, which is the same for all classes and reaches 1 when the n - C degrees of freedom are used up.

    Cost O(f^3), and O(C f min(C, f)) for each gamma.
    """
    V, means, B, pi, count = spectrum.V, spectrum.means, spectrum.B, spectrum.pi, spectrum.count
    S = V.T @ symmetric(within.astype(V.dtype, copy=False)) @ V
    BB = B.T @ B
    leverage_of_scatter = (shrinkage @ np.diag(S).astype(np.float64))[:, None]  # tr(K S_w)
    S *= BB  # tr(W'S W) = d'(S * BB)d with d the shrinkage
    spread = np.einsum("gf,fg->g", shrinkage, S.astype(np.float64) @ shrinkage.T)[:, None]  # tr(W'S_w W)
    score_of_mean = np.empty((len(shrinkage), len(means)))  # |W'm_y|^2
    for i, d in enumerate(shrinkage.astype(V.dtype)):
        shrunk = means * d  # K m_y, (C, f)
        if len(means) <= len(d):
            score_of_mean[i] = np.square(shrunk @ B.T, dtype=np.float64).sum(axis=1)
        else:
            score_of_mean[i] = np.einsum("ij,ij->i", shrunk @ BB, shrunk, dtype=np.float64)
    leverage_of_mean = shrinkage @ np.square(means, dtype=np.float64).T  # m_y'K m_y
    error_at_mean = 1.0 - 2.0 * spectrum.fitted(shrinkage) + score_of_mean

    in_sample = np.maximum(1.0 - 1.0 / count, 0.0)
    as_one = loss(error_at_mean + spread, pi * (in_sample * leverage_of_scatter + leverage_of_mean))
    n, n_classes = count.sum(), len(count)
    in_pooled_scatter = (pi @ count) / max(n - n_classes, 1e-9) * leverage_of_scatter
    apart = loss(error_at_mean, pi * leverage_of_mean) + loss(spread, in_pooled_scatter)
    return [as_one, apart]


def criterion(losses: list[Array]) -> Array:
    """Return the mean over classes of the log of L_y, with L_y the mean of its estimates, shape (g,)."""
    return np.asarray(np.log(np.mean(losses, axis=0)).mean(axis=1))
