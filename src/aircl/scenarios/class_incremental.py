"""Conventional class-incremental learning: every phase brings classes of its own."""

from __future__ import annotations

import numpy as np

from aircl.scenarios.scenario import check_choice, check_phases, check_share, scenario, share_of
from aircl.scenarios.stream import Indices, Labels, deal

ORDERS = ("shuffled", "natural")


@scenario("cil")
def class_incremental(
    labels: Labels, *, seed: int = 0, phases: int = 10, base: float = 0.0, order: str = "shuffled"
) -> list[Indices]:
    """Classes in disjoint phases of equal size (B0), or a large first phase and then equal ones (B50).

    Parameters
    ----------
    labels : array of shape (n,)
    seed : int, default=0
        Of the class order and of the order of the samples inside a phase.
    phases : int, default=10
        All phases, the first one included: B50 in ten steps is ``base=0.5, phases=11``.
    base : float, default=0.0
        Share of the classes in the first phase, rounded down, at least one class; 0: all phases are alike.
    order : {"shuffled", "natural"}, default="shuffled"
        Classes in an order drawn by the seed, or by their index.

    Returns
    -------
    stream : Stream

    Notes
    -----
    Where classes cannot be dealt evenly the earlier phases have one more: nothing is dropped. The samples of a phase
    arrive in the order of one random permutation of the training set.

    Examples
    --------
    Half of the classes first, then five steps:

    >>> import numpy as np
    >>> from aircl.scenarios import class_incremental
    >>> stream = class_incremental(np.repeat(np.arange(100), 500), base=0.5, phases=6)
    >>> [len(phase.classes) for phase in stream.phases]
    [50, 10, 10, 10, 10, 10]
    """
    return disjoint_phases(labels, seed, phases, base, order)


def disjoint_phases(labels: Labels, seed: int, phases: int, base: float, order: str) -> list[Indices]:
    """Return the samples of each phase, every class in one phase only."""
    classes = np.unique(labels)
    check_phases(phases, len(classes))
    check_share("base", base)
    check_choice("order", order, ORDERS)
    rng = np.random.default_rng(seed)
    if order == "shuffled":
        classes = rng.permutation(classes)
    return deal(labels, split_off_base(classes, phases, base), rng.permutation(len(labels)))


def split_off_base(classes: Labels, phases: int, base: float) -> list[Labels]:
    """Cut a list of classes into phases, the first of which may have a share of its own."""
    if base == 0:
        return np.array_split(classes, phases)
    first = max(1, share_of(base, len(classes)))
    rest = len(classes) - first
    if rest < phases - 1 or (phases == 1 and rest):
        raise ValueError(
            f"base={base} puts {first} of {len(classes)} classes into the first phase, which leaves {rest} for "
            f"{phases - 1} more phases. Each phase needs at least one class, and each class a phase: "
            "change base or phases."
        )
    return [classes[:first], *(np.array_split(classes[first:], phases - 1) if phases > 1 else [])]
