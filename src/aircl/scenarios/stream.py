"""What a scenario makes: phases of training indices, in stream order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.intp]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Phase:
    """One phase of a stream. It may be empty, and need not bring a new class.

    Attributes
    ----------
    train : array of shape (n,)
        Indices of training samples, in the order they arrive.
    classes : array of shape (c,)
        The classes that have a sample in this phase, sorted.
    new_classes : array
        Those of them that no earlier phase had, sorted.
    exposed : array
        The classes seen up to the end of this phase, sorted. Metrics are restricted to them.
    """

    train: Indices
    classes: Labels
    new_classes: Labels
    exposed: Labels


@dataclass(frozen=True)
class Stream:
    """A whole stream.

    Attributes
    ----------
    scenario : str
        Name of the scenario that made it.
    options : dict
        What the scenario was asked for, seed included.
    phases : tuple of Phase
    dropped_classes : array
        Classes that the scenario leaves out, such as a remainder that cannot be dealt evenly; sorted.
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

    def counts(self, labels: Labels) -> npt.NDArray[np.int64]:
        """Return how many samples of each class each phase has, shape (phases, classes), classes 0..max(labels)."""
        width = int(labels.max(initial=-1)) + 1
        return np.stack([np.bincount(labels[phase.train], minlength=width) for phase in self.phases])


def make_phases(labels: Labels, trains: Sequence[Indices]) -> tuple[Phase, ...]:
    """Return phases with their classes looked up.

    Parameters
    ----------
    labels : array of shape (n,)
        Labels of the whole training set.
    trains : sequence of arrays
        Indices of each phase, in stream order.
    """
    phases = []
    exposed = np.zeros(0, np.int64)
    for train in trains:
        classes = np.unique(labels[train])
        new = np.setdiff1d(classes, exposed)
        exposed = np.union1d(exposed, classes)
        phases.append(Phase(np.asarray(train, np.intp), classes, new, exposed))
    return tuple(phases)
