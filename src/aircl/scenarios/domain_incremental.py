"""Domain-incremental learning: the same classes from one domain after another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aircl.scenarios.class_incremental import ORDERS
from aircl.scenarios.scenario import check_choice, check_labels, scenario
from aircl.scenarios.stream import Indices, Labels, deal


@scenario("domain-incremental")
def domain_incremental(
    labels: Labels, *, seed: int = 0, domains: npt.ArrayLike | None = None, order: str = "natural"
) -> list[Indices]:
    """One phase for each domain of the data, with whatever classes the domain has.

    Parameters
    ----------
    labels : array of shape (n,)
    seed : int, default=0
        Of the order of the samples inside a phase, and of the domains if they are shuffled.
    domains : array of shape (n,)
        Domain of each training sample, integers from 0.
    order : {"natural", "shuffled"}, default="natural"
        Domains by their index, as years or sites often have an order that means something; or as the seed draws them.

    Returns
    -------
    stream : Stream

    Notes
    -----
    The samples of a phase arrive in the order of one random permutation of the training set.

    Examples
    --------
    Two hospitals, of which only the second has class 2:

    >>> import numpy as np
    >>> from aircl.scenarios import domain_incremental
    >>> labels, hospital = np.array([0, 1, 0, 1, 2, 1]), np.array([0, 0, 0, 1, 1, 1])
    >>> domain_incremental(labels, domains=hospital).counts()
    array([[2, 1, 0],
           [0, 2, 1]])
    """
    if domains is None:
        raise ValueError(
            "a domain-incremental stream needs domains: an array with the domain of each training sample. "
            "Give domains=, or choose a dataset that has them."
        )
    domain = check_labels("domains", domains, len(labels))
    check_choice("order", order, ORDERS)
    rng = np.random.default_rng(seed)
    known = np.unique(domain)
    if order == "shuffled":
        known = rng.permutation(known)
    return deal(domain, np.split(known, len(known)), rng.permutation(len(labels)))
