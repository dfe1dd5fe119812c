"""How often classes are expected among new samples, if not as often as in what was learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from aircl.engine.backend import Array

Priors = str | Mapping[Any, float] | None
PRIORS = ("equal", "count")


def check_priors(priors: Priors) -> None:
    """Refuse priors that do not exist."""
    if priors is None or isinstance(priors, Mapping) or (isinstance(priors, str) and priors in PRIORS):
        return
    raise ValueError(
        f"priors={priors!r} are unknown. Choose None, one of {', '.join(map(repr, PRIORS))}, or a mapping from label "
        "to probability."
    )


def class_priors(priors: Priors, share: Array, count: Array, labels: Array) -> Array:
    """Return the probability of every class, in sum 1.

    Parameters
    ----------
    priors : {None, "equal", "count"} or mapping
        None: the share that each class has in the loss.
    share : array of shape (C,)
        pi_y n_y, in sum 1.
    count : array of shape (C,)
    labels : array of shape (C,)
        For a mapping.

    Returns
    -------
    probability : array of shape (C,)
    """
    if priors is None:
        return share
    if isinstance(priors, Mapping):
        if missing := [label for label in labels.tolist() if label not in priors]:
            raise ValueError(f"priors= has no probability for the classes {missing[:8]}. Add them to the mapping.")
        values = np.array([priors[label] for label in labels.tolist()], dtype=np.float64)
    else:
        values = count if priors == "count" else np.ones(len(count))
    if not np.all(np.isfinite(values)) or np.any(values < 0) or not np.any(values > 0):
        raise ValueError(f"priors={priors!r} must be finite, not negative, and not all zero.")
    probability: Array = values / values.sum()
    return probability


def log_ratio(probability: Array, share: Array) -> Array:
    """Return what is added to the log-odds of every class: log(probability / share); 0 where the share is 0."""
    with np.errstate(divide="ignore"):
        ratio = np.log(probability) - np.log(np.where(share > 0.0, share, 1.0))
    return np.where((share > 0.0) | (probability == 0.0), ratio, 0.0)
