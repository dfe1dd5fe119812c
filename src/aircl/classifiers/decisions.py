"""Answers that may be withheld: labels, how sure they are, and why some rows have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from aircl.engine.backend import Array

DOUBTFUL, UNKNOWN = "doubtful", "unknown"


@dataclass(frozen=True, eq=False)
class Decisions:
    """The answers of a classifier to some rows, with the reason where there is none.

    Attributes
    ----------
    labels : masked array of shape (n_samples,)
        The predicted labels; masked where there is no answer. Labels of any type stay what they are, and `filled` puts
        a label of your own in their place.
    probability : array of shape (n_samples,)
        Of the predicted label, also where it is withheld.
    novelty : array of shape (n_samples,) or None
        As `novelty` returns it. None if it was not asked for.
    reason : array of shape (n_samples,), str
        "unknown": too different from everything learned; "doubtful": no class is probable enough; "" for an answer.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import AIRClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = AIRClassifier(expansion=None).fit(X[:900], y[:900])
    >>> decided = clf.decide(X[900:], confidence=0.9)
    >>> answered = decided.answered
    >>> right = decided.labels.data == y[900:]
    >>> print(f"{answered.mean():.0%} answered, {right[answered].mean():.0%} of them right, {right.mean():.0%} of all")
    73% answered, 99% of them right, 91% of all
    """

    labels: np.ma.MaskedArray[Any, Any]
    probability: Array
    novelty: Array | None
    reason: Array

    @property
    def answered(self) -> Array:
        """Which rows have an answer, shape (n_samples,)."""
        answered: Array = self.reason == ""
        return answered


def decide(
    labels: Array, probability: Array, share: Array | None, confidence: float | None, novelty: float | None
) -> Decisions:
    """Return labels, those withheld that are less probable than `confidence` or more novel than `novelty` allow."""
    reason = np.full(len(labels), "", dtype=f"U{max(len(DOUBTFUL), len(UNKNOWN))}")
    if confidence is not None:
        reason[probability < confidence] = DOUBTFUL
    if novelty is not None and share is not None:
        reason[share < novelty] = UNKNOWN
    return Decisions(np.ma.MaskedArray(labels, mask=reason != ""), probability, share, reason)


def check_threshold(name: str, value: Any) -> None:
    """Refuse what is neither None nor a share."""
    if value is None or (isinstance(value, int | float | np.number) and 0.0 <= value <= 1.0):
        return
    raise ValueError(f"{name}={value!r} is not possible. Use a number from 0 to 1, or None not to ask for it.")
