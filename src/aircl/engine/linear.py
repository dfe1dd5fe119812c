"""Solutions that score by a linear function of the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aircl.engine.backend import Array


@dataclass(kw_only=True)
class LinearSolution:
    """Weights for one state of the statistics.

    Attributes
    ----------
    rule : Rule
    W : array of shape (f, C)
    b : array of shape (C,) or None
        Intercepts.
    gamma : float or None
        The ridge, where there is one.
    """

    rule: Any
    W: Array
    b: Array | None = None
    gamma: float | None = None

    def scorer(self, order: Array) -> Callable[[Array], Array]:
        """Return the function from features (n, f) to scores XW + b (n, C), with the classes in this order."""
        W, b = self.W[:, order], None if self.b is None else self.b[order]
        return lambda X: X @ W if b is None else X @ W + b
