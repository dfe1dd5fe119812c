"""Calibrated probabilities from the statistics alone: a test set of scores is simulated, which nobody had to keep.

In the notation of `gamma.py`: S_w is the pooled scatter over n, S = S_w n / (n - C) the unbiased one, and h the mean
leverage of a sample in the scatter of its class (`problem.scatter_leverage`). A new sample of class y, which W has not
seen, has scores with

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
the draws are right is the accuracy to expect. `benchmarks/constants.py` chooses the constants, on training data alone.

Nothing is drawn at random: noise is a continuous function of the statistics, it passes through the symmetric root of
the covariance, and labels take no part in it. So other labels permute b, and order, splits, merging and saving change
it by what rounding makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import gammaincinv, ndtri, softmax

from aircl.engine.backend import Array, backend_of
from aircl.engine.problem import Problem
from aircl.engine.solve import LinearSolution

# Score vectors in all, and at least for each class.
DRAWS, FEWEST_DRAWS = 8192, 16
# Degrees of freedom of the multivariate t, and of the prior for what is known of a single class.
TAILS, PRIOR = 5.0, 10.0
# From this ratio of variances on, the draws have this much of the covariance: the t as it is, not rescaled to it.
VARIED, WIDEST = 3.0, TAILS / (TAILS - 2.0)
# a, where nothing is known of single classes.
PRIOR_SHAPE = 0.5
# Of the mean squared intercept, in units of the scores' deviation.
PENALTY = 0.01
# Of the squared 1/T in the same units: where no draw is wrong, the temperature is not 0 nor left to rounding.
SLOPE_PENALTY = 1e-6
# The limits of 1 / T in units of the scores' standard deviation, and the most steps of Newton's method.
SLOPES, MAX_STEPS = (1e-3, 1e3), 50
# From so many draws of a class on, the search begins with some of them.
MANY_DRAWS = 64
# Numbers that are worked on at a time.
IN_CACHE = 2**15
# Of more classes than the first, a class has so many of the strongest rivals, and of the others stand-ins.
MANY_CLASSES, STRONGEST, STAND_INS = 128, 32, 16
# Of more classes than the first, some are simulated: so many that their expected scores are as many as the second.
ALL_CLASSES, EXPECTED_SCORES = 1024, 2**22


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the simulated scores tell; classes by slot."""

    b: Array  # (C,) intercepts, to be added to the scores
    temperature: float  # of the softmax
    share: Array  # (C,) the weight of each class in the loss, in sum 1
    rivals: Array  # (c, r) the classes that were simulated, all of them up to 1024, and those each was compared with
    scores: Array | None  # (c, d, r) of new samples of these classes, without b; None if no scatter is known

    def predicted(self, b: Array) -> Array:
        """Return the share of a class's draws that is predicted as each of `rivals`, given intercepts b, (c, r)."""
        if self.scores is None:
            right = 1.0 if len(self.share) == 1 else np.nan
            return np.where(np.arange(self.rivals.shape[1]) == 0, right, np.zeros(self.rivals.shape))
        best = np.argmax(self.scores + b[self.rivals][:, None, :], axis=2)
        return np.stack([(best == column).mean(axis=1) for column in range(self.rivals.shape[1])], axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibratedSolution(LinearSolution):
    """Weights of any linear scores; with an intercept and a temperature, where these were looked for."""

    temperature: float | None = None

    @classmethod
    def of(cls, W: Array, gamma: float | None, found: Calibration, **more: Any) -> Self:
        """Return weights (f, C) as they were calibrated."""
        backend = backend_of(W)
        b = backend.cast(backend.asarray(found.b), W.dtype)
        return cls(W=W, b=b, gamma=gamma, temperature=found.temperature, **more)


@dataclass(frozen=True, eq=False)
class ExpectedAccuracy:
    """The accuracy to expect on new samples of the classes as they were learned, from the statistics alone.

    Attributes
    ----------
    overall : float
        The mean over classes, weighted as in the classifier's loss: equal for weights 1/n_y, by count for uniform ones.
    per_class : array of shape (C,)
        In the order of `classes_`; NaN for classes not seen yet, and for those of more than 1024 that were not among
        the simulated ones.
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
    0.95 expected, 0.91 measured
    >>> taken, for_, share = expected.confusions[0]
    >>> print(f"{share:.0%} of {taken} are taken for {for_}")
    4% of 8 are taken for 1
    """

    overall: float
    per_class: Array
    confusions: list[tuple[Any, Any, float]]


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Scores that are linear in x, and what is different about samples that they were not made of; classes by slot.

    A new sample of class y has the mean scores gain_y W'm_y + offset - drop_y e_y.
    """

    W: Array  # (f, C), float64
    offset: Array  # (C,)
    gain: Array  # (C,)
    drop: Array  # (C,)
    leverage: float  # h, of a sample in the pooled scatter, below 1
    log_scale: float | None = None  # scores are like shares; or like logarithms, and their softmax at this scale is


def calibrate(problem: Problem, W: Array, trace: float, leverage: float) -> Calibration:
    """Return intercepts, temperature and simulated scores for the solution W (f, C) of a problem.

    `trace` is tr(K S_w), `leverage` h.

    Where n - C is not positive there is no scatter and nothing can be told: no intercept, and the temperature is the
    range of the scores of the class means, so that probabilities differ by a factor of e at the most.

    Notes
    -----
    Cost O(c C f + C f^2 + c f r^2 + c r^3) with c the classes that are simulated and r the rivals of each, for classes
    with their own scatter O(n_y f r) for a factor and O(f^2 r) for a packed matrix more. Up to 128 classes all are
    rivals. Of more, a class has the 32 with the highest expected scores, and 16 that stand for the others, evenly
    spaced in the order of these scores. Up to 1024 classes all are simulated. Of more, 2^22 / C and at least 64, with
    half as many rivals, stand for all, and there is no intercept: too little would be known of that of the others.
    """
    C, n = len(problem.count), float(problem.count.sum())
    t = problem.pi * trace * (n / (n - C)) / (1.0 - leverage) if has_scatter(problem) else np.zeros(C)
    linear = LinearScores(problem.backend.double(W), np.zeros(C), 1.0 + t, t, leverage)
    return calibrate_linear(problem, linear)


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
    return C > 1 and n - C > 1e-9 * n and problem.backend.trace(problem.within_class_covariance) > 0.0


@dataclass(frozen=True, eq=False)
class UnseenScores:
    """Moments of the scores of samples that were not learned, for classes against some rivals each."""

    rivals: Array  # (c, r) slots of the classes whose scores these are, the class itself first
    log_weight: Array  # (r,) the log of the number of classes that a column stands for
    mean: Array  # (c, r)
    ratio: Array  # (c, r) v_yz of the head of this file
    key: Array  # (C,) as `class_keys` makes it
    covariance: Array | None = None  # (c, r, r) None if nothing is known of any scatter


def unseen_scores(problem: Problem, linear: LinearScores, share: Array) -> UnseenScores:
    """Return the moments that the head of this file states. Cost as `calibrate`, but for the draws."""
    backend = problem.backend
    means = backend.double(problem.sums) / backend.asarray(problem.count)[:, None]
    key = class_keys(problem, means)
    new = _expected_scores(problem, linear, means, share, key)
    if not has_scatter(problem):
        return new
    covariance = _covariances(problem, linear.W, means, new)
    covariance *= ((1.0 + 1.0 / problem.count[new.rivals[:, 0]]) / (1.0 - linear.leverage) ** 2)[:, None, None]
    return replace(new, covariance=covariance)


def fit(scores: Array, rivals: Array, log_weight: Array, share: Array) -> tuple[Array, float]:
    """Return b (C,) and T that minimise the log-loss of softmax((scores + b) / T), plus a penalty on b.

    `scores` (c, d, r) are d draws of c classes against `rivals` (c, r), the class itself first; `log_weight` (r,) is as
    in `UnseenScores`, `share` (C,) the weight of each class. If not all are simulated, b is 0. Convex in 1/T and
    b/T: Newton's method, about ten steps of O(C d r^2 + C^3), until no digit of the loss changes.
    """
    C, has_b = len(share), len(rivals) == len(share)
    share = share[rivals[:, 0]] / share[rivals[:, 0]].sum()
    unit = float(scores.std()) or 1.0
    scaled = scores / unit
    ridge = 2.0 * np.concatenate([[SLOPE_PENALTY], np.full(C, PENALTY / C)])
    n_free = 1 + C if has_b else 1
    place = 1 + rivals  # of the b/T of every column, behind 1/T; and of those of every two columns in a Hessian
    pairs = ((1 + C) * place[:, :, None] + place[:, None, :]).ravel()
    place = place.ravel()

    def derivatives(at: Array, scaled: Array) -> tuple[float, Array, Array]:
        """Return the loss at (1/T, b/T), its gradient and its Hessian, for what is free."""
        (c, d, r), weight = scaled.shape, share / scaled.shape[1]
        bias, log_p, mean = at[1:][rivals] + log_weight, np.empty((c, d)), np.empty((c, d))
        expected, of_slope, with_slope = np.empty((c, r)), np.empty(c), np.empty((c, r))
        second = np.empty((c, r, r) if has_b else 0)
        step = max(1, IN_CACHE // (d * r))
        for first in range(0, c, step):
            some = slice(first, first + step)
            s = scaled[some]
            p = at[0] * s
            p += bias[some, None, :]
            p -= p.max(axis=2, keepdims=True)
            log_p[some] = p[:, :, 0]
            np.exp(p, out=p)
            total = p.sum(axis=2)
            log_p[some] -= np.log(total)
            p /= total[:, :, None]
            expected[some] = p.sum(axis=1)
            mean[some] = np.einsum("cdr,cdr->cd", p, s)
            around = s - mean[some, :, None]
            around_p = around * p
            of_slope[some] = np.einsum("cdr,cdr->c", around_p, around)
            if has_b:
                with_slope[some] = around_p.sum(axis=1)
                np.matmul(p.swapaxes(1, 2), p, out=second[some])
        error = weight[:, None] * expected  # of the bias of every column: sum of p - 1_y
        H = np.diag(ridge[:n_free])
        H[0, 0] += weight @ of_slope
        if has_b:
            H[0] += np.bincount(place, (weight[:, None] * with_slope).ravel(), minlength=1 + C)
            H[1:, 0] = H[0, 1:]
            H += np.diag(np.bincount(place, error.ravel(), minlength=1 + C))
            second *= weight[:, None, None]
            H -= np.bincount(pairs, second.ravel(), minlength=(1 + C) ** 2).reshape(1 + C, 1 + C)
        error[:, 0] -= share
        gradient = ridge * at + np.bincount(place, error.ravel(), minlength=1 + C)
        gradient[0] += weight @ (mean - scaled[:, :, 0]).sum(axis=1)
        return float(0.5 * ridge @ at**2 - weight @ log_p.sum(axis=1)), gradient, H

    def minimise(at: Array, scaled: Array, enough: float) -> Array:
        """Return (1/T, b/T) from where a step of Newton's method promises no more than `enough`."""
        value, gradient, H = derivatives(at, scaled)
        for _ in range(MAX_STEPS):
            if (at[0] == SLOPES[0] and gradient[0] > 0.0) or (at[0] == SLOPES[1] and gradient[0] < 0.0):
                gradient[0] = H[0, 1:] = H[1:, 0] = 0.0  # it stays at its limit
            step = np.zeros(1 + C)
            step[:n_free] = np.linalg.solve(H, gradient[:n_free])
            promised, before = float(gradient @ step), value
            for halved in range(20):
                there = at - 0.5**halved * step
                there[0] = there[0].clip(*SLOPES)
                value, *slopes = derivatives(there, scaled)
                if value <= before:
                    break
            else:
                break
            at, (gradient, H) = there, slopes
            if promised <= enough:
                break
        return at

    at = np.append(1.0, np.zeros(C))
    if scores.shape[1] >= MANY_DRAWS:  # most steps are made with an eighth of the draws
        at = minimise(at, np.ascontiguousarray(scaled[:, ::8]), 1e-6)
    at = minimise(at, scaled, 1e-11)
    return at[1:] * (unit / at[0]), float(unit / at[0])


def draw(covariance: Array, rivals: Array, key: Array) -> Array:
    """Return draws with mean 0 from multivariate t's of these covariances (c, r, r), shape (c, d, r)."""
    half = max(FEWEST_DRAWS, DRAWS // max(len(rivals), 4)) // 2
    normal = normals(key, rivals[:, 0], rivals, half)
    # The chi-squared that makes a t of a normal: one draw in each of `half` equally likely intervals.
    chi2 = 2.0 * gammaincinv(TAILS / 2.0, (np.arange(half) + 0.5) / half)
    normal *= np.sqrt((TAILS - 2.0) / chi2)[:, None]
    noise = normal @ symmetric_roots(covariance)
    return np.concatenate([noise, -noise], axis=1)  # in pairs, so that their mean is 0


def class_keys(problem: Problem, means: Array) -> Array:
    """Return a number for every class, made of its mean (C, f) and its count, by which classes are told apart, (C,)."""
    backend = problem.backend
    direction = np.random.default_rng(0).standard_normal((means.shape[1], 1))
    place = backend.to_numpy(means @ backend.asarray(direction))[:, 0]
    key: Array = (place - place.mean()) / (place.std() or 1.0) + np.log(problem.count)
    return key


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
    """Return the classes to simulate, their rivals and their expected scores."""
    backend, C = problem.backend, len(share)
    n_simulated = C if C <= ALL_CLASSES else max(64, EXPECTED_SCORES // C)
    slots = np.arange(C)
    if n_simulated < C:  # evenly spaced in the order of the keys
        slots = np.sort(np.argsort(key, kind="stable")[np.linspace(0, C - 1, n_simulated).round().astype(np.intp)])
    scores = backend.to_numpy(backend.take(means, slots) @ linear.W) * linear.gain[slots, None] + linear.offset
    own = (np.arange(len(slots)), slots)
    scores[own] -= linear.drop[slots]

    kept, weight = np.arange(C), np.ones(C)
    if C > MANY_CLASSES:
        first, others = 1 + STRONGEST // (1 + (n_simulated < C)), STAND_INS // (1 + (n_simulated < C))
        edges = np.linspace(first, C, others + 1).round().astype(np.intp)
        kept = np.concatenate([kept[:first], (edges[:-1] + edges[1:]) // 2])
        weight = np.concatenate([np.ones(first), np.diff(edges)])
    ranked = -scores
    ranked[own] = -np.inf
    rivals = np.argsort(ranked, axis=1, kind="stable")[:, kept]
    shares = scores if linear.log_scale is None else softmax(scores / linear.log_scale, axis=1)
    ratio = np.take_along_axis(_variance_ratios(shares, slots, share), rivals, axis=1)
    return UnseenScores(rivals, np.log(weight), np.take_along_axis(scores, rivals, axis=1), ratio, key)


def _variance_ratios(scores: Array, slots: Array, share: Array) -> Array:
    """Return v_yz: p (1 - p) with p the scores (c, C) as shares, over its mean over all classes y.

    The classes of `slots` stand for the others: for all others than z, and of those not among them, for z itself.
    """
    own = (np.arange(len(slots)), slots)
    p = scores.clip(min=0.0) + 1e-9 * np.abs(scores).max() + 1e-300
    p /= p.sum(axis=1, keepdims=True)
    variance = (p * (1.0 - p)).clip(min=1e-12)
    of_own = np.full(len(share), variance[own].mean())
    of_own[slots] = variance[own]
    weight = np.repeat(share[slots, None], len(share), axis=1)
    weight[own] = 0.0
    of_others = (weight * variance).sum(axis=0) / weight.sum(axis=0).clip(min=1e-300)
    ratio: Array = variance / (share * of_own + (1.0 - share) * of_others)
    return ratio


def _covariances(problem: Problem, W: Array, means: Array, new: UnseenScores) -> Array:
    """Return V_y among the rivals of every class, for the draws, shape (c, r, r)."""
    backend, S_w = problem.backend, problem.within_class_covariance
    n, C = float(problem.count.sum()), len(problem.count)
    met, places = np.unique(new.rivals, return_inverse=True)
    places, rows = places.reshape(new.rivals.shape), W.T if len(met) == C else backend.take(W.T, met)
    spread = backend.symmetric_product(S_w, backend.cast(rows.T, S_w.dtype)).T
    spread = backend.double(spread) * (n / (n - C))  # W'S
    if len(met) <= ALL_CLASSES:
        covariance = backend.to_numpy(spread @ rows.T)[places[:, :, None], places[:, None, :]]
    else:
        products = (backend.take(spread, some) @ backend.take(rows, some).T for some in places)
        covariance = np.stack([backend.to_numpy(product) for product in products])
    own, known = own_scatters(problem, new.rivals[:, 0], means, lambda i: backend.take(rows, places[i]))

    excess, own_ratio = new.ratio[:, 0] - 1.0, np.ones(len(known))
    for y, scatter in own.items():
        own_ratio[y] = scatter[0, 0] / (known[y] * max(float(covariance[y, 0, 0]), 1e-300))
    prior = PRIOR * max(float(excess.mean()), 1e-9)
    told = float(known @ (own_ratio - 1.0)) + PRIOR_SHAPE * prior
    a = min(max(told / max(float(known @ excess) + prior, 1e-9), 0.0), 1.0)
    D = np.sqrt(1.0 + a * (new.ratio - 1.0))
    covariance *= D[:, :, None] * D[:, None, :]
    shrink(own, known, covariance)
    longer = min(max(a * float(excess.mean()) / (VARIED - 1.0), 0.0), 1.0)
    return (1.0 + (WIDEST - 1.0) * longer) * covariance


def own_scatters(
    problem: Problem, slots: Array, means: Array, weights: Callable[[int], Array]
) -> tuple[dict[int, Array], Array]:
    """Return what is known of some classes alone: scatters of scores by place in `slots`, and their degrees of freedom.

    `weights` returns those of the scores of a place, shape (r, f).
    """
    if problem.moments is None:
        return {}, np.zeros(len(slots))
    backend, own, free = problem.backend, {}, problem.count[slots] - 1.0
    known = np.where(free > 1e-9, free, 0.0)
    for i in np.flatnonzero(known).tolist():
        y, V = int(slots[i]), weights(i)
        moment, narrow = problem.moments[y], backend.cast(V.T, problem.G.dtype)
        if moment.packed is None:
            Z = backend.double(moment.all_rows() @ narrow)
            second = Z.T @ Z
        else:
            second = V @ backend.double(backend.symmetric_product(moment.dense(), narrow))
        centre = backend.to_numpy(V @ means[y])
        own[i] = backend.to_numpy(second) - float(problem.count[y]) * np.outer(centre, centre)
    return own, known


def shrink(own: dict[int, Array], known: Array, covariance: Array) -> None:
    """Put own scatters in the place of the covariances (c, r, r) that are known without them, shrunk to these."""
    for i, scatter in own.items():
        covariance[i] = (scatter + PRIOR * covariance[i]) / (known[i] + PRIOR)
