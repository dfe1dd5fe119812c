"""Task-incremental learning: disjoint classes, and methods may be told which task a sample is of."""

from __future__ import annotations

from aircl.scenarios.class_incremental import disjoint_phases
from aircl.scenarios.scenario import scenario
from aircl.scenarios.stream import Indices, Labels


@scenario("task-incremental")
def task_incremental(labels: Labels, *, seed: int = 0, phases: int = 10, order: str = "shuffled") -> list[Indices]:
    """Disjoint tasks of equal size; which task a sample belongs to may be known at test time.

    Parameters
    ----------
    labels : array of shape (n,)
    seed : int, default=0
        Of the class order and of the order of the samples inside a phase.
    phases : int, default=10
        Number of tasks; task t is phase t, and its classes are ``phase.classes``.
    order : {"shuffled", "natural"}, default="shuffled"
        Classes in an order drawn by the seed, or by their index.

    Returns
    -------
    stream : Stream

    Notes
    -----
    The phases are those of `class_incremental` without a base phase, of the same seed. What differs is the scenario's
    name: it tells an evaluation that predictions may be restricted to the classes of the sample's own task.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.scenarios import task_incremental
    >>> stream = task_incremental(np.repeat(np.arange(6), 10), phases=3, order="natural")
    >>> [phase.classes.tolist() for phase in stream.phases]
    [[0, 1], [2, 3], [4, 5]]
    """
    return disjoint_phases(labels, seed, phases, 0.0, order)
