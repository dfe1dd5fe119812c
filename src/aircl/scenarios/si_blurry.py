"""Si-blurry: some classes belong to one phase, the others spill over, and chance decides how many do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from aircl.scenarios.scenario import check_phases, check_share, scenario, share_of
from aircl.scenarios.stream import Indices, Labels, deal


@scenario("si-blurry")
def si_blurry(
    labels: Labels,
    *,
    seed: int = 0,
    phases: int = 5,
    disjoint: float = 0.5,
    blurry: float = 0.1,
    faithful: bool = False,
) -> list[Indices]:
    """Random numbers of disjoint and blurry classes in each phase; some blurry samples stray into other phases.

    Parameters
    ----------
    labels : array of shape (n,)
    seed : int, default=0
    phases : int, default=5
    disjoint : float, default=0.5
        Share of the classes that keep to one phase.
    blurry : float, default=0.1
        Share of the blurry classes' samples that are distributed again over all phases.
    faithful : bool, default=False
        Exactly the public code, with the same random draws; needs torch. It distributes the FIRST samples of the
        training set: a random choice only if the training set is mixed. In a set that is sorted by class they are whole
        classes. False: the training set is permuted first, and NumPy draws.

    Returns
    -------
    stream : Stream

    Notes
    -----
    The numbers of disjoint and of blurry classes are rounded down to multiples of `phases`; the remainder is in
    `Stream.dropped_classes`. Phases differ in size and may be empty. The samples of a phase are permuted.

    References
    ----------
    .. [1] J. Moon et al., "Online Class Incremental Learning on Stochastic Blurry Task Boundary via Mask and Visual
       Prompt Tuning", ICCV 2023.

    Examples
    --------
    How many classes a phase has is left to chance:

    >>> import numpy as np
    >>> from aircl.scenarios import si_blurry
    >>> stream = si_blurry(np.repeat(np.arange(100), 500), seed=1)
    >>> [len(phase.classes) for phase in stream.phases]
    [51, 50, 50, 76, 66]
    >>> [len(phase.new_classes) for phase in stream.phases]
    [51, 0, 0, 29, 20]
    """
    return build(labels, seed, phases, disjoint, blurry, faithful)


@scenario("si-blurry-paper")
def si_blurry_paper(
    labels: Labels,
    *,
    seed: int = 0,
    phases: int = 5,
    disjoint: float = 0.1,
    blurry: float = 0.5,
    faithful: bool = False,
) -> list[Indices]:
    """Si-blurry with the two shares as the text of the AIR paper has them, most likely by a swap.

    Parameters
    ----------
    labels : array of shape (n,)
    seed : int, default=0
    phases : int, default=5
    disjoint : float, default=0.1
    blurry : float, default=0.5
    faithful : bool, default=False
        See `si_blurry`.

    Returns
    -------
    stream : Stream

    Examples
    --------
    Most classes are blurry, so most are in every phase:

    >>> import numpy as np
    >>> from aircl.scenarios import si_blurry_paper
    >>> stream = si_blurry_paper(np.repeat(np.arange(100), 500), seed=1)
    >>> [len(phase.classes) for phase in stream.phases]
    [90, 90, 90, 96, 94]
    """
    return build(labels, seed, phases, disjoint, blurry, faithful)


class Draw(Protocol):
    """Where random numbers come from."""

    def permutation(self, x: Any, /) -> Any:
        """Return 0..x-1, permuted."""

    def integers(self, low: int, high: int, size: int) -> Any:
        """Return integers from low to high - 1."""


class TorchDraw:
    """Draws what torch's CPU generator draws.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        try:
            import torch
        except ImportError as error:
            raise ImportError(
                "faithful=True draws as torch does, which is not installed: pip install 'aircl[torch]', "
                "or leave it out."
            ) from error
        self._torch = torch
        self._generator = torch.Generator().manual_seed(seed)

    def permutation(self, x: int, /) -> Indices:
        """Return 0..x-1, permuted."""
        return np.asarray(self._torch.randperm(x, generator=self._generator), np.intp)

    def integers(self, low: int, high: int, size: int) -> Indices:
        """Return integers from low to high - 1."""
        return np.asarray(self._torch.randint(low, high, (size,), generator=self._generator), np.intp)


def build(labels: Labels, seed: int, phases: int, disjoint: float, blurry: float, faithful: bool) -> list[Indices]:
    """Return the phases. The numbers are the steps of the public code, whose order decides what is drawn for what."""
    classes = np.unique(labels)
    check_phases(phases, len(classes))
    check_share("disjoint", disjoint)
    check_share("blurry", blurry)
    draw: Draw = TorchDraw(seed) if faithful else np.random.default_rng(seed)
    scan = np.arange(len(labels)) if faithful else draw.permutation(len(labels))

    disjoint_classes, blurry_classes = divide_classes(draw, classes, phases, disjoint)  # 1 to 4
    own, mixed = deal(labels, disjoint_classes, scan), deal(labels, blurry_classes, scan)  # 5
    strays = share_of(blurry, sum(map(len, mixed)))  # 6
    if strays:
        sizes = np.diff(random_cuts(draw, strays, phases))
        pool = np.concatenate([part[:size] for part, size in zip(mixed, sizes, strict=True)])  # 7
        pool = pool[draw.permutation(len(pool))]  # 8
        # A task may have fewer blurry samples than it should give: then the last tasks get fewer back.
        dealt = np.split(pool, np.cumsum(sizes)[:-1])
        mixed = [np.concatenate([part[size:], back]) for part, size, back in zip(mixed, sizes, dealt, strict=True)]
    tasks = map(np.concatenate, zip(own, mixed, strict=True))
    return [task[draw.permutation(len(task))] for task in tasks]  # 9


def divide_classes(
    draw: Draw, classes: Labels, phases: int, disjoint: float
) -> tuple[Sequence[Labels], Sequence[Labels]]:
    """Return the disjoint and the blurry classes of each phase, their numbers left to chance.

    Parameters
    ----------
    draw : Draw
    classes : array of shape (C,)
    phases : int
    disjoint : float
        Share of the disjoint classes.
    """
    n_disjoint, n_blurry = whole_numbers(len(classes), phases, disjoint)  # 1
    order = classes[draw.permutation(len(classes))]  # 2
    first, rest = order[:n_disjoint], order[n_disjoint : n_disjoint + n_blurry]
    first_cuts = random_cuts(draw, n_disjoint, phases)  # 3
    rest_cuts = random_cuts(draw, n_blurry, phases)  # 4
    return np.split(first, first_cuts[1:-1]), np.split(rest, rest_cuts[1:-1])


def whole_numbers(n_classes: int, phases: int, disjoint: float) -> tuple[int, int]:
    """Return how many disjoint and blurry classes there are: multiples of the number of phases."""
    n_disjoint = share_of(disjoint, n_classes) // phases * phases
    return n_disjoint, (n_classes - n_disjoint) // phases * phases


def random_cuts(draw: Draw, n: int, phases: int) -> Indices:
    """Return phases + 1 sorted places from 0 to n, the first and the last included; nothing is drawn for n = 0."""
    inner = np.sort(draw.integers(0, n, phases - 1)) if n else np.zeros(phases - 1, np.intp)
    return np.concatenate([[0], inner, [n]])
