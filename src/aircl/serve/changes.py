"""What can be asked of a model, as values that a journal can hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.engine.backend import Array

# What a model raises when it is asked for what is not possible; anything else is a fault or a lack of memory.
REFUSED = (ValueError, TypeError)


class HalfMadeError(RuntimeError):
    """A model has made a part of a change, and has to be read from the disk again."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their labels, as they were sent.

    Attributes
    ----------
    X : array of shape (n, f) or list of str
        Features, or texts.
    labels : list
    weight : list of float or None
        Sample weights.
    ids : list of str or int, or None
        What the ledger knows them by; None: their contents.
    """

    X: Array | list[str]
    labels: list[Any]
    weight: list[float] | None = None
    ids: list[Any] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Weights and ids, where there are some."""
        given = {"sample_weight": self.weight, "ids": self.ids}
        return {name: value for name, value in given.items() if value is not None}

    def packed(self) -> tuple[dict[str, Any], bytes]:
        """Return what JSON can hold, and the bytes of features."""
        fields: dict[str, Any] = {"labels": self.labels, **self.options}
        if isinstance(self.X, list):
            return fields | {"texts": self.X}, b""
        return fields | {"dtype": self.X.dtype.name, "shape": self.X.shape}, self.X.tobytes()

    @classmethod
    def unpacked(cls, fields: dict[str, Any], content: bytes) -> Rows:
        """Return what was packed."""
        X = fields.get("texts")
        if X is None:
            X = np.frombuffer(content, fields["dtype"]).reshape(fields["shape"])
        return cls(X, fields["labels"], fields.get("sample_weight"), fields.get("ids"))


@dataclass(frozen=True, eq=False)
class Change:
    """Rows to learn, to forget or to correct, or classes to forget.

    Attributes
    ----------
    kind : {"learn", "forget", "correct", "forget-classes"}
    rows : Rows or None
    old : Rows or None
        Of a correction: the rows as they were learned.
    classes : list or None
        To be forgotten whole.
    on_duplicate : {"error", "skip"}
        What becomes of rows that the ledger has.

    Examples
    --------
    >>> from aircl import AIRClassifier
    >>> change = Change("learn", Rows(np.eye(2), ["cat", "dog"]))
    >>> again = Change.unpacked(*change.packed())
    >>> model = AIRClassifier(0.1)
    >>> again.apply(model)
    >>> model.classes_.tolist(), again.n_rows
    (['cat', 'dog'], 2)
    """

    kind: str
    rows: Rows | None = None
    old: Rows | None = None
    classes: list[Any] | None = None
    on_duplicate: str = "error"

    @property
    def n_rows(self) -> int:
        """How many rows it brings or takes."""
        return 0 if self.rows is None else len(self.rows.labels)

    def apply(self, model: AnalyticClassifier) -> None:
        """Change a model. What it refuses is one of `REFUSED` and leaves it as it was.

        Raises
        ------
        HalfMadeError
            If the old rows of a correction are forgotten already, and the new ones refused.
        """
        rows, old = self.rows, self.old
        if rows is None:
            model.forget(classes=self.classes)
        elif self.kind == "forget":
            model.forget(rows.X, rows.labels, **rows.options)
        elif old is not None:
            model.forget(old.X, old.labels, **old.options)
            try:
                model.partial_fit(rows.X, rows.labels, **rows.options)
            except REFUSED as error:
                raise HalfMadeError(str(error)) from error
        else:
            usual = self.on_duplicate == "error"
            more: dict[str, Any] = {} if usual else {"on_duplicate": self.on_duplicate}
            model.partial_fit(rows.X, rows.labels, **rows.options, **more)

    def packed(self) -> tuple[str, str, bytes]:
        """Return the kind, a text and bytes that `unpacked` takes."""
        fields: dict[str, Any] = {"classes": self.classes, "on_duplicate": self.on_duplicate}
        parts = []
        for name, rows in (("rows", self.rows), ("old", self.old)):
            if rows is not None:
                fields[name], content = rows.packed()
                parts.append(content)
        fields["bytes"] = [len(part) for part in parts]
        return self.kind, json.dumps(fields), b"".join(parts)

    @classmethod
    def unpacked(cls, kind: str, text: str, content: bytes) -> Change:
        """Return what was packed."""
        fields, start, found = json.loads(text), 0, {}
        for name, size in zip((n for n in ("rows", "old") if n in fields), fields["bytes"], strict=True):
            found[name] = Rows.unpacked(fields[name], content[start : start + size])
            start += size
        return cls(kind, **found, classes=fields["classes"], on_duplicate=fields["on_duplicate"])
