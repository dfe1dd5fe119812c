"""What can be asked of a model, as values that a journal can hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.engine.backend import Array


@dataclass(frozen=True, eq=False)
class Change:
    """Rows to learn or to forget, or classes to forget.

    Attributes
    ----------
    kind : {"learn", "forget", "forget-classes"}
    labels : list
        Of the rows; or the classes.
    X : array of shape (n, f) or None
        Features.
    weight : list of float or None
        Sample weights.

    Examples
    --------
    >>> from aircl import AIRClassifier
    >>> change = Change("learn", ["cat", "dog"], np.eye(2))
    >>> again = Change.unpacked(*change.packed())
    >>> model = AIRClassifier(0.1)
    >>> again.apply(model)
    >>> model.classes_.tolist(), again.n_rows
    (['cat', 'dog'], 2)
    """

    kind: str
    labels: list[Any]
    X: Array | None = field(default=None, repr=False)
    weight: list[float] | None = None

    @property
    def n_rows(self) -> int:
        """How many rows it brings or takes."""
        return 0 if self.kind == "forget-classes" else len(self.labels)

    def apply(self, model: AnalyticClassifier) -> None:
        """Change a model; what it refuses is a ValueError and leaves it as it was."""
        if self.kind == "learn":
            model.partial_fit(self.X, self.labels, sample_weight=self.weight)
        elif self.kind == "forget":
            model.forget(self.X, self.labels, sample_weight=self.weight)
        else:
            model.forget(classes=self.labels)

    def packed(self) -> tuple[str, str, bytes]:
        """Return the kind, a text and bytes that `unpacked` takes."""
        fields: dict[str, Any] = {"labels": self.labels, "weight": self.weight}
        if self.X is None:
            return self.kind, json.dumps(fields), b""
        fields |= {"dtype": self.X.dtype.name, "shape": self.X.shape}
        return self.kind, json.dumps(fields), self.X.tobytes()

    @classmethod
    def unpacked(cls, kind: str, text: str, rows: bytes) -> Change:
        """Return what was packed."""
        fields = json.loads(text)
        X = None
        if "dtype" in fields:
            X = np.frombuffer(rows, fields["dtype"]).reshape(fields["shape"])
        return cls(kind, fields["labels"], X, fields["weight"])
