"""Long-tailed class-incremental learning: a few classes with many samples, many with a handful."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from aircl.scenarios.scenario import as_number, check_choice, check_phases, scenario
from aircl.scenarios.stream import Indices, Labels, deal

COUNTS = ("exp_max", "exp", "step", "natural")
ORDERS = ("descending", "ascending", "shuffled", "shuffled-classes")


@scenario("long-tail")
def long_tail(
    labels: Labels,
    *,
    seed: int = 0,
    phases: int = 10,
    counts: str = "exp_max",
    ratio: float = 1 / 500,
    order: str = "descending",
    resample: bool = False,
) -> list[Indices]:
    """Disjoint phases of classes whose counts fall off from head to tail; the order says which come first.

    Parameters
    ----------
    labels : array of shape (n,)
    seed : int, default=0
        Of the shuffled orders, and of the order of the samples inside a phase; with `resample`, of which samples are
        kept.
    phases : int, default=10
    counts : {"exp_max", "exp", "step", "natural"}, default="exp_max"
        How many samples each class keeps, see `tail_counts`.
    ratio : float, default=1/500
        The rarest class's count, as a share of the most frequent one's. "natural" has a ratio of its own.
    order : {"descending", "ascending", "shuffled", "shuffled-classes"}, default="descending"
        Head first; tail first; the phases of "descending", shuffled; or all classes shuffled, then cut into phases.
    resample : bool, default=False
        Whether every seed draws again which samples a class keeps, the same in all orders. False: the paper's draw,
        which is the same for all seeds, so that a standard error over seeds says nothing of it.

    Returns
    -------
    stream : Stream

    Notes
    -----
    Head is class 0, except for "natural", where classes are ranked by how many samples they have.

    Counts belong to classes, and the samples of a class are drawn with a seed of their own, which is 0 unless
    `resample` is set. So all orders of a seed stream the same samples, and what a learner that does not depend on the
    order knows in the end is the same.

    Where classes cannot be dealt evenly the phases nearer to the head have one more: nothing is dropped. The samples
    of a phase arrive in the order of one random permutation of the training set, so an order of classes inside a
    phase would make no difference, and there is none.

    References
    ----------
    .. [1] X. Liu et al., "Long-Tailed Class Incremental Learning", ECCV 2022.
    .. [2] C. Hong et al., "Dynamically Anchored Prompting for Task-Imbalanced Continual Learning", IJCAI 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.scenarios import long_tail
    >>> labels = np.repeat(np.arange(6), 10)
    >>> long_tail(labels, phases=3, counts="exp", ratio=0.1).counts()
    array([[10,  6,  0,  0,  0,  0],
           [ 0,  0,  3,  2,  0,  0],
           [ 0,  0,  0,  0,  1,  1]])
    >>> [phase.classes.tolist() for phase in long_tail(labels, phases=3, ratio=0.1, order="ascending").phases]
    [[4, 5], [2, 3], [0, 1]]
    """
    classes, available = np.unique(labels, return_counts=True)
    check_phases(phases, len(classes))
    check_choice("counts", counts, COUNTS)
    if not 0 < as_number(ratio) <= 1:
        advice = f" For 1 to {ratio:g} give 1/{ratio:g}." if as_number(ratio) > 1 else ""
        raise ValueError(
            f"ratio={ratio!r} is not above 0 and at most 1: it is the rarest class's count as a share of the most "
            f"frequent one's.{advice}"
        )
    check_choice("order", order, ORDERS)
    ranked = classes[np.argsort(-available, kind="stable")] if counts == "natural" else classes
    kept = np.minimum(tail_counts(counts, available, ratio, phases), available)

    rng = np.random.default_rng(seed)
    groups: Sequence[Labels] = np.array_split(
        rng.permutation(ranked) if order == "shuffled-classes" else ranked, phases
    )
    if order == "ascending":
        groups = groups[::-1]
    elif order == "shuffled":
        groups = [groups[i] for i in rng.permutation(phases)]
    scan = rng.permutation(len(labels))
    chosen = np.zeros(len(labels), bool)
    chosen[choose_samples(labels, kept, seed if resample else 0)] = True
    return deal(labels, groups, scan[chosen[scan]])


def tail_counts(kind: str, available: npt.NDArray[np.intp], ratio: float, phases: int) -> npt.NDArray[np.intp]:
    """Return how many samples each class should keep, whether it has as many or not.

    Parameters
    ----------
    kind : {"exp_max", "exp", "step", "natural"}
        With n_max the mean number of samples of a class, and C classes:

        - "exp": n_i = max(1, floor(n_max * ratio^(i / (C - 1)))), exponential decay over the class index i;
        - "exp_max": all classes of a phase have the count that "exp" gives to the phase's first class;
        - "step": n_max for the first half of the classes, max(1, floor(n_max * ratio)) for the others;
        - "natural": as many as there are.
    available : array of shape (C,)
        How many samples each class has.
    ratio : float
    phases : int

    Returns
    -------
    counts : array of shape (C,)
    """
    n_classes = len(available)
    if kind == "natural":
        return available
    index = np.arange(n_classes)
    if kind == "exp_max":
        index = np.concatenate([np.full(len(group), group[0]) for group in np.array_split(index, phases)])
    decay = (index >= (n_classes + 1) // 2) if kind == "step" else index / max(1, n_classes - 1)
    n_max = available.sum() / n_classes
    # Python's power, as in the public code: NumPy's may differ in the last bit, and so may the floor.
    return np.array([max(1, math.floor(n_max * ratio**power)) for power in decay.tolist()])


def choose_samples(labels: Labels, counts: npt.NDArray[np.intp], seed: int = 0) -> Indices:
    """Return the indices of `counts` samples of each class, by the generator and in the order of the public code."""
    starts = np.cumsum(np.unique(labels, return_counts=True)[1])[:-1]
    by_class = np.split(np.argsort(labels, kind="stable"), starts)
    rng = np.random.RandomState(seed)
    return np.concatenate([rng.permutation(own)[:n] for own, n in zip(by_class, counts, strict=True)])
