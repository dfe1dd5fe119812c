"""Calibrated probabilities from the statistics alone: a test set of scores is simulated, which nobody had to keep.

In the notation of `gamma.py`: S_w is the pooled scatter over n, S = S_w n / (n - C) the unbiased one, and
h = (sum_y pi_y n_y) tr(K S_w) / (n - C) the leverage of a sample in it. S_y, the covariance of class y, is its own
scatter over n_y - 1 where the store has it, shrunk to S with the weight (n_y - 1) / (n_y - 1 + 10) on its own. A new
sample of class y, which W has not seen, has scores with

    mean (1 + t_y) W'm_y - t_y e_y,   t_y = pi_y tr(K S) / (1 - h),   covariance (1 + 1 / n_y) W'S_y W / (1 - h)^2,

where 1 / n_y is for what n_y samples leave open of the mean. They are drawn from a multivariate t, whose tails are
those of features rather than a normal's. An intercept b and a temperature T are what minimises the log-loss of
softmax((scores + b) / T) on the draws, class y with its weight in the regression, pi_y n_y. How often the draws are
right is the accuracy to expect: too high where the classes scatter in other directions than S does and little is known
of their own, in the `shared` and `pooled` stores and for classes of few samples.

Draws are functions of the statistics and the labels: noise passes through the symmetric root of the covariance, which
no order and no rotation of a factor changes, and the noise of a pair of classes is a hash of their labels. So order,
splits, merging and saving change b by what rounding and the optimiser leave, about 1e-5 in float64. Other names for the
classes are other draws: they permute b but for the noise of the simulation, a few hundredths of the scores' deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaincinv, logsumexp, ndtri

from aircl.engine.backend import Array
from aircl.engine.problem import Problem
from aircl.engine.solve import solve_ridge

# Score vectors in all, and at least for each class.
DRAWS, FEWEST_DRAWS = 8192, 16
# Degrees of freedom of the multivariate t, and of the prior for a class's own covariance.
TAILS, PRIOR = 5.0, 10.0
# Of the mean squared intercept, in units of the scores' deviation.
PENALTY = 0.01
# Of the squared 1/T in the same units: where no draw is wrong, the temperature is not 0 nor left to rounding.
SLOPE_PENALTY = 1e-6
# A group of more classes than the first: a class has so many of the strongest rivals, and of the others stand-ins.
MANY_CLASSES, STRONGEST, STAND_INS = 128, 32, 16
# Rivals are looked for in groups of so many classes.
GROUP = 1024


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the simulated scores tell; classes by slot.

    Attributes
    ----------
    b : array of shape (C,)
        Intercepts, to be added to the scores.
    temperature : float
        Of the softmax.
    share : array of shape (C,)
        The weight of each class in the loss, in sum 1.
    rivals : array of shape (C, r)
        The class itself, and those it was compared with.
    predicted : array of shape (C, r)
        The share of a class's draws that is predicted as each of `rivals`.
    """

    b: Array
    temperature: float
    share: Array
    rivals: Array
    predicted: Array


@dataclass(frozen=True, eq=False)
class ExpectedAccuracy:
    """The accuracy to expect on new samples of the classes as they were learned, from the statistics alone.

    Attributes
    ----------
    overall : float
        The mean over classes, weighted as in the classifier's loss: equal for weights 1/n_y, by count for uniform ones.
    per_class : array of shape (C,)
        In the order of `classes_`; NaN for classes not seen yet.
    confusions : list of (label, label, float)
        A class, another, and the share of the first that is taken for the second; the largest first.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import AIRClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = AIRClassifier(expansion=None, calibrate=True).fit(X[:900], y[:900])
    >>> expected = clf.expected_accuracy()
    >>> print(f"{expected.overall:.2f} expected, {clf.score(X[900:], y[900:]):.2f} measured")
    0.91 expected, 0.91 measured
    >>> taken, for_, share = expected.confusions[0]
    >>> print(f"{share:.0%} of {taken} are taken for {for_}")
    7% of 8 are taken for 1
    """

    overall: float
    per_class: Array
    confusions: list[tuple[Any, Any, float]]


def calibrate(problem: Problem, W: Array, gamma: float, labels: Array) -> Calibration:
    """Return intercepts, temperature and expected predictions for the solution W (f, C) of a problem at gamma.

    Where n - C is not positive there is no scatter and nothing can be told: no intercept, and the temperature is the
    range of the scores of the class means, so that probabilities differ by a factor of e at the most.

    Notes
    -----
    Cost O(f^3 + C f^2 + C f r^2 + C r^3) with r the rivals of a class, for classes with their own scatter O(n_y f r)
    for a factor and O(f^2 r) for a packed matrix more. Up to 128 classes all are rivals. Of more, a class has the 32
    with the highest expected scores, and 16 that stand for the others, evenly spaced in the order of these scores; of
    more than 1024, classes find half as many in groups of at most 1024, which stand for all in the loss, and the pooled
    scatter stands for their own; then the expected accuracy is too high, and there is no intercept.
    """
    share = problem.pi * problem.count / (problem.pi @ problem.count)
    noise = Noise(labels)
    new = unseen_scores(problem, W, gamma, noise)
    if new.covariance is None:
        right = 1.0 if len(share) == 1 else np.nan
        predicted = np.where(np.arange(new.rivals.shape[1]) == 0, right, np.zeros(new.rivals.shape))
        return Calibration(np.zeros(len(share)), float(np.ptp(new.mean)) or 1.0, share, new.rivals, predicted)
    scores = new.mean[:, None, :] + noise.draw(new.covariance, new.rivals)
    b, temperature = fit(scores, new.rivals, new.log_weight, share)
    best = np.argmax(scores + b[new.rivals][:, None, :], axis=2)
    predicted = np.stack([(best == column).mean(axis=1) for column in range(scores.shape[2])], axis=1)
    return Calibration(b, temperature, share, new.rivals, predicted)


@dataclass(frozen=True, eq=False)
class UnseenScores:
    """Moments of the scores of samples that were not learned, for every class against some rivals.

    Attributes
    ----------
    rivals : array of shape (C, r)
        Slots of the classes whose scores these are, the class itself first.
    log_weight : array of shape (r,)
        The log of the number of classes that a column stands for.
    mean : array of shape (C, r)
    covariance : array of shape (C, r, r) or None
        None if nothing is known of any scatter.
    """

    rivals: Array
    log_weight: Array
    mean: Array
    covariance: Array | None


def unseen_scores(problem: Problem, W: Array, gamma: float, noise: Noise) -> UnseenScores:
    """Return the moments that the head of this file states. Cost as `calibrate`, but for the draws."""
    backend, C, n = problem.backend, len(problem.count), float(problem.count.sum())
    W, means = backend.double(W), backend.double(problem.sums) / backend.asarray(problem.count)[:, None]
    within = backend.symmetric(backend.double(problem.within))
    if C == 1 or n - C <= 1e-9 * n or backend.trace(within) <= 0.0:
        return UnseenScores(*_expected_scores(problem, means, W, np.zeros(C), noise.groups()), None)
    leverage = backend.trace(solve_ridge(problem.G, within, gamma))  # tr(K S_w)
    h = min(float(problem.pi @ problem.count) * leverage / (n - C), 1.0 - 1e-6)
    unbiased = n / (n - C)
    t = problem.pi * leverage * unbiased / (1.0 - h)
    rivals, log_weight, mean = _expected_scores(problem, means, W, t, noise.groups())
    covariance = _covariances(problem, W, within * unbiased, means, rivals)
    covariance *= ((1.0 + 1.0 / problem.count) / (1.0 - h) ** 2)[:, None, None]
    return UnseenScores(rivals, log_weight, mean, covariance)


def fit(scores: Array, rivals: Array, log_weight: Array, share: Array) -> tuple[Array, float]:
    """Return b (C,) and T that minimise the log-loss of softmax((scores + b) / T), plus a penalty on b.

    Of more than `GROUP` classes, b is 0.

    Parameters
    ----------
    scores : array of shape (C, d, r)
        d draws of every class; the first column is its own score.
    rivals : array of shape (C, r)
        The class of each column.
    log_weight : array of shape (r,)
        The log of the number of classes that a column stands for.
    share : array of shape (C,)
        The weight of each class.

    Notes
    -----
    Convex in 1/T and b/T. By L-BFGS, O(C d r) a step.
    """
    C, d, _ = scores.shape
    unit = float(scores.std()) or 1.0
    scaled, flat = scores / unit, rivals.ravel()

    def loss(parameters: Array) -> tuple[float, Array]:
        slope, bias = parameters[0], parameters[1:]
        logits = slope * scaled + (bias[rivals] + log_weight)[:, None, :]
        total = logsumexp(logits, axis=2, keepdims=True)
        value = share @ (total[:, :, 0] - logits[:, :, 0]).mean(axis=1) + PENALTY * float(np.mean(bias**2))
        value += SLOPE_PENALTY * slope**2
        error = np.exp(logits - total)
        error[:, :, 0] -= 1.0
        error *= (share / d)[:, None, None]
        of_bias = np.bincount(flat, error.sum(axis=1).ravel(), minlength=C) + 2.0 * PENALTY / C * bias
        return float(value), np.concatenate([[np.vdot(error, scaled) + 2.0 * SLOPE_PENALTY * slope], of_bias])

    start = np.concatenate([[1.0], np.zeros(C)])
    # A class that meets few of its rivals tells its temperature, but too little of its intercept.
    bounds = [(1e-3, 1e3)] + [(None, None) if C <= GROUP else (0.0, 0.0)] * C
    options = {"maxiter": 300, "ftol": 0.0, "gtol": 1e-11 / C, "maxcor": 20}
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return best[1:] * (unit / best[0]), float(unit / best[0])


class Noise:
    """Normal numbers for every pair of labels: functions of the two alone.

    A key is a hash of a label. The i-th number of the labels with keys k and l is made of the upper bits of
    p_i k + q_i l + r_i, modulo 2^64.
    """

    def __init__(self, labels: Array) -> None:
        digests = b"".join(blake2b(str(label).encode(), digest_size=8).digest() for label in labels.tolist())
        self.key = np.frombuffer(digests, dtype="<u8").astype(np.uint64)

    def groups(self) -> list[Array]:
        """Return the slots in groups of at most `GROUP` classes, at random."""
        n_groups, order = -(-len(self.key) // GROUP), np.argsort(self.key, kind="stable")
        return [order[i::n_groups] for i in range(n_groups)]

    def draw(self, covariance: Array, rivals: Array) -> Array:
        """Return draws with mean 0 from multivariate t's, shape (C, d, r), for covariances (C, r, r)."""
        C = len(rivals)
        half = max(FEWEST_DRAWS, DRAWS // max(C, 4)) // 2
        p, q, r = np.random.default_rng(0).integers(0, 2**64, (3, half), dtype=np.uint64) | np.uint64(1)
        own = p * self.key[:, None] + r  # (C, half)
        bits = own[:, :, None] + q[:, None] * self.key[rivals][:, None, :]
        normal = ndtri(((bits >> np.uint64(12)).astype(np.float64) + 0.5) / 2.0**52)  # (C, half, r)
        # The chi-squared that makes a t of a normal: one draw in each of `half` equally likely intervals.
        chi2 = 2.0 * gammaincinv(TAILS / 2.0, (np.arange(half) + 0.5) / half)
        normal *= np.sqrt(TAILS / chi2)[:, None]
        eigenvalues, V = np.linalg.eigh(covariance)
        root = (V * np.sqrt(eigenvalues.clip(min=0.0))[:, None, :]) @ V.swapaxes(1, 2)
        noise = normal @ root
        return np.concatenate([noise, -noise], axis=1)  # in pairs, so that their mean is 0


def _expected_scores(
    problem: Problem, means: Array, W: Array, t: Array, groups: list[Array]
) -> tuple[Array, Array, Array]:
    """Return the rivals of every class, itself first (C, r), the columns' log weights, the expected scores (C, r)."""
    backend, C, smallest = problem.backend, len(t), min(len(group) for group in groups)
    kept = np.arange(smallest)
    weight = np.full(smallest, max(C - 1.0, 1.0) / max(smallest - 1.0, 1.0))
    if smallest > MANY_CLASSES:
        first, others = 1 + STRONGEST // (1 + (C > GROUP)), STAND_INS // (1 + (C > GROUP))
        edges = np.linspace(first, smallest, others + 1).round().astype(np.intp)
        kept = np.concatenate([kept[:first], (edges[:-1] + edges[1:]) // 2])
        weight = weight[0] * np.concatenate([np.ones(first), np.diff(edges)])
    weight[0] = 1.0
    rivals, mean = np.empty((C, len(kept)), np.intp), np.empty((C, len(kept)))
    for group in groups:
        scores = backend.to_numpy(backend.take(means, group) @ backend.take(W.T, group).T) * (1.0 + t[group, None])
        scores[np.diag_indices_from(scores)] -= t[group]
        ranked = -scores
        ranked[np.diag_indices_from(ranked)] = -np.inf
        columns = np.argsort(ranked, axis=1, kind="stable")[:, kept]
        rivals[group], mean[group] = group[columns], np.take_along_axis(scores, columns, axis=1)
    return rivals, np.log(weight), mean


def _covariances(problem: Problem, W: Array, S: Array, means: Array, rivals: Array) -> Array:
    """Return W'S_y W among the rivals of every class, shape (C, r, r)."""
    backend, (C, r) = problem.backend, rivals.shape
    rows = W.T
    spread, covariance = rows @ S, np.empty((C, r, r))  # W'S
    every = backend.to_numpy(spread @ W) if C <= GROUP else None
    for y, some in enumerate(rivals):
        V = backend.take(rows, some)  # W' of the rivals, (r, f)
        if every is not None:
            covariance[y] = every[np.ix_(some, some)]
        else:
            covariance[y] = backend.to_numpy(backend.take(spread, some) @ V.T)
        own = float(problem.count[y]) - 1.0
        if problem.moments is None or C > GROUP or own <= 1e-9:
            continue
        moment, narrow = problem.moments[y], backend.cast(V.T, problem.G.dtype)
        if moment.packed is None:
            Z = backend.double(moment.all_rows() @ narrow)
            second = Z.T @ Z
        else:
            second = V @ backend.double(backend.symmetric_product(moment.dense(), narrow))
        centre = backend.to_numpy(V @ means[y])
        scatter = backend.to_numpy(second) - float(problem.count[y]) * np.outer(centre, centre)
        weight = own / (own + PRIOR)
        covariance[y] = weight * (scatter / own) + (1.0 - weight) * covariance[y]
    return covariance
