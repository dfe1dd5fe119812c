"""What can be asked of a model, as values that a journal can hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.engine.backend import Array
from aircl.inputs import Samples
from aircl.serve.samples import Images, images_of

# What a model raises when it is asked for what is not possible; anything else is a fault or a lack of memory.
REFUSED = (ValueError, TypeError)

# Kinds that change nothing: what is left of a change that was taken back, and the taking back of it.
TAKEN_BACK = ("undone", "undo")


class HalfMadeError(RuntimeError):
    """A model has made a part of a change, and has to be read from the disk again."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their labels, as they were sent.

    Attributes
    ----------
    X : array of shape (n, f) or Samples
        Features, texts or images.
    labels : list
    weight : list of float or None
        Sample weights.
    ids : list of str or int, or None
        What the ledger knows them by; None: their contents.
    """

    X: Array | Samples
    labels: list[Any]
    weight: list[float] | None = None
    ids: list[Any] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Weights and ids, where there are some."""
        given = {"sample_weight": self.weight, "ids": self.ids}
        return {name: value for name, value in given.items() if value is not None}

    def packed(self) -> tuple[dict[str, Any], bytes]:
        """Return what JSON can hold, and the bytes of features or images."""
        fields: dict[str, Any] = {"labels": self.labels, **self.options}
        if isinstance(self.X, Images):
            return fields | {"images": [len(file) for file in self.X.files]}, b"".join(self.X.files)
        if isinstance(self.X, list):
            return fields | {"texts": self.X}, b""
        return fields | {"dtype": self.X.dtype.name, "shape": self.X.shape}, self.X.tobytes()

    @classmethod
    def unpacked(cls, fields: dict[str, Any], content: bytes) -> Rows:
        """Return what was packed."""
        X: Array | Samples
        if "images" in fields:
            ends = np.cumsum([0, *fields["images"]]).tolist()
            X = images_of(content[start:end] for start, end in pairwise(ends))
        elif "texts" in fields:
            X = Samples(fields["texts"])
        else:
            X = np.frombuffer(content, fields["dtype"]).reshape(fields["shape"])
        return cls(X, fields["labels"], fields.get("sample_weight"), fields.get("ids"))

    def content(self) -> bytes:
        """Return everything as bytes."""
        fields, content = self.packed()
        return with_text(json.dumps(fields), content)

    @classmethod
    def of_content(cls, content: bytes) -> Rows:
        """Return what `content` gave."""
        text, rest = without_text(content)
        return cls.unpacked(json.loads(text), rest)

    def split(self) -> list[Rows]:
        """Return the rows one by one."""
        return [
            Rows(
                _taken(self.X, place),
                self.labels[place : place + 1],
                None if self.weight is None else self.weight[place : place + 1],
                None if self.ids is None else self.ids[place : place + 1],
            )
            for place in range(len(self.labels))
        ]

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return rows of several parts, all with ids."""
        X: Any
        if isinstance(parts[0].X, Images):
            X = images_of(file for part in parts for file in part.X.files)  # type: ignore[union-attr]
        elif isinstance(parts[0].X, Samples):
            X = Samples(sample for part in parts for sample in part.X)
        else:
            X = np.concatenate([part.X for part in parts])
        weights = [part.weight or [1.0] * len(part.labels) for part in parts]
        weight = None if all(part.weight is None for part in parts) else [w for part in weights for w in part]
        labels, ids = ([value for part in parts for value in getattr(part, name) or ()] for name in ("labels", "ids"))
        return cls(X, labels, weight, ids)


def class_rows(model: AnalyticClassifier) -> dict[tuple[type, Any], float]:
    """Return the rows of every class; 1 and True are equal, and are not the same label."""
    if not hasattr(model, "_learner"):
        return {}
    state = model._learner.state  # one value: the model may learn meanwhile
    if state.n_classes == 0:
        return {}
    counts = model._by_class(model._backend.asarray(state.count), state.labels).tolist()
    return {(type(label), label): count for label, count in zip(state.labels.classes.tolist(), counts, strict=True)}


def rows_between(before: dict[tuple[type, Any], float], after: dict[tuple[type, Any], float]) -> int:
    """Return by how many rows two models differ, as their classes tell; at least one.

    >>> rows_between({(str, "cat"): 2.0, (str, "dog"): 3.0}, {(str, "cat"): 4.0})
    5
    """
    changed = sum(abs(after.get(label, 0.0) - before.get(label, 0.0)) for label in {**before, **after})
    return max(1, round(changed))


def _ledger_size(model: AnalyticClassifier) -> int:
    ledger = model._learner.state.ledger if model.__sklearn_is_fitted__() else None
    return 0 if ledger is None else len(ledger)


def _taken(X: Array | Samples, place: int) -> Array | Samples:
    if not isinstance(X, Samples):
        return X[place : place + 1]
    taken = type(X)(X[place : place + 1])
    if isinstance(X, Images) and isinstance(taken, Images):
        taken.files = X.files[place : place + 1]
    return taken


def with_text(text: str, content: bytes) -> bytes:
    """Put a text before bytes, so that `without_text` finds both."""
    head = text.encode("utf-8", "surrogatepass")
    return len(head).to_bytes(8, "little") + head + content


def without_text(content: bytes) -> tuple[str, bytes]:
    """Return what `with_text` was given."""
    end = 8 + int.from_bytes(content[:8], "little")
    return content[8:end].decode("utf-8", "surrogatepass"), content[end:]


@dataclass(frozen=True, eq=False)
class Change:
    """Rows to learn, to forget or to correct, or classes to forget.

    Attributes
    ----------
    kind : {"learn", "forget", "correct", "forget-classes", "undone", "undo"}
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
    >>> again.apply(model), model.classes_.tolist()
    (2, ['cat', 'dog'])
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

    def apply(self, model: AnalyticClassifier) -> int:
        """Change a model. What it refuses is one of `REFUSED` and leaves it as it was.

        Returns
        -------
        n_rows : int
            How many rows were learned, forgotten or corrected: without those that the ledger had, if these are skipped.
            Of whole classes, the sum of their sample weights.

        Raises
        ------
        HalfMadeError
            If the old rows of a correction are forgotten already, and the new ones refused.
        """
        rows, old = self.rows, self.old
        if self.kind in TAKEN_BACK:
            return 0
        if rows is None:
            before = class_rows(model)
            model.forget(classes=self.classes)
            return rows_between(before, class_rows(model))
        elif self.kind == "forget":
            model.forget(rows.X, rows.labels, **rows.options)
        elif old is not None:
            model.forget(old.X, old.labels, **old.options)
            try:
                model.partial_fit(rows.X, rows.labels, **rows.options)
            except REFUSED as error:
                raise HalfMadeError(str(error)) from error
        elif self.on_duplicate == "skip":
            size = _ledger_size(model)
            model.partial_fit(rows.X, rows.labels, **rows.options, on_duplicate="skip")
            return _ledger_size(model) - size
        else:
            model.partial_fit(rows.X, rows.labels, **rows.options)
        return self.n_rows

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
