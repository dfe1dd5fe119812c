"""What a scenario makes: phases of training indices, in stream order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.intp]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Phase:
    """One phase of a stream. It may be empty, and need not bring a new class.

    Attributes
    ----------
    train : array of shape (n,)
        Indices of training samples, in the order they arrive.
    classes : array of shape (c,)
        The classes that have a sample in this phase, sorted. In a task-incremental stream they are the task.
    counts : array of shape (c,)
        How many samples each of them has in this phase.
    new_classes : array
        Those of them that no earlier phase had, sorted.
    exposed : array
        The classes seen up to the end of this phase, sorted. Metrics are restricted to them.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.scenarios import make_stream
    >>> first, second = make_stream("cil", np.array([0, 0, 1, 1, 1, 2]), phases=2, order="natural").phases
    >>> second.train, second.new_classes, second.exposed
    (array([5]), array([2]), array([0, 1, 2]))
    >>> dict(zip(first.classes.tolist(), first.counts.tolist()))
    {0: 2, 1: 3}
    """

    train: Indices
    classes: Labels
    counts: npt.NDArray[np.int64]
    new_classes: Labels
    exposed: Labels


@dataclass(frozen=True, eq=False)
class Stream:
    """A whole stream.

    Attributes
    ----------
    scenario : str
        Name of the scenario that made it.
    options : dict
        What the scenario was asked for, seed and defaults included.
    phases : tuple of Phase
    dropped_classes : array
        Classes that the scenario leaves out, such as a remainder that cannot be dealt evenly; sorted.

    Examples
    --------
    A learner sees one phase after the other:

    >>> import numpy as np
    >>> from aircl.scenarios import make_stream
    >>> stream = make_stream("cil", np.repeat(np.arange(6), 10), phases=3, order="natural")
    >>> for phase in stream.phases:
    ...     print(len(phase.train), "samples of", phase.classes)
    20 samples of [0 1]
    20 samples of [2 3]
    20 samples of [4 5]
    >>> stream.total, stream.options["seed"], stream.counts().shape
    (60, 0, (3, 6))
    """

    scenario: str
    options: dict[str, Any]
    phases: tuple[Phase, ...]
    dropped_classes: Labels = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.phases)

    @property
    def total(self) -> int:
        """Number of training samples in all phases."""
        return sum(len(phase.train) for phase in self.phases)

    @property
    def classes(self) -> Labels:
        """The classes that any phase has, sorted."""
        return self.phases[-1].exposed

    def counts(self) -> npt.NDArray[np.int64]:
        """Return how many samples of each class each phase has.

        Returns
        -------
        counts : array of shape (phases, C)
            C is the largest label of the training set, plus one; dropped classes are columns of zeros.
        """
        width = int(max(self.classes.max(initial=-1), self.dropped_classes.max(initial=-1))) + 1
        counts = np.zeros((len(self.phases), width), np.int64)
        for row, phase in zip(counts, self.phases, strict=True):
            row[phase.classes] = phase.counts
        return counts


def make_phases(labels: Labels, trains: Sequence[Indices]) -> tuple[Phase, ...]:
    """Return phases with their classes looked up.

    Parameters
    ----------
    labels : array of shape (n,)
        Labels of the whole training set.
    trains : sequence of arrays
        Indices of each phase, in stream order.

    Returns
    -------
    phases : tuple of Phase

    Examples
    --------
    A stream of one's own, say by the hour in which samples came:

    >>> import numpy as np
    >>> from aircl.scenarios import make_phases
    >>> labels, hour = np.array([7, 7, 3, 3, 7]), np.array([0, 0, 0, 1, 1])
    >>> phases = make_phases(labels, [np.flatnonzero(hour == h) for h in (0, 1)])
    >>> [(phase.train.tolist(), phase.new_classes.tolist()) for phase in phases]
    [([0, 1, 2], [3, 7]), ([3, 4], [])]
    """
    phases = []
    exposed = np.zeros(0, np.int64)
    for train in trains:
        classes, counts = np.unique(labels[train], return_counts=True)
        new = np.setdiff1d(classes, exposed)
        exposed = np.union1d(exposed, classes)
        phases.append(Phase(np.asarray(train, np.intp), classes, counts.astype(np.int64), new, exposed))
    return tuple(phases)


def deal(labels: Labels, groups: Sequence[Labels], scan: Indices) -> list[Indices]:
    """Return, for each group of classes, the indices of its samples in the order in which `scan` comes across them."""
    return [scan[np.isin(labels[scan], group)] for group in groups]
