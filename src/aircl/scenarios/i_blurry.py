"""i-Blurry-N-M: like Si-blurry, but every phase has as many classes as the others."""

from __future__ import annotations

import numpy as np

from aircl.scenarios.scenario import check_phases, check_share, scenario, share_of
from aircl.scenarios.si_blurry import whole_numbers
from aircl.scenarios.stream import Indices, Labels, deal


@scenario("i-blurry")
def i_blurry(
    labels: Labels, *, seed: int = 0, phases: int = 5, disjoint: float = 0.5, blurry: float = 0.1
) -> list[Indices]:
    """Equal numbers of disjoint and blurry classes in each phase; some blurry samples stray into other phases.

    Parameters
    ----------
    labels : array of shape (n,)
    seed : int, default=0
    phases : int, default=5
    disjoint : float, default=0.5
        Share of the classes that keep to one phase: N of i-Blurry-N-M, in percent.
    blurry : float, default=0.1
        Share of each phase's blurry samples that are pooled and dealt in equal parts over all phases: M.

    Returns
    -------
    stream : Stream

    Notes
    -----
    The numbers of disjoint and of blurry classes are rounded down to multiples of `phases`; the remainder is in
    `Stream.dropped_classes`. The training set is permuted first, so the samples that stray are a random choice, and
    all of them are dealt: parts may differ by one sample. The samples of a phase are permuted.

    References
    ----------
    .. [1] H. Koh et al., "Online Continual Learning on Class Incremental Blurry Task Configuration with Anytime
       Inference", ICLR 2022.

    Examples
    --------
    Of the samples of classes 1 and 2 some stray; with 100 classes every phase has as many as the others:

    >>> import numpy as np
    >>> from aircl.scenarios import i_blurry
    >>> i_blurry(np.repeat(np.arange(6), 10), seed=1, phases=2, disjoint=1 / 3, blurry=0.2).counts()
    array([[10,  9,  1,  0,  0, 10],
           [ 0,  1,  9, 10, 10,  0]])
    >>> [len(phase.classes) for phase in i_blurry(np.repeat(np.arange(100), 500), seed=1).phases]
    [60, 60, 60, 60, 60]
    """
    classes = np.unique(labels)
    check_phases(phases, len(classes))
    check_share("disjoint", disjoint)
    check_share("blurry", blurry)
    rng = np.random.default_rng(seed)
    scan = rng.permutation(len(labels))
    n_disjoint, n_blurry = whole_numbers(len(classes), phases, disjoint)
    order = rng.permutation(classes)
    own = deal(labels, np.split(order[:n_disjoint], phases), scan)
    mixed = deal(labels, np.split(order[n_disjoint : n_disjoint + n_blurry], phases), scan)
    strays = [share_of(blurry, len(part)) for part in mixed]
    pool = rng.permutation(np.concatenate([part[:n] for part, n in zip(mixed, strays, strict=True)]))
    dealt = np.array_split(pool, phases)
    stay = [part[n:] for part, n in zip(mixed, strays, strict=True)]
    return [rng.permutation(np.concatenate(parts)) for parts in zip(own, stay, dealt, strict=True)]
