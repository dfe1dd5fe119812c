"""gamma is chosen from the statistics alone: no sample is kept or set aside.

The criterion is the log of the classes' squared error plus the log odds of a misclassification, both as they are for
samples that were not learned. The error has sharp minima but is not what a classifier is for; the odds are, but rest on
normally distributed classes and are flat where classes are far apart. Measured, their sum chooses better than either.
All classes have the scatter S_w around their means m_y, and K = (sum_y pi_y A_y + gamma I)^-1, W = K B.

*Squared error*: generalised cross-validation taken class by class. Ordinary GCV divides the mean residual by one mean
leverage, which stands for head and tail alike and picks badly under imbalance. Here every class has its own,

    L_y(gamma) = R_y / (1 - h_y)^2,   R_y = |1_y - W'm_y|^2 + tr(W'S_w W),
    h_y = pi_y (m_y'K m_y + (1 - 1 / n_y) tr(K S_w)),

in the geometric mean over classes. In the sample the scatter is (1 - 1/n_y) S_w: one sample has none. A new sample of
the class scatters by S_w whatever n_y is, and that is what R_y has. A second estimate takes mean and scatter apart: the
error at the mean has the mean's leverage, and the spread has that of a sample in the pooled scatter, which is the same
for all classes and reaches 1 when the n - C degrees of freedom are used up. L_y is the mean of the two: each alone can
vanish or explode for some classes when there are more features than samples.

*Odds of an error*: a new sample of class y is normal around the class's true mean with covariance S. Its scores have
the covariance W'S W. Their mean is not W'm_y, for W has seen the noise e in m_y = mu_y + e. With K_0, which has not,
and a = pi_y n_y, K m_y is K_0 m_y / (1 + a m_y'K_0 m_y), so that the scores at mu_y are in expectation

    (1 + t_y) W'm_y - t_y 1_y,   t_y = pi_y tr(K S),

which is what leaving out a sample of leverage t / (1 + t) gives. The class is right with probability
prod_z Phi(margin over z / its standard deviation); the mean of that over classes makes the odds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from aircl.engine.backend import Array
from aircl.engine.problem import Problem, bounded, scatter_leverage, weighted_means
from aircl.engine.solve import RidgeFactor

# Relative to the mean eigenvalue of the weighted second moments: four points a decade.
GRID = np.logspace(-4, 2, 25)
# A search begins at the best of these, a decade apart: smaller gammas may have a minimum of their own where samples are
# interpolated. Its steps, and those for more features than the last number.
STARTS, STRIDES, FEW_STRIDES, WIDE = (8, 12, 16, 20, 24), (2, 1, 1), (2,), 1500
# Gammas that are tried during a stream, at the most.
MAX_TRIALS_NEAR = 5
# Of more classes, so many that are evenly spaced in the order of their counts stand for all: head and tail keep their
# shares.
MANY_CLASSES = 128
# Beyond this width traces are means over so many random sign vectors (Hutchinson), while the leverage is smaller than
# this: what is divided by 1 - leverage has to be exact where that is small, at the cost of K.
EXACT_WIDTH, N_SIGNS, EXACT_LEVERAGE = 512, 32, 0.5
# A residual below this, where samples are fitted exactly, is rounding: it does not make up for a leverage of 1.
FLOOR = 1e-6


@dataclass(frozen=True)
class GammaPath:
    """The gammas that were tried and the criterion at each.

    Attributes
    ----------
    gamma : array of shape (g,)
        Ascending.
    criterion : array of shape (g,)
        `error` plus the log odds of a misclassification.
    error : array of shape (g,) or None
        Mean over classes of the log of the leave-one-out error. None: it was read from a file that does not have it.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import AIRClassifier
    >>> clf = AIRClassifier().fit(*load_digits(return_X_y=True))
    >>> path = clf.gamma_path_
    >>> path.gamma.shape == path.criterion.shape, path.best == clf.gamma_
    (True, True)
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


@dataclass(frozen=True, eq=False)
class Trial:
    """One gamma, the solution with it and what it is worth."""

    gamma: float
    W: Array | None  # (f, C); None for more than 128 classes, of which some are solved for
    trace: float  # tr(K S_w)
    leverage: float  # the mean leverage of a sample in the scatter of its class, below 1
    error: float  # mean over classes of the log of the leave-one-out error
    criterion: float  # what is minimised


def choose_gamma(problem: Problem, near: float | None = None) -> tuple[GammaPath, Trial]:
    """Search for gamma, in the vicinity of `near` if it is given; return what was tried, and the best.

    Cost O(f^3 / 3 + min(C, 128) f^2 + C f) for each gamma, O(f^3) where the samples are nearly interpolated. About
    nine are tried, of more than 1500 features seven, with `near` three to five.
    """
    mean_eigenvalue = problem.backend.trace(problem.G) / len(problem.G) or 1.0
    gammas, judge = GRID * mean_eigenvalue, Criterion(problem)
    tried: dict[int, tuple[float, float]] = {}
    best: Trial | None = None

    def value(place: int) -> float:
        nonlocal best
        if place not in tried:
            if near is not None and len(tried) == MAX_TRIALS_NEAR:
                return np.inf
            trial = judge.at(float(gammas[place]))
            tried[place] = (trial.criterion, trial.error)
            if best is None or (trial.criterion, -trial.gamma) < (best.criterion, -best.gamma):
                best = trial  # no other solution is held
        return tried[place][0]

    if near is None:
        strides = FEW_STRIDES if len(problem.G) > WIDE else STRIDES
        descend(value, min(STARTS, key=lambda place: (value(place), -place)), strides)
    else:
        descend(value, int(np.abs(np.log(gammas / near)).argmin()), (1, 1))
    assert best is not None
    places = sorted(tried)
    return GammaPath(gammas[places], *np.array([tried[place] for place in places]).T), best


def descend(value: Callable[[int], float], place: int, steps: tuple[int, ...], n_places: int = len(GRID)) -> int:
    """Return a place of the grid that has no lower neighbour, a step away; of equals, the upper.

    Each of the steps is doubled as long as that leads down.
    """
    for step in steps:
        for stride in (step, -step):
            while True:
                other = min(max(place + stride, 0), n_places - 1)
                if other == place or (value(other), -other) > (value(place), -place):
                    break
                place, stride = other, 2 * stride
    return place


class Criterion:
    """The two terms of the head of this file as functions of gamma, with what is the same for all gammas."""

    def __init__(self, problem: Problem) -> None:
        backend, f = problem.backend, len(problem.G)
        self.problem = problem
        by_count = np.argsort(-problem.count, kind="stable")
        self.some = by_count[np.linspace(0, len(by_count) - 1, min(len(by_count), MANY_CLASSES)).round().astype(int)]
        self.count, self.pi = problem.count[self.some], problem.pi[self.some]
        self.means = backend.take(problem.sums, self.some) / backend.column(self.count, problem.sums)
        self.B = (problem.sums * backend.column(problem.pi, problem.sums)).T
        self.class_signs: Array | None = None
        if len(problem.count) > MANY_CLASSES:
            signs = np.random.default_rng(1).choice([-1.0, 1.0], (len(problem.count), N_SIGNS)) / N_SIGNS**0.5
            self.class_signs = self.B @ backend.asarray(signs)
        S_w = problem.within_class_covariance
        n = float(problem.count.sum())
        degrees_of_freedom = max(n - len(problem.count), 1e-9)  # of the scatter around the class means
        # A part of a class's scatter may lie in any direction instead of where S_w has it, and where K is small
        # therefore. For a new sample S_w comes with n - C in place of n.
        uncertainty, unbiased = problem.uncertainty, n / degrees_of_freedom
        self.known = (1.0 - uncertainty) * unbiased
        self.in_any_direction = uncertainty * unbiased * backend.trace(S_w) / f
        # The leverage of a sample in the pooled scatter is this times tr(K S_w) if all weights are equal.
        # Where they are not, that is too high, even above 1: that keeps the search from gammas that fit single samples.
        self.leverage_per_trace = float(problem.pi @ problem.count) / degrees_of_freedom
        self.signs: Array | None = None
        if f > EXACT_WIDTH:
            signs = np.random.default_rng(0).choice([-1.0, 1.0], (f, N_SIGNS)) / N_SIGNS**0.5
            self.signs = backend.asarray(signs)
            self.scattered_signs = self.scattered(self.signs)
            G, M = problem.G, weighted_means(problem)
            product = backend.double(backend.symmetric_product(G, backend.cast(self.signs, G.dtype)))
            self.leverage_signs = (product - M.T @ (M @ self.signs)) / degrees_of_freedom

    def scattered(self, V: Array) -> Array:
        """Return S_w V, float64."""
        backend, S_w = self.problem.backend, self.problem.within_class_covariance
        return backend.double(backend.symmetric_product(S_w, backend.cast(V, S_w.dtype)))

    def traces(self, factor: RidgeFactor) -> tuple[float, float, float]:
        """Return tr(K), tr(K S_w) and the mean leverage of a sample in the scatter of its class."""
        if self.signs is not None:
            shrunk = factor.solve(self.signs)
            signs = (self.signs, self.scattered_signs, self.leverage_signs)
            of_K, of_KS, leverage = (float((V * shrunk).sum()) for V in signs)
            if self.leverage_per_trace * of_KS < EXACT_LEVERAGE:
                return of_K, of_KS, bounded(leverage)
        backend, K = self.problem.backend, factor.inverse()
        of_KS = backend.inner_product(K, self.problem.within_class_covariance)
        return backend.trace(K), of_KS, scatter_leverage(self.problem, K)

    def at(self, gamma: float) -> Trial:
        """Solve with one gamma, and judge it."""
        backend = self.problem.backend
        factor = RidgeFactor(self.problem.G, gamma)
        shrunk = factor.solve(self.means.T)  # K m_y, (f, k)
        own = shrunk * backend.column(self.pi * self.count, shrunk.T).T  # W_y = pi_y n_y K m_y
        trace_K, trace_KS, leverage = self.traces(factor)
        # Undone is what W and K made of these very samples.
        new = 1.0 / (1.0 - min(self.leverage_per_trace * trace_KS, 1.0 - 1e-6))
        t = self.pi * (self.known * trace_KS * new + self.in_any_direction * trace_K)  # pi_y tr(K S)
        spread = self.scattered(own)
        scores = backend.to_numpy(shrunk.T @ self.B)  # W'm_y, (k, C)
        covariance, squares = (backend.to_numpy(own.T @ V) for V in (spread, own))  # W'S_w W and W'W, (k, k)
        W: Array | None = None
        if self.class_signs is None:
            W, total = own[:, backend.index(np.argsort(self.some))], float(covariance.trace())
        else:
            V = factor.solve(self.class_signs)
            total = float((V * self.scattered(V)).sum())  # tr(W'S_w W)
        covariance = self.known * new**2 * covariance + self.in_any_direction * squares
        fitted = scores[np.arange(len(scores)), self.some]  # W_y'm_y = pi_y n_y m_y'K m_y
        at_mean = 1.0 - 2.0 * fitted + np.square(scores).sum(1)  # |1_y - W'm_y|^2
        error = self.log_error(at_mean, total, fitted / self.count, trace_KS)
        return Trial(gamma, W, trace_KS, leverage, error, error + log_error_odds(scores[:, self.some], t, covariance))

    def log_error(self, at_mean: Array, spread: float, leverage_of_mean: Array, trace_KS: float) -> float:
        """Return the mean over classes of log L_y, from the squared errors of the means (k,) and tr(W'S_w W)."""
        leverage = leverage_of_mean + self.pi * (1.0 - 1.0 / self.count).clip(min=0.0) * trace_KS
        in_pooled_scatter = np.array(self.leverage_per_trace * trace_KS)
        apart = loss(at_mean, leverage_of_mean) + loss(np.array(spread), in_pooled_scatter)
        return float(np.log((loss(at_mean + spread, leverage) + apart) / 2.0).mean())


def loss(residual: Array, leverage: Array) -> Array:
    """Return a squared residual as it is without the sample itself. Both stay just within their bounds."""
    loss: Array = residual.clip(min=FLOOR) / (1.0 - leverage.clip(max=1.0 - 1e-6)) ** 2
    return loss


def log_error_odds(scores: Array, t: Array, covariance: Array) -> float:
    """Return the log odds that a new sample is misclassified, every class equally likely.

    `scores` (k, k) are those of the class means, t (k,) is t_y, `covariance` (k, k) W'S W.
    """
    margin = (scores.diagonal()[:, None] - scores) * (1.0 + t[:, None]) - t[:, None]
    margin[np.diag_indices_from(margin)] = np.inf  # a class is no rival of its own
    variance = covariance.diagonal()[:, None] + covariance.diagonal() - 2.0 * covariance
    right = np.exp(log_ndtr(margin / np.sqrt(variance.clip(min=1e-300))).sum(1)).mean()
    # Beyond a thousand to one the normal distribution is not to be believed.
    p = float(np.clip(right, 1e-3, 1.0 - 1e-3))
    return float(np.log((1.0 - p) / p))
