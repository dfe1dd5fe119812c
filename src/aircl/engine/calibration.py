"""Calibrated probabilities from the statistics alone: a test set of scores is simulated, which nobody had to keep.

In the notation of `gamma.py`: S_w is the pooled scatter over n, S = S_w n / (n - C) the unbiased one, and
h = (sum_y pi_y n_y) tr(K S_w) / (n - C) the leverage of a sample in it. A new sample of class y, which W has not seen,
has scores with

    mean (1 + t_y) W'm_y - t_y e_y,   t_y = pi_y tr(K S) / (1 - h),   covariance (1 + 1 / n_y) V_y / (1 - h)^2,

where 1 / n_y is for what n_y samples leave open of the mean. V_y is the scatter of the class's own scores over n_y - 1
where the store has it, shrunk to D_y W'S W D_y with the weight (n_y - 1) / (n_y - 1 + 10) on its own. D_y is there
because classes do not scatter alike: the score of a class varies most within the class itself, next in the classes it
is confused with, and hardly in the others. With p_y the expected scores of class y, as shares, p_z (1 - p_z) has this
shape, and v_yz is its ratio to the mean over all classes. D_yz^2 = 1 + a (v_yz - 1), so that the mean over classes
stays W'S W; a from 0 to 1 is what the own variances of the own scores tell, with 10 samples' worth of a = 1/2 in
addition. So it is 1/2 for `shared` and `pooled`, which know nothing of single classes. a is about 0 for normal classes
of one covariance, 0.2 to 0.6 for digits, texts and names.

Scores are drawn from a multivariate t with 5 degrees of freedom. Where a class's own score varies 3 times as much in
the class as in general, features have longer tails than their covariance tells, and the draws have 5/3 of it; where it
varies alike, they have the covariance; in between, in proportion. An intercept b and a temperature T are what minimises
the log-loss of softmax((scores + b) / T) on the draws, class y with its weight in the regression, pi_y n_y. How often
the draws are right is the accuracy to expect.

Nothing is drawn at random: noise is a continuous function of the statistics, it passes through the symmetric root of
the covariance, and labels take no part in it. So other labels permute b, and order, splits, merging and saving change
it by what rounding and the optimiser leave, about 1e-5 in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaincinv, logsumexp, ndtri, softmax

from aircl.engine.backend import Array
from aircl.engine.problem import Problem
from aircl.engine.solve import solve_ridge

# Score vectors in all, and at least for each class.
DRAWS, FEWEST_DRAWS = 8192, 16
# Degrees of freedom of the multivariate t, and of the prior for what is known of a single class.
TAILS, PRIOR = 5.0, 10.0
# a, where nothing is known of single classes.
PRIOR_SHAPE = 0.5
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
    scores : array of shape (C, d, r) or None
        Simulated scores of new samples of every class, without b. None if nothing is known of any scatter.
    """

    b: Array
    temperature: float
    share: Array
    rivals: Array
    scores: Array | None

    def predicted(self, b: Array) -> Array:
        """Return the share of a class's draws that is predicted as each of `rivals`, given intercepts b, (C, r)."""
        if self.scores is None:
            right = 1.0 if len(self.share) == 1 else np.nan
            return np.where(np.arange(self.rivals.shape[1]) == 0, right, np.zeros(self.rivals.shape))
        best = np.argmax(self.scores + b[self.rivals][:, None, :], axis=2)
        return np.stack([(best == column).mean(axis=1) for column in range(self.rivals.shape[1])], axis=1)


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
    0.95 expected, 0.90 measured
    >>> taken, for_, share = expected.confusions[0]
    >>> print(f"{share:.0%} of {taken} are taken for {for_}")
    5% of 8 are taken for 1
    """

    overall: float
    per_class: Array
    confusions: list[tuple[Any, Any, float]]


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Scores that are linear in x, and what is different about samples that they were not made of; classes by slot.

    A new sample of class y has the mean scores gain_y W'm_y + offset - drop_y e_y.

    Attributes
    ----------
    W : array of shape (f, C), float64
    offset, gain, drop : arrays of shape (C,)
    leverage : float
        h, of a sample in the pooled scatter, below 1.
    log_scale : float or None
        None: scores are like shares. A number: they are like logarithms, and their softmax at this scale is.
    """

    W: Array
    offset: Array
    gain: Array
    drop: Array
    leverage: float
    log_scale: float | None = None


def calibrate(problem: Problem, W: Array, gamma: float) -> Calibration:
    """Return intercepts, temperature and simulated scores for the solution W (f, C) of a problem at gamma.

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
    backend, C, n = problem.backend, len(problem.count), float(problem.count.sum())
    W, none = backend.double(W), np.zeros(C)
    if not has_scatter(problem):
        return calibrate_linear(problem, LinearScores(W, none, none + 1.0, none, 0.0))
    # tr(K S_w)
    trace = backend.trace(solve_ridge(problem.G, backend.symmetric(backend.double(problem.within)), gamma))
    h = min(float(problem.pi @ problem.count) * trace / (n - C), 1.0 - 1e-6)
    t = problem.pi * trace * (n / (n - C)) / (1.0 - h)
    return calibrate_linear(problem, LinearScores(W, none, 1.0 + t, t, h))


def calibrate_linear(problem: Problem, linear: LinearScores) -> Calibration:
    """Return intercepts, temperature and simulated scores for any scores that are linear in x."""
    share = problem.pi * problem.count / (problem.pi @ problem.count)
    new = unseen_scores(problem, linear, share)
    if new.covariance is None:
        return Calibration(np.zeros(len(share)), float(np.ptp(new.mean)) or 1.0, share, new.rivals, None)
    scores = new.mean[:, None, :] + draw(new.covariance, new.rivals, new.key)
    b, temperature = fit(scores, new.rivals, new.log_weight, share)
    return Calibration(b, temperature, share, new.rivals, scores.astype(np.float32))


def has_scatter(problem: Problem) -> bool:
    """Tell whether there are several classes, and anything is known of how samples scatter around their means."""
    C, n = len(problem.count), float(problem.count.sum())
    return C > 1 and n - C > 1e-9 * n and problem.backend.trace(problem.within) > 0.0


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
    ratio : array of shape (C, r)
        v_yz of the head of this file.
    key : array of shape (C,)
        A number that tells classes apart, made of the statistics.
    covariance : array of shape (C, r, r) or None
        None if nothing is known of any scatter.
    """

    rivals: Array
    log_weight: Array
    mean: Array
    ratio: Array
    key: Array
    covariance: Array | None = None


def unseen_scores(problem: Problem, linear: LinearScores, share: Array) -> UnseenScores:
    """Return the moments that the head of this file states. Cost as `calibrate`, but for the draws."""
    backend, C, n = problem.backend, len(problem.count), float(problem.count.sum())
    means = backend.double(problem.sums) / backend.asarray(problem.count)[:, None]
    own = backend.to_numpy((means * linear.W.T).sum(1)) + linear.offset  # W_y'm_y
    key = own / (np.abs(own).max() or 1.0) + np.log(problem.count)
    new = _expected_scores(problem, linear, means, share, key)
    if not has_scatter(problem):
        return new
    S = backend.symmetric(backend.double(problem.within)) * (n / (n - C))
    covariance = _covariances(problem, linear.W, S, means, new)
    covariance *= ((1.0 + 1.0 / problem.count) / (1.0 - linear.leverage) ** 2)[:, None, None]
    return replace(new, covariance=covariance)


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


def draw(covariance: Array, rivals: Array, key: Array) -> Array:
    """Return draws with mean 0 from multivariate t's of these covariances (C, r, r), shape (C, d, r)."""
    C = len(rivals)
    half = max(FEWEST_DRAWS, DRAWS // max(C, 4)) // 2
    normal = normals(key, np.arange(C), rivals, half)
    # The chi-squared that makes a t of a normal: one draw in each of `half` equally likely intervals.
    chi2 = 2.0 * gammaincinv(TAILS / 2.0, (np.arange(half) + 0.5) / half)
    normal *= np.sqrt((TAILS - 2.0) / chi2)[:, None]
    noise = normal @ symmetric_roots(covariance)
    return np.concatenate([noise, -noise], axis=1)  # in pairs, so that their mean is 0


def normals(key: Array, slots: Array, others: Array, n: int) -> Array:
    """Return n normal numbers for every class of `slots` (c,) and each of its `others` (c, r), shape (c, n, r).

    The i-th number of classes with keys k and l is the normal quantile of |2 (p_i k + q_i l + r_i mod 1) - 1|: a
    continuous function of the keys, so that what rounding does to them is all that it does to the numbers.
    """
    p, q, r = np.random.default_rng(0).uniform(300.0, 1000.0, (3, n))
    phase = (p * key[slots, None] + r)[:, :, None] + q[:, None] * key[others][:, None, :]
    normal: Array = ndtri(np.abs(2.0 * (phase % 1.0) - 1.0).clip(1e-6, 1.0 - 1e-6))
    return normal


def symmetric_roots(covariance: Array) -> Array:
    """Return the symmetric roots of matrices (c, r, r)."""
    eigenvalues, V = np.linalg.eigh(covariance)
    roots: Array = (V * np.sqrt(eigenvalues.clip(min=0.0))[:, None, :]) @ V.swapaxes(1, 2)
    return roots


def _expected_scores(problem: Problem, linear: LinearScores, means: Array, share: Array, key: Array) -> UnseenScores:
    """Return rivals and expected scores, looking for rivals in groups of classes."""
    backend, C, n_groups = problem.backend, len(share), -(-len(share) // GROUP)
    by_key = np.argsort(key, kind="stable")
    groups = [by_key[i::n_groups] for i in range(n_groups)]
    smallest = min(len(group) for group in groups)
    kept, stands_for = np.arange(smallest), max(C - 1.0, 1.0) / max(smallest - 1.0, 1.0)
    weight = np.full(smallest, stands_for)
    if smallest > MANY_CLASSES:
        first, others = 1 + STRONGEST // (1 + (C > GROUP)), STAND_INS // (1 + (C > GROUP))
        edges = np.linspace(first, smallest, others + 1).round().astype(np.intp)
        kept = np.concatenate([kept[:first], (edges[:-1] + edges[1:]) // 2])
        weight = stands_for * np.concatenate([np.ones(first), np.diff(edges)])
    weight[0] = 1.0
    rivals, (mean, ratio) = np.empty((C, len(kept)), np.intp), np.empty((2, C, len(kept)))
    for group in groups:
        scores = backend.to_numpy(backend.take(means, group) @ backend.take(linear.W.T, group).T)
        scores = scores * linear.gain[group, None] + linear.offset[group]
        own = np.diag_indices_from(scores)
        scores[own] -= linear.drop[group]
        ranked = -scores
        ranked[own] = -np.inf
        columns = np.argsort(ranked, axis=1, kind="stable")[:, kept]
        rivals[group], mean[group] = group[columns], np.take_along_axis(scores, columns, axis=1)
        shares = scores if linear.log_scale is None else softmax(scores / linear.log_scale, axis=1)
        ratio[group] = np.take_along_axis(_variance_ratios(shares, share[group], stands_for), columns, axis=1)
    return UnseenScores(rivals, np.log(weight), mean, ratio, key)


def _variance_ratios(scores: Array, share: Array, stands_for: float) -> Array:
    """Return v_yz: p (1 - p) with p the scores (c, c) as shares, over its mean over the classes y."""
    weight = np.full(scores.shape, stands_for)  # a class has itself once among these, each rival for several
    np.fill_diagonal(weight, 1.0)
    p = scores.clip(min=0.0) + 1e-9 * np.abs(scores).max() + 1e-300
    p /= (weight * p).sum(axis=1, keepdims=True)
    variance = (p * (1.0 - p)).clip(min=1e-12)
    weight *= share[:, None]
    ratio: Array = variance * weight.sum(axis=0) / (weight * variance).sum(axis=0)
    return ratio


def _covariances(problem: Problem, W: Array, S: Array, means: Array, new: UnseenScores) -> Array:
    """Return V_y among the rivals of every class, longer tails included, shape (C, r, r)."""
    backend, (C, r) = problem.backend, new.rivals.shape
    rows = W.T
    spread, covariance = rows @ S, np.empty((C, r, r))  # W'S
    every = backend.to_numpy(spread @ W) if C <= GROUP else None
    for y, some in enumerate(new.rivals):
        if every is not None:
            covariance[y] = every[np.ix_(some, some)]
        else:
            covariance[y] = backend.to_numpy(backend.take(spread, some) @ backend.take(rows, some).T)
    known = np.zeros(C)  # degrees of freedom of what is known of a class alone
    if problem.moments is not None and C <= GROUP:
        known = np.where(problem.count - 1.0 > 1e-9, problem.count - 1.0, 0.0)
    learned = np.flatnonzero(known).tolist()
    own = {y: own_scatter(problem, backend.take(rows, new.rivals[y]), means, y) for y in learned}

    excess, own_ratio = new.ratio[:, 0] - 1.0, np.ones(C)
    for y, scatter in own.items():
        own_ratio[y] = scatter[0, 0] / (known[y] * max(float(covariance[y, 0, 0]), 1e-300))
    prior = PRIOR * max(float(excess.mean()), 1e-9)
    told = float(known @ (own_ratio - 1.0)) + PRIOR_SHAPE * prior
    a = min(max(told / max(float(known @ excess) + prior, 1e-9), 0.0), 1.0)
    D = np.sqrt(1.0 + a * (new.ratio - 1.0))
    covariance *= D[:, :, None] * D[:, None, :]
    for y, scatter in own.items():
        covariance[y] = (scatter + PRIOR * covariance[y]) / (known[y] + PRIOR)
    longer = min(a * max(float(excess.mean()), 0.0) / 2.0, 1.0)
    covariance *= 1.0 + 2.0 / (TAILS - 2.0) * longer
    return covariance


def own_scatter(problem: Problem, V: Array, means: Array, y: int) -> Array:
    """Return the scatter of a class's own scores, V (r, f) the weights of its rivals, shape (r, r)."""
    assert problem.moments is not None
    backend, moment = problem.backend, problem.moments[y]
    narrow = backend.cast(V.T, problem.G.dtype)
    if moment.packed is None:
        Z = backend.double(moment.all_rows() @ narrow)
        second = Z.T @ Z
    else:
        second = V @ backend.double(backend.symmetric_product(moment.dense(), narrow))
    centre = backend.to_numpy(V @ means[y])
    scatter: Array = backend.to_numpy(second) - float(problem.count[y]) * np.outer(centre, centre)
    return scatter
