"""The analytic re-weighting module (ARM): from class counts to class weights pi."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from aircl.engine.backend import Array

Weighting = str | float | Mapping[Any, float] | Callable[[Array], Array]

WEIGHTINGS = ("inverse", "uniform", "effective")
SCALES = ("mean", "none", "balanced")

# Cui et al. 2019 recommend 0.9 to 0.9999; 0.999 tells classes apart up to about a thousand samples.
EFFECTIVE_BETA = 0.999


def check_weighting(weighting: Weighting, scale: str) -> None:
    """Refuse a weighting or a scale that does not exist."""
    if scale not in SCALES:
        raise ValueError(f"scale={scale!r} is unknown. Choose one of {', '.join(map(repr, SCALES))}.")
    is_name = isinstance(weighting, str) and weighting in WEIGHTINGS
    is_power = isinstance(weighting, Real) and not isinstance(weighting, bool) and np.isfinite(float(weighting))
    if not (is_name or is_power or isinstance(weighting, Mapping) or callable(weighting)):
        raise ValueError(
            f"weighting={weighting!r} is unknown. Choose one of {', '.join(map(repr, WEIGHTINGS))}, a finite number "
            "beta for count**-beta, a mapping from label to weight, or a callable from counts to weights."
        )


def missing_weights(weighting: Weighting, labels: Array) -> list[Any]:
    """Return the labels that a mapping gives no weight to; other weightings cover every label."""
    if not isinstance(weighting, Mapping):
        return []
    return [label for label in labels.tolist() if label not in weighting]


def class_weights(weighting: Weighting, count: Array, labels: Array) -> Array:
    """Return the unscaled weight pi_y of every class.

    Parameters
    ----------
    weighting : str, float, mapping or callable
        How a class's weight follows from its count.
    count : array of shape (C,)
        Sum of the sample weights of each class, all positive.
    labels : array of shape (C,)
        The classes' labels, for a mapping.

    Returns
    -------
    pi : array of shape (C,)

    References
    ----------
    Y. Cui et al., "Class-Balanced Loss Based on Effective Number of Samples", CVPR 2019 (``"effective"``).
    """
    if isinstance(weighting, Mapping):
        if missing := missing_weights(weighting, labels):
            raise ValueError(f"weighting= has no weight for the classes {missing}. Add them to the mapping.")
        pi = np.array([weighting[label] for label in labels.tolist()], dtype=np.float64)
    elif callable(weighting):
        pi = np.asarray(weighting(count.copy()), dtype=np.float64)
    elif weighting == "inverse":  # AIR: every class contributes the same to the loss
        pi = 1.0 / count
    elif weighting == "uniform":  # ACIL: every sample contributes the same
        pi = np.ones_like(count)
    elif weighting == "effective":  # expm1: exact for counts far below 1 / (1 - beta) as well
        pi = (1 - EFFECTIVE_BETA) / -np.expm1(count * np.log(EFFECTIVE_BETA))
    else:
        pi = count ** -float(weighting)
    if pi.shape != count.shape or not np.all(np.isfinite(pi)) or np.any(pi < 0) or not np.any(pi > 0):
        raise ValueError(
            f"weighting={weighting!r} gave the class weights {pi} for the counts {count}. "
            "Weights must be one finite, non-negative number per class, not all zero."
        )
    return pi


def scale_factor(scale: str, pi: Array, count: Array) -> float:
    """Return the one scalar that brings pi to the chosen scale (so it can be applied after folding)."""
    if scale == "mean":  # the mean of pi over the seen classes is 1
        return float(1.0 / pi.mean())
    if scale == "balanced":  # sum of pi_y n_y is n, as scikit-learn's class_weight="balanced"
        return float(count.sum() / (pi @ count))
    return 1.0  # exactly the paper


def depends_on_own_count_only(weighting: Weighting, count: Array, labels: Array) -> bool:
    """Tell whether each class's weight is the same when it is asked for alone (what folding needs)."""
    if not callable(weighting):
        return True
    together = class_weights(weighting, count, labels)
    alone = [class_weights(weighting, count[i : i + 1], labels[i : i + 1])[0] for i in range(len(count))]
    return bool(np.allclose(together, alone, rtol=1e-12, atol=0.0))
