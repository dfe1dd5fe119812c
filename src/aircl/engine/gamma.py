"""gamma chooses itself: generalised cross-validation taken class by class, from the statistics alone.

Ordinary GCV divides the mean residual by one mean leverage, which stands for head and tail alike and picks badly under
imbalance. Here every class has its own: with K = (sum_y pi_y A_y + gamma I)^-1 and W the solution,

    L_y(gamma) = (RSS_y / n_y) / (1 - h_y)^2,   RSS_y = n_y - 2 W_y's_y + tr(W'A_y W),   h_y = pi_y tr(K A_y) / n_y,

and gamma minimises the mean over classes of log L_y.
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


def class_losses(G: Array, within: Array, sums: Array, count: Array, pi: Array, gammas: Array) -> Array:
    """Return L_y(gamma), the leave-one-out error of every class, with A_y/n_y = (1 - 1/n_y) S_w + m_y'm_y.

    Parameters
    ----------
    G : array of shape (f, f)
        Weighted second moments, lower triangle.
    within : array of shape (f, f)
        Within-class covariance S_w, lower triangle.
    sums : array of shape (C, f)
        Class sums s_y.
    count, pi : arrays of shape (C,)
        Class counts and scaled class weights.
    gammas : array of shape (g,)

    Returns
    -------
    losses : array of shape (g, C)

    Notes
    -----
    One eigendecomposition serves all gammas: O(f^3 + C f^2) for it, O(C f min(C, f)) for each gamma.
    """
    eigenvalues, V = np.linalg.eigh(symmetric(G))
    eigenvalues = np.maximum(eigenvalues.astype(np.float64), 0.0)
    means = (sums / count[:, None]).astype(V.dtype) @ V  # m_y in the eigenbasis, (C, f)
    B = means * (pi * count)[:, None].astype(V.dtype)  # pi_y s_y, (C, f)
    S = V.T @ symmetric(within.astype(V.dtype, copy=False)) @ V
    BB = B.T @ B
    S_diagonal = np.diag(S).astype(np.float64)
    S *= BB  # tr(W'S W) = d'(S * BB)d with d = 1 / (eigenvalues + gamma)
    one_sample_has_no_scatter = np.maximum(1.0 - 1.0 / count, 0.0)

    losses = np.empty((len(gammas), len(count)))
    for i, gamma in enumerate(gammas):
        d = 1.0 / (eigenvalues + gamma)
        shrunk = means * d.astype(V.dtype)  # K m_y, (C, f)
        leverage_of_mean = np.einsum("ij,ij->i", means, shrunk, dtype=np.float64)  # m_y'K m_y
        if len(count) <= len(d):
            score_of_mean = np.square(shrunk @ B.T, dtype=np.float64).sum(axis=1)  # |W'm_y|^2
        else:
            score_of_mean = np.einsum("ij,ij->i", shrunk @ BB, shrunk, dtype=np.float64)
        h = pi * (one_sample_has_no_scatter * (d @ S_diagonal) + leverage_of_mean)
        fitted = pi * count * leverage_of_mean  # W_y'm_y
        spread = d @ (S @ d.astype(V.dtype)).astype(np.float64)  # tr(W'S_w W)
        rss = 1.0 - 2.0 * fitted + one_sample_has_no_scatter * spread + score_of_mean
        losses[i] = np.maximum(rss, 1e-12) / np.square(1.0 - np.minimum(h, 1.0 - 1e-6))
    return losses


def mean_log(losses: Array) -> Array:
    """Return the criterion: the mean over classes of the log of L_y, shape (g,)."""
    return np.asarray(np.log(losses).mean(axis=1))
