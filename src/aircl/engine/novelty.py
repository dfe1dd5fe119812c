"""How unlike anything learned a row is, from the statistics alone: a relative Mahalanobis distance and its scale.

With S the unbiased pooled scatter, A = S + tr(S) / min(f, n - C) I and z = A^-1/2 (x - m), m the mean of the class
means, B is the covariance of the class means z_y, with eigenvalues l_j. A row is as far from a class as |z - z_y|^2
tells, and as far from everything as the distance under I + B + tau I tells, tau = 1/5 tr(B)/f. The least of the first
minus the second,

    r(x) = min_y |v - v_y|^2 - sum_j v_j^2 / (1 + tau + l_j) + q (1 - 1 / (1 + tau)),

has v, the coordinates of z in the eigenvectors of B (the 128 of largest l_j, if there are more), and q, the squared
length of what is left of z. It is large for rows that are unusual in directions in which classes differ, and a little
larger for rows that are unusual in any.

The scale is the share of new samples of the learned classes that would have a larger r. They are simulated: for class
y, v is (1 - rho_y) v_y plus noise of the covariance (1 + (1 - rho_y) / n_y) Sigma_y / (1 - h)^2, h = tr(A^-1 S) / n
being the leverage of a sample in S, with this A at most a half, and rho_y = tr(A^-1 S) / ((1 - h) n_y |v_y|^2), at most
1, what is noise of n_y samples in v_y. Sigma_y is the class's own scatter over n_y - 1, where the store has it, shrunk
with the weight of 10 samples to the pooled one, widened along v_y, as rows are more or less like their class: to a
variance of 0.06 |v_y|^2, but not more than 1 + 0.15 (C - 1) times that of the pooled one, in which others have a part;
and all of them in proportion, as the classes' own scatters tell. The less a row is like its class, the more it deviates
in other directions: squared lengths of these deviations, and q, are log-normal with deviation 0.42 of the logarithm,
which has a correlation of -1/2 with the deviation along v_y. Classes weigh as the priors say.

Nothing is drawn at random: noise is that of `aircl.engine.calibration`, a continuous function of the statistics.
The constants are chosen as there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import ndtri

from aircl.engine.backend import Array
from aircl.engine.calibration import PRIOR, class_keys, normals, own_scatters, shrink, symmetric_roots
from aircl.engine.problem import Problem

# Of the mean eigenvalue of S, beside S: 1, so that no more than half of what the samples tell goes into the distances
# of these very samples. And of that of B, beside B.
RIDGE, BACKGROUND = 1.0, 0.2
# Directions in which classes differ, classes that stand for more, and simulated rows in all.
MANY_DIRECTIONS, MANY_CLASSES, ROWS = 128, 256, 4096
# Deviation of the logarithm of squared lengths, and its correlation with how little of its class a row is.
SPREAD, STRAY = 0.42, 0.5
# Variance of a class along its own mean, where nothing is known of it: as a share of the mean's squared length, and at
# the most, as what it has more than the pooled scatter there, for every other class in that scatter.
PRIOR_ALONG, PRIOR_WIDENING = 0.06, 0.15
# Beyond so large a share of the simulated rows, the distribution is taken to be exponential.
TAIL = 0.02


@dataclass(frozen=True, eq=False)
class Novelty:
    """Distances of rows, and those of simulated rows of the learned classes."""

    centre: Array  # (f,) m
    L: Array  # (f, f) the lower Cholesky factor of A
    V: Array  # (f, k) from rows to coordinates
    means: Array  # (C, k) v_y
    spread: Array  # (k,) l_j
    tau: float
    slots: Array  # (c,) the classes of the simulated rows
    distances: Array  # (c, d) r of the simulated rows

    def distance(self, X: Array) -> Array:
        """Return r of rows X (n, f), shape (n,). Cost O(n f^2 + n C k)."""
        X = np.asarray(X, dtype=np.float64) - self.centre
        v, z = X @ self.V, solve_triangular(self.L, X.T, lower=True)
        outside = np.square(z).sum(axis=0) - np.square(v).sum(axis=1)
        return _distance(v, outside.clip(min=0.0), self.means, self.spread, self.tau)

    def share(self, r: Array, weight: Array) -> Array:
        """Return the share of new samples that have at least the distances r (n,); weight (C,) is of the classes.

        Linear between the simulated rows; of the largest 2 %, an exponential distribution of the same mean.
        """
        flat = self.distances.ravel()
        order = np.argsort(flat, kind="stable")
        values, of_class = flat[order], np.maximum(weight[self.slots], 1e-12)
        shares = np.repeat(of_class / (of_class.sum() * self.distances.shape[1]), self.distances.shape[1])[order]
        above = 1.0 - np.cumsum(shares) + shares / 2.0
        first = min(int(np.searchsorted(-above, -TAIL)), len(values) - 1)
        start, tail = values[first], shares[first:]
        excess = float(tail @ (values[first:] - start)) / float(tail.sum()) or max(abs(start), 1.0) * 1e-9
        share = np.interp(r, values, above, left=1.0)
        beyond: Array = np.where(r > start, above[first] * np.exp(-(r - start).clip(min=0.0) / excess), share)
        return beyond


def novelty(problem: Problem) -> Novelty:
    """Return the distances that a problem tells.

    Cost O(f^3 + C f min(C, f) + d C k), d the simulated rows, up to 4096, k up to 128; where the store has the classes'
    own moments, O(n_y f k) or O(f^2 k) for each of up to 256 classes.
    """
    backend, count = problem.backend, problem.count
    C, n = len(count), float(count.sum())
    S = backend.to_numpy(backend.symmetric(backend.double(problem.within_class_covariance))) * (n / max(n - C, 1e-300))
    trace, f = float(np.trace(S)), len(S)
    if n - C <= 1e-9 * n or not 0.0 < trace < np.inf:
        raise ValueError(
            "novelty needs to know how far samples of a class lie apart, but there is one sample of every class, or "
            "all of them are the same. Learn more samples first."
        )
    means = backend.to_numpy(backend.double(problem.sums)) / count[:, None]
    centre = means.mean(axis=0)
    A = S.copy()
    A[np.diag_indices(f)] += RIDGE * trace / min(f, n - C)
    L = np.linalg.cholesky(A)
    V, spread = _directions(L, means - centre)
    v = (means - centre) @ V
    total = float(np.trace(cho_solve((L, True), S)))  # tr(A^-1 S)
    h = min(total / n, 1.0 - 1e-6)
    tau = BACKGROUND * float(spread.sum()) / f if len(spread) else np.inf
    key = class_keys(problem, backend.asarray(means))
    slots = np.sort(np.argsort(key, kind="stable")[:: -(-C // MANY_CLASSES)])
    half = max(2, ROWS // max(len(slots), 4) // 2) if C <= 4 * MANY_CLASSES else 2

    pooled = V.T @ S @ V
    rho = (total / ((1.0 - h) * count * np.square(v).sum(axis=1).clip(min=1e-300))).clip(max=1.0)
    v_new = ((1.0 - rho)[:, None] * v)[slots]
    u = v_new / np.sqrt(np.square(v_new).sum(axis=1)).clip(min=1e-300)[:, None]
    covariance = _covariances(problem, V, means, v_new, u, pooled, slots) / (1.0 - h) ** 2
    covariance *= (1.0 + (1.0 - rho) / count)[slots][:, None, None]
    # Noise for every class, made into coordinates in a way that does not depend on the choice of eigenvectors.
    every = np.broadcast_to(np.arange(C), (len(slots), C))
    noise = normals(key, slots, every, half) @ (v / np.sqrt(C * spread.clip(min=1e-300)))
    quantile = ndtri((np.arange(half) + 0.5) / half)
    length = np.exp(SPREAD * quantile - SPREAD**2 / 2.0)
    noise = noise @ symmetric_roots(covariance)
    noise = np.concatenate([noise, -noise], axis=1)
    along = np.einsum("cdk,ck->cd", noise, u)
    noise -= along[:, :, None] * u[:, None, :]
    noise *= np.sqrt(np.tile(length, 2))[:, None]
    deviation = np.sqrt(np.einsum("ck,ckl,cl->c", u, covariance, u).clip(min=0.0))
    along = np.sqrt(1.0 - STRAY**2) * along - STRAY * deviation[:, None] * np.tile(quantile, 2)
    rows = v_new[:, None, :] + noise + along[:, :, None] * u[:, None, :]
    length = length[np.random.default_rng(1).permutation(half)]
    left = max(total - float(np.trace(pooled)), 0.0) / (1.0 - h) * (1.0 + 1.0 / count[slots])
    outside = left[:, None] * np.tile(length, 2)
    r = _distance(rows.reshape(outside.size, V.shape[1]), outside.ravel(), v, spread, tau)
    return Novelty(centre, L, V, v, spread, tau, slots, r.reshape(len(slots), -1))


def _distance(v: Array, outside: Array, means: Array, spread: Array, tau: float) -> Array:
    nearest = np.full(len(v), np.inf)
    squares, own = np.square(means).sum(axis=1), np.square(v).sum(axis=1)
    for start in range(0, len(means), 1024):  # the product of many rows and classes at once would be large
        part = slice(start, start + 1024)
        nearest = np.minimum(nearest, (squares[part] - 2.0 * v @ means[part].T).min(axis=1))
    far = (np.square(v) / (1.0 + tau + spread)).sum(axis=1)
    r: Array = nearest + own - far + outside * (1.0 - 1.0 / (1.0 + tau))
    return r


def _directions(L: Array, means: Array) -> tuple[Array, Array]:
    """Return the map to coordinates, shape (f, k), and the covariance of the class means in them, shape (k,)."""
    Z = solve_triangular(L, means.T, lower=True).T
    C, f = Z.shape
    eigenvalues, E = np.linalg.eigh(Z @ Z.T / C if f > C else Z.T @ Z / C)
    kept = np.flatnonzero(eigenvalues > 1e-9 * max(eigenvalues[-1], 1e-300))[-MANY_DIRECTIONS:]
    spread, E = eigenvalues[kept], E[:, kept]
    if f > C:
        E = Z.T @ E / np.sqrt(C * spread)
    V: Array = solve_triangular(L, E, lower=True, trans="T")
    return V, spread


def _covariances(problem: Problem, V: Array, means: Array, v: Array, u: Array, pooled: Array, slots: Array) -> Array:
    """Return Sigma_y of some classes with means v and directions u (c, k), shape (c, k, k)."""
    squares, along = np.square(v).sum(axis=1), np.einsum("ck,kl,cl->c", u, pooled, u)
    rows = problem.backend.asarray(V.T)
    own, known = own_scatters(problem, slots, problem.backend.asarray(means), lambda _: rows)
    prior = np.minimum(PRIOR_ALONG * squares, (1.0 + PRIOR_WIDENING * (len(problem.count) - 1)) * along)
    told, weak = sum(float(u[i] @ own[i] @ u[i]) for i in own), max(PRIOR * float(prior.mean()), 1e-300)
    wider = (prior * (told + weak) / (float(known @ prior) + weak) - along).clip(min=0.0)
    covariance: Array = pooled + wider[:, None, None] * u[:, :, None] * u[:, None, :]
    shrink(own, known, covariance)
    return covariance
