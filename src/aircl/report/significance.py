"""Whether two methods differ: paired over test samples, across seeds, and over many streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import stats

from aircl.benchmark.metrics import HEAD, TAIL
from aircl.benchmark.results import Details
from aircl.report.experiments import Experiment, MethodResults

Floats = npt.NDArray[np.float64]

# Metrics that are sums over test samples, so that test samples can be drawn again.
TESTED = ("A_avg", "A_last", "A_auc", "head", "middle", "tail")
DRAWS = 4000
LEVEL = 0.95
# An interval over seeds needs three; a signed-rank test of fewer than six cannot come below 0.05.
SEEDS_FOR_INTERVAL, SEEDS_FOR_TEST = 3, 6
# Mean ranks over fewer streams, or of two methods, are not worth a diagram.
STREAMS_FOR_RANKS, METHODS_FOR_RANKS = 6, 3


@dataclass(frozen=True)
class Contrast:
    """One method minus another, in one metric; shares from -1 to 1.

    Attributes
    ----------
    difference : float
        Mean over seeds.
    low, high : float
        95 % interval of test samples and seeds together: their variances add up (Welch's degrees of freedom). For fewer
        than three seeds, of test samples alone.
    seeds : int
        Seeds that both methods finished.
    samples_low, samples_high : float
        95 % interval by drawing test samples again: what another test set of the kind could give.
    samples_p : float
        Two-sided, of that bootstrap.
    seeds_low, seeds_high : float or None
        95 % t-interval over seeds; None for fewer than three.
    seeds_p : float or None
        Of Wilcoxon's signed-rank test over seeds; None for fewer than six, where it could not be small.
    """

    difference: float
    low: float
    high: float
    seeds: int
    samples_low: float
    samples_high: float
    samples_p: float
    seeds_low: float | None = None
    seeds_high: float | None = None
    seeds_p: float | None = None

    @property
    def is_clear(self) -> bool:
        """Whether zero is outside of the interval."""
        return self.low > 0 or self.high < 0


def sample_scores(details: Details, metric: str, balanced: bool = False) -> Floats | None:
    """Return what each test sample adds to a metric of one job: the sum over all of them is the metric.

    Parameters
    ----------
    details : Details
    metric : str
        One of "A_avg", "A_last", "A_auc", "head", "middle" and "tail".
    balanced : bool, default=False
        Whether classes weigh the same, and not samples. Those of head, middle and tail always do.

    Returns
    -------
    scores : array of shape (n,), or None
        None where the job did not keep what is needed, or has no such metric.
    """
    n = len(details.test_labels)
    at = np.flatnonzero(details.periodic if metric == "A_auc" else ~details.periodic)
    at = at if metric in ("A_avg", "A_auc") else at[-1:]
    if not n or not len(at):
        return None
    right = np.unpackbits(details.right[at], axis=1, count=n).astype(np.float64)
    wanted = details.exposed[at]
    if metric in ("head", "middle", "tail"):
        counts = details.counts.sum(axis=0)
        groups = {"head": counts > HEAD, "middle": (counts >= TAIL) & (counts <= HEAD), "tail": counts < TAIL}
        wanted, balanced = wanted & groups[metric], True
    # Classes that were never exposed have no place, and no weight.
    place = np.searchsorted(details.classes, details.test_labels)
    place[place == len(details.classes)] = 0
    known = details.classes[place] == details.test_labels
    tested = np.bincount(place[known], minlength=len(details.classes))
    weight = wanted / np.maximum(1, tested) if balanced else wanted.astype(np.float64)
    weight = np.where(known, weight[:, place], 0.0)
    total = weight.sum(axis=1, keepdims=True)
    if not (total > 0).all():
        return None
    scores: Floats = (right * weight / total).mean(axis=0)
    return scores


def contrast(one: MethodResults, other: MethodResults, metric: str, balanced: bool = False) -> Contrast | None:
    """Compare two methods on the seeds that both finished.

    Parameters
    ----------
    one, other : MethodResults
        Of one experiment.
    metric : str
        One of "A_avg", "A_last", "A_auc", "head", "middle" and "tail".
    balanced : bool, default=False
        Whether classes weigh the same, and not samples.

    Returns
    -------
    contrast : Contrast or None
        None if no seed has single test samples of both.

    Notes
    -----
    Test samples are drawn with replacement, the same ones for both methods and all seeds, and differences are averaged
    over seeds. Intervals are not corrected for the number of methods that are compared.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
    >>> from aircl.report import contrast, read_experiments
    >>> digits = Experiment("digits", "identity", "long-tail", {"phases": 2}, methods=("air", "acil", "ncm"))
    >>> with TemporaryDirectory() as folder:
    ...     Runner(RunConfig("mine", (digits,)), RunDirectory(folder)).run()
    ...     (experiment,) = read_experiments(folder)
    ...     over_acil = contrast(experiment.method("air"), experiment.method("acil"), "A_last")
    >>> print(f"{over_acil.difference:.2f}, {over_acil.low:.2f} to {over_acil.high:.2f}")
    0.41, 0.35 to 0.46
    """
    pairs = _paired_scores(one, other, metric, balanced)
    if not pairs:
        return None
    by_seed = np.array([a.sum() - b.sum() for a, b in pairs])
    each = np.mean([a - b for a, b in pairs], axis=0)
    difference, sums = float(by_seed.mean()), bootstrap(each)
    low, high = (_rounded(value) for value in np.quantile(sums, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    # Sums of shares that cancel are not exactly zero.
    side = min((sums <= 1e-12).sum(), (sums >= -1e-12).sum())
    out = Contrast(difference, low, high, len(pairs), low, high, min(1.0, 2 * (side + 1) / (len(sums) + 1)))
    if len(pairs) < SEEDS_FOR_INTERVAL:
        return out
    over_seeds, over_samples = float(by_seed.var(ddof=1)) / len(pairs), float(sums.var())
    half = _quantile(len(pairs) - 1) * math.sqrt(over_seeds)
    total = over_seeds + over_samples
    freedom = total**2 * (len(pairs) - 1) / over_seeds**2 if over_seeds**2 > 0 else math.inf
    both = _quantile(freedom) * math.sqrt(total)
    return replace(
        out,
        low=_rounded(difference - both),
        high=_rounded(difference + both),
        seeds_low=difference - half,
        seeds_high=difference + half,
        seeds_p=signed_rank(by_seed),
    )


def bootstrap(each: Floats, draws: int = DRAWS) -> Floats:
    """Return sums over samples that are drawn with replacement, shape (draws,).

    Samples that add the same are drawn together, so that it is quick however many there are.

    Examples
    --------
    Of 200 samples, one method is right about 8 that the other misses, and the other about 2:

    >>> sums = bootstrap(np.repeat([1.0, -1.0, 0.0], [8, 2, 190]) / 200)
    >>> print(f"{sums.mean():.3f}, {np.mean(sums <= 0):.0%} of the sums are not above 0")
    0.030, 3% of the sums are not above 0
    """
    values, counts = np.unique(each, return_counts=True)
    sums: Floats = np.random.default_rng(0).multinomial(len(each), counts / len(each), size=draws) @ values
    return sums


def signed_rank(differences: Floats) -> float | None:
    """Return the p of Wilcoxon's signed-rank test, two-sided; None for fewer than six seeds.

    Examples
    --------
    >>> signed_rank(np.array([0.1, 0.2, 0.3, 0.15, 0.25, 0.05]))
    0.03125
    >>> signed_rank(np.array([0.1, 0.2, 0.3]))
    """
    if len(differences) < SEEDS_FOR_TEST:
        return None
    return 1.0 if not np.any(differences) else float(stats.wilcoxon(differences).pvalue)


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of methods over streams, and by how much two of them have to differ.

    Attributes
    ----------
    methods : tuple of str
        The best first.
    ranks : tuple of float
        From 1; those of methods that are equally good in a stream are shared.
    critical_difference : float
        By Nemenyi's test at 5 %.
    p : float
        Of Friedman's test: whether the methods differ at all.
    streams : int
    """

    methods: tuple[str, ...]
    ranks: tuple[float, ...]
    critical_difference: float
    p: float
    streams: int


def rank_methods(experiments: Sequence[Experiment], metric: str = "balanced_A_last") -> Ranks | None:
    """Rank the methods that finished every stream, after Demsar.

    Parameters
    ----------
    experiments : sequence of Experiment
        Each is one stream.
    metric : str, default="balanced_A_last"

    Returns
    -------
    ranks : Ranks or None
        None for fewer than six streams or three methods: a diagram would say nothing.

    References
    ----------
    .. [1] J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 2006.

    Examples
    --------
    >>> from aircl.benchmark import Row
    >>> from aircl.report import rank_methods, read_experiments
    >>> rows = [
    ...     Row("run", f"{name}{n}", f"data{n}", "net", "cil", "", name, 1, 0, 9, "final", "A_last", share, 1.0)
    ...     for n in range(6) for name, share in (("acil", 0.7), ("air", 0.9), ("ncm", 0.8))
    ... ]
    >>> ranks = rank_methods(read_experiments(rows), "A_last")
    >>> ranks.methods, ranks.ranks, round(ranks.critical_difference, 2)
    (('air', 'ncm', 'acil'), (1.0, 2.0, 3.0), 1.35)
    """
    values = [
        {m.name: found.mean for m in one.methods if not m.is_bound and (found := m.final(metric)) is not None}
        for one in experiments
    ]
    values = [own for own in values if own]
    names = sorted(set.intersection(*map(set, values))) if values else []
    n, k = len(values), len(names)
    if n < STREAMS_FOR_RANKS or k < METHODS_FOR_RANKS:
        return None
    table = np.array([[own[name] for name in names] for own in values])
    ranks = stats.rankdata(-table, axis=1).mean(axis=0)
    same = bool((table == table[:, :1]).all())
    p = 1.0 if same else float(stats.friedmanchisquare(*table.T).pvalue)
    order = np.argsort(ranks, kind="stable")
    width = _studentized_range(k) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))
    return Ranks(tuple(names[i] for i in order), tuple(ranks[order].tolist()), width, p, n)


@cache
def _studentized_range(k: int) -> float:
    return float(stats.studentized_range.ppf(LEVEL, k, np.inf))


def _paired_scores(
    one: MethodResults, other: MethodResults, metric: str, balanced: bool
) -> list[tuple[Floats, Floats]]:
    """Return the scores of both methods for each seed that both finished on the same test samples."""
    theirs = {job.seed: job for job in other.jobs if job.status == "ok"}
    pairs = []
    for job in one.jobs:
        mate = theirs.get(job.seed)
        if job.status != "ok" or mate is None or job.details is None or mate.details is None:
            continue
        if not np.array_equal(job.details.test_labels, mate.details.test_labels):
            continue
        scores = [sample_scores(details, metric, balanced) for details in (job.details, mate.details)]
        if scores[0] is not None and scores[1] is not None:
            pairs.append((scores[0], scores[1]))
    return pairs if len({len(a) for a, _ in pairs}) == 1 else []


def _quantile(freedom: float) -> float:
    return float(stats.t.ppf((1 + LEVEL) / 2, freedom))


def _rounded(value: float) -> float:
    return float(round(value, 12)) + 0.0
