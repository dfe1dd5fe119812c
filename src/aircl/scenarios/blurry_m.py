"""BlurryM: some classes belong to one phase, the others are in all of them."""

from __future__ import annotations

import numpy as np

from aircl.scenarios.scenario import check_count, check_share, scenario, share_of
from aircl.scenarios.stream import Indices, Labels


@scenario("blurry-m")
def blurry_m(labels: Labels, *, seed: int = 0, phases: int = 5, disjoint: float = 0.5) -> list[Indices]:
    """Classes that keep to one phase, and classes that appear in every phase.

    Parameters
    ----------
    labels : array of shape (n,)
    seed : int, default=0
    phases : int, default=5
    disjoint : float, default=0.5
        Share of the classes, rounded down, that keep to one phase. They are dealt evenly; where they cannot be, the
        earlier phases have one more.

    Returns
    -------
    stream : Stream

    Notes
    -----
    The samples of each other class are dealt evenly over the phases, beginning with a random one; a class with fewer
    samples than there are phases is in as many of them as it has samples. Nothing is dropped. The samples of a phase
    arrive in the order of one random permutation of the training set.

    References
    ----------
    .. [1] R. Aljundi et al., "Gradient based sample selection for online continual learning", NeurIPS 2019.

    Examples
    --------
    Classes 0 and 3 keep to one phase, the others are in both:

    >>> import numpy as np
    >>> from aircl.scenarios import blurry_m
    >>> blurry_m(np.repeat(np.arange(6), 10), seed=1, phases=2, disjoint=1 / 3).counts()
    array([[10,  5,  5,  0,  5,  5],
           [ 0,  5,  5, 10,  5,  5]])
    """
    check_count("phases", phases)
    check_share("disjoint", disjoint)
    rng = np.random.default_rng(seed)
    scan = rng.permutation(len(labels))
    classes, position, counts = np.unique(labels[scan], return_inverse=True, return_counts=True)
    n_disjoint = share_of(disjoint, len(classes))
    order = rng.permutation(len(classes))

    # Which of its class's samples each one is, as the scan comes across them: 0, 1, ..
    nth = np.empty(len(scan), np.intp)
    nth[np.argsort(position, kind="stable")] = np.arange(len(scan)) - np.repeat(np.cumsum(counts) - counts, counts)
    phase = (nth + rng.integers(phases, size=len(classes))[position]) % phases
    for number, group in enumerate(np.array_split(order[:n_disjoint], phases)):
        phase[np.isin(position, group)] = number
    return [scan[phase == number] for number in range(phases)]
