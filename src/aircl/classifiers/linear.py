"""Classifiers whose scores are linear in the features."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from aircl.classifiers.stream import StreamClassifier
from aircl.engine.backend import Array


class LinearClassifier(StreamClassifier):
    """A classifier of a stream with one weight vector a class."""

    @property
    def coef_(self) -> Array:
        """W transposed: the weights of every class, shape (C, f); zeros for classes not seen yet."""
        return self._learned_by_class("coef")


def check_gamma(gamma: Any, word: str | None = None, *, zero: bool = False) -> None:
    """Refuse a ridge that is neither a finite number above 0 (or 0 itself, if allowed) nor the word."""
    if word is not None and isinstance(gamma, str) and gamma == word:
        return
    number = isinstance(gamma, Real) and not isinstance(gamma, bool)
    if not number or not (0 <= float(gamma) < np.inf) or (float(gamma) == 0 and not zero):
        words = "" if word is None else f"{word!r} or "
        raise ValueError(f"gamma={gamma!r} is not possible. Use {words}a finite number {'>=' if zero else '>'} 0.")
