"""gamma is chosen from the statistics alone: no sample is kept or set aside.

The criterion is the log of the classes' squared error plus the log odds of a misclassification, both as they are for
samples that were not learned. The error has sharp minima but is not what a classifier is for; the odds are, but rest on
normally distributed classes and are flat where classes are far apart. Measured, their sum chooses better than either.

*Squared error*: generalised cross-validation taken class by class. Ordinary GCV divides the mean residual by one mean
leverage, which stands for head and tail alike and picks badly under imbalance. Here every class has its own: with
K = (sum_y pi_y A_y + gamma I)^-1 and W = K B the solution,

    L_y(gamma) = (RSS_y / n_y) / (1 - h_y)^2,   RSS_y = n_y - 2 W_y's_y + tr(W'A_y W),   h_y = pi_y tr(K A_y) / n_y,

in the geometric mean over classes. A_y is taken as the class's own where the store has it, and in two forms that all
classes share; L_y is the mean of these estimates. Each alone can vanish or explode for some classes when there are more
features than samples and W interpolates.

*Odds of an error*: a new sample of class y is normal around the class's true mean with covariance S. Its scores have
the covariance W'S W. Their mean is not W'm_y, for W has seen the noise e in m_y = mu_y + e. With K_0, which has not,
and a = pi_y n_y, K m_y is K_0 m_y / (1 + a m_y'K_0 m_y), so that the scores at mu_y are in expectation

    (1 + t_y) W'm_y - t_y 1_y,   t_y = pi_y tr(K S),

which is what leaving out a sample of leverage t / (1 + t) gives. The class is right with probability
prod_z Phi(margin over z / its standard deviation); the mean of that over classes makes the odds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aircl.engine.backend import Array, backend_of
from aircl.engine.problem import Problem

# Relative to the mean eigenvalue of the weighted second moments: four points a decade.
GRID = np.logspace(-4, 2, 25)
# Of more classes, this many stand for all where a step would be quadratic in their number.
MANY_CLASSES = 128
# A residual below this, where samples are fitted exactly, is rounding: it does not make up for a leverage of 1.
FLOOR = 1e-6


@dataclass(frozen=True)
class GammaPath:
    """The grid that was searched and the criterion on it.

    Attributes
    ----------
    gamma : array of shape (g,)
    criterion : array of shape (g,)
        Mean over classes of the log of the leave-one-out error, plus the log odds of a misclassification.
    error : array of shape (g,) or None
        The first of the two. None: it was read from a file that does not have it.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import AIRClassifier
    >>> clf = AIRClassifier().fit(*load_digits(return_X_y=True))
    >>> path = clf.gamma_path_
    >>> path.gamma.shape, path.criterion.shape, path.best == clf.gamma_
    ((25,), (25,), True)
    """

    gamma: Array
    criterion: Array
    error: Array | None = None

    @property
    def _best(self) -> int:
        return len(self.gamma) - 1 - int(np.argmin(self.criterion[::-1]))

    @property
    def best(self) -> float:
        """The gamma of least criterion; the largest of several."""
        return float(self.gamma[self._best])

    @property
    def least_error(self) -> float | None:
        """The log of the leave-one-out error at the best gamma."""
        return None if self.error is None else float(self.error[self._best])


def choose_gamma(problem: Problem) -> GammaPath:
    """Search the grid. Cost O(f^3), and O(C f^2) for each gamma."""
    spectrum = Spectrum(problem)
    gammas = GRID * (float(spectrum.eigenvalues.mean()) or 1.0)
    shrinkage = spectrum.shrinkage(gammas)
    error = log_error(estimated_losses(problem, spectrum, shrinkage))
    odds = log_error_odds(spectrum, shrinkage, spectrum.within, problem.uncertainty(spectrum.within))
    return GammaPath(gammas * spectrum.unit**2, error + odds, error)


def leave_one_out_error(problem: Problem, gamma: float) -> float:
    """Return the log of the leave-one-out error at one gamma. Cost O(f^3)."""
    spectrum = Spectrum(problem)
    shrinkage = spectrum.shrinkage(np.array([gamma]) / spectrum.unit**2)
    return float(log_error(estimated_losses(problem, spectrum, shrinkage))[0])


def estimated_losses(problem: Problem, spectrum: Spectrum, shrinkage: Array) -> list[Array]:
    """Return estimates of every class's leave-one-out error, shape (g, C) each: with one scatter, and with its own."""
    losses = shared_losses(spectrum, shrinkage, spectrum.within)
    if problem.moments is not None:
        from aircl.engine.probes import Probes

        probes = Probes(spectrum, shrinkage)
        backend = spectrum.backend
        traces = [backend.stack(list(probes.of(moment, slot))) for slot, moment in enumerate(problem.moments)]
        losses.append(own_losses(spectrum, shrinkage, backend.stack(traces) / spectrum.unit**2))
    return losses


class Spectrum:
    """The weighted second moments in their eigenbasis: one eigendecomposition serves every gamma.

    All is in units of a power of two near the root of the mean eigenvalue, so that features of any scale give the same
    numbers: gamma, G and S_w are divided by unit^2, means by unit.

    Parameters
    ----------
    problem : Problem

    Notes
    -----
    Cost O(f^3 + C f^2).
    """

    def __init__(self, problem: Problem) -> None:
        backend = self.backend = problem.backend
        mean_eigenvalue = backend.trace(problem.G) / len(problem.G)
        self.unit = float(np.ldexp(1.0, int(np.frexp(mean_eigenvalue**0.5)[1])))
        eigenvalues, self.V = backend.eigh(backend.symmetric(problem.G / self.unit**2))
        self.eigenvalues = backend.double(eigenvalues).clip(min=0.0)
        self.count, self.pi = backend.asarray(problem.count), backend.asarray(problem.pi)
        means = problem.sums / (self.count[:, None] * self.unit)
        self.means = backend.cast(means, problem.G.dtype) @ self.V  # m_y in the eigenbasis, (C, f)
        self.B = self.means * backend.column(problem.pi * problem.count, self.means)  # pi_y s_y, W = K B', (C, f)
        scaled = backend.symmetric(backend.cast(problem.within / self.unit**2, self.V.dtype))
        self.within: Array = self.V.T @ scaled @ self.V  # S_w in the eigenbasis

    @property
    def degrees_of_freedom(self) -> float:
        """Those of the scatter around the class means, n - C."""
        return max(float(self.count.sum()) - len(self.count), 1e-9)

    def in_pooled_scatter(self, leverage_of_scatter: Array) -> Array:
        """Return the leverage of a sample in the scatter that all classes share, from tr(K S_w), below 1."""
        of_sample: Array = float(self.pi @ self.count) / self.degrees_of_freedom * leverage_of_scatter
        return of_sample.clip(max=1.0 - 1e-6)

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
    loss: Array = residual.clip(min=FLOOR) / (1.0 - leverage.clip(max=1.0 - 1e-6)) ** 2
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

    `within` is S_w in the eigenbasis. Cost O(C f^2), and O(C f min(C, f)) for each gamma.
    """
    backend, V, means, B = spectrum.backend, spectrum.V, spectrum.means, spectrum.B
    pi, count = spectrum.pi, spectrum.count
    BB = B.T @ B
    leverage_of_scatter = (shrinkage @ backend.double(within.diagonal()))[:, None]  # tr(K S_w)
    scores = []
    for d in backend.cast(shrinkage, V.dtype):
        shrunk = means * d  # K m_y, (C, f)
        if len(means) <= len(d):
            scores.append(backend.square(shrunk @ B.T).sum(1))
        else:
            scores.append((backend.double(shrunk @ BB) * shrunk).sum(1))
    score_of_mean = backend.stack(scores)  # |W'm_y|^2, (g, C)
    BB *= within  # tr(W'S_w W) = d'(S_w * BB)d with d the shrinkage
    spread = (shrinkage.T * (backend.double(BB) @ shrinkage.T)).sum(0)[:, None]
    leverage_of_mean = shrinkage @ backend.square(means).T  # m_y'K m_y
    error_at_mean = 1.0 - 2.0 * spectrum.fitted(shrinkage) + score_of_mean

    in_sample = (1.0 - 1.0 / count).clip(min=0.0)
    as_one = loss(error_at_mean + spread, pi * (in_sample * leverage_of_scatter + leverage_of_mean))
    apart = loss(error_at_mean, pi * leverage_of_mean) + loss(spread, spectrum.in_pooled_scatter(leverage_of_scatter))
    return [as_one, apart]


def log_error(losses: list[Array]) -> Array:
    """Return the mean over classes of the log of L_y, with L_y the mean of its estimates, shape (g,)."""
    backend = backend_of(losses[0])
    return backend.to_numpy(backend.log(backend.stack(losses).mean(0)).mean(1))


def log_error_odds(spectrum: Spectrum, shrinkage: Array, within: Array, uncertainty: float) -> Array:
    """Return the log odds that a new sample is misclassified, every class equally likely, shape (g,).

    Parameters
    ----------
    spectrum : Spectrum
    shrinkage : array of shape (g, f)
    within : array of shape (f, f)
        S_w in the eigenbasis.
    uncertainty : float
        How much of a class's scatter may lie in any direction instead of where S_w has it, and where K is small for
        that reason; `Problem.uncertainty` tells.

    Notes
    -----
    Cost O(k f^2) for each gamma, k the number of classes up to `MANY_CLASSES`; of more, k that are evenly spaced in the
    order of their counts stand for all, so that head and tail keep their shares.
    """
    backend = spectrum.backend
    by_count = np.argsort(-backend.to_numpy(spectrum.count), kind="stable")
    some = by_count[np.linspace(0, len(by_count) - 1, min(len(by_count), MANY_CLASSES)).round().astype(np.intp)]
    means, B = backend.take(spectrum.means, some), backend.take(spectrum.B, some)
    pi = spectrum.pi[backend.index(some)]
    own = backend.asarray(np.diag(np.full(len(some), np.inf)))  # a class is no rival of its own

    leverage_of_scatter = shrinkage @ backend.double(within.diagonal())  # tr(K S_w)
    # For a new sample S_w comes with n - C in place of n, and undone is what W and K made of these very samples.
    unbiased = float(spectrum.count.sum()) / spectrum.degrees_of_freedom
    new = 1.0 / (1.0 - spectrum.in_pooled_scatter(leverage_of_scatter))
    in_any_direction = uncertainty * unbiased * backend.trace(within) / len(within)
    noise = (1.0 - uncertainty) * unbiased * leverage_of_scatter * new + in_any_direction * shrinkage.sum(1)  # tr(K S)

    right = []
    for i, d in enumerate(backend.cast(shrinkage, B.dtype)):
        W = B * d
        scores = backend.double(means @ W.T)  # w_z'm_y, (k, k)
        covariance = (1.0 - uncertainty) * unbiased * new[i] ** 2 * backend.double(W @ within @ W.T)
        covariance += in_any_direction * backend.double(W @ W.T)
        t = (pi * noise[i])[:, None]
        margin = (scores.diagonal()[:, None] - scores) * (1.0 + t) - t + own
        variance = covariance.diagonal()[:, None] + covariance.diagonal() - 2.0 * covariance
        log_right = backend.log_normal_cdf(margin / variance.clip(min=1e-300) ** 0.5).sum(1)
        right.append(backend.exp(log_right).mean())
    # Beyond a thousand to one the normal distribution is not to be believed.
    p = backend.to_numpy(backend.stack(right)).clip(1e-3, 1.0 - 1e-3)
    log_odds: Array = np.log((1.0 - p) / p)
    return log_odds
