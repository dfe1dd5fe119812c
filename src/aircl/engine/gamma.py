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

    def fitted(self, shrinkage: Array) -> Array:
        """Return W_y'm_y, the score of the class's own mean for the class, shape (g, C)."""
        fitted: Array = shrinkage @ self.backend.square(self.means).T * (self.pi * self.count)
        return fitted


def loss(residual: Array, leverage: Array) -> Array:
    """Return a squared residual as it is without the sample itself. Both stay just within their bounds."""
    loss: Array = residual.clip(min=1e-12) / (1.0 - leverage.clip(max=1.0 - 1e-6)) ** 2
    return loss


def own_losses(spectrum: Spectrum, shrinkage: Array, traces: Array) -> Array:
    """Return L_y from the class's own A_y, shape (g, C).

    Parameters
    ----------
    spectrum : Spectrum
    shrinkage : array of shape (g, f)
    traces : array of shape (C, 2, g)
        tr(K A_y) and tr(W'A_y W) at every gamma.
    """
    leverage, spread = (traces[:, i].T / spectrum.count for i in (0, 1))
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
    backend, V, means, B = spectrum.backend, spectrum.V, spectrum.means, spectrum.B
    pi, count = spectrum.pi, spectrum.count
    S = V.T @ backend.symmetric(backend.cast(within, V.dtype)) @ V
    BB = B.T @ B
    leverage_of_scatter = (shrinkage @ backend.double(S.diagonal()))[:, None]  # tr(K S_w)
    S *= BB  # tr(W'S W) = d'(S * BB)d with d the shrinkage
    spread = (shrinkage.T * (backend.double(S) @ shrinkage.T)).sum(0)[:, None]  # tr(W'S_w W)
    scores = []
    for d in backend.cast(shrinkage, V.dtype):
        shrunk = means * d  # K m_y, (C, f)
        if len(means) <= len(d):
            scores.append(backend.square(shrunk @ B.T).sum(1))
        else:
            scores.append((backend.double(shrunk @ BB) * shrunk).sum(1))
    score_of_mean = backend.stack(scores)  # |W'm_y|^2, (g, C)
    leverage_of_mean = shrinkage @ backend.square(means).T  # m_y'K m_y
    error_at_mean = 1.0 - 2.0 * spectrum.fitted(shrinkage) + score_of_mean

    in_sample = (1.0 - 1.0 / count).clip(min=0.0)
    as_one = loss(error_at_mean + spread, pi * (in_sample * leverage_of_scatter + leverage_of_mean))
    degrees_of_freedom = max(float(count.sum()) - len(count), 1e-9)
    in_pooled_scatter = float(pi @ count) / degrees_of_freedom * leverage_of_scatter
    apart = loss(error_at_mean, pi * leverage_of_mean) + loss(spread, in_pooled_scatter)
    return [as_one, apart]


def criterion(losses: list[Array]) -> Array:
    """Return the mean over classes of the log of L_y, with L_y the mean of its estimates, shape (g,)."""
    backend = backend_of(losses[0])
    return backend.to_numpy(backend.log(backend.stack(losses).mean(0)).mean(1))
