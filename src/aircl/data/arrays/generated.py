"""Rows that a Python function makes: `module:function` in place of a file."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from aircl.data.arrays.source import (
    LABEL_KINDS,
    Array,
    DataError,
    LabelKind,
    Rows,
    Source,
    check_text_label,
    check_width,
    float_dtype,
    kind_of,
)
from aircl.inputs import raw_samples

# So many batches without a row, one after the other, are taken for a function that never ends.
MAX_EMPTY = 10_000

Reader = Callable[[], Iterable[tuple[Any, ...]]]


def is_entry(text: str) -> bool:
    """Tell whether a text names a Python function rather than a file.

    Parameters
    ----------
    text : str
        A path, or `package.module:function`.

    Returns
    -------
    is_entry : bool

    Examples
    --------
    >>> from aircl.data.arrays import is_entry
    >>> is_entry("my_stream:shards"), is_entry("monday.npz")
    (True, False)
    """
    return re.fullmatch(r"[^\W\d][\w.]*:[^\W\d]\w*", text) is not None and not Path(text).exists()


def open_entry(entry: str) -> list[Source]:
    """Return the sources that a function gives. The module is imported, also from the current directory.

    Parameters
    ----------
    entry : str
        `module:function`. The function takes nothing and yields batches, (X, y) or (X, y, sample_weight), or X alone
        for predictions; or it returns a list of such functions, which can be read in different processes. X are rows of
        numbers, or texts or images for a backbone.

    Returns
    -------
    sources : list of Source

    Examples
    --------
    With ``my_stream.py`` in the current directory or installed:

    >>> import sys
    >>> from types import ModuleType
    >>> import numpy as np
    >>> from aircl.data.arrays import open_entry
    >>> def visits():
    ...     yield np.ones((3, 2)), ["cat", "dog", "cat"]
    ...     yield np.zeros((1, 2)), ["dog"]
    >>> sys.modules["my_stream"] = ModuleType("my_stream")  # stands for the file
    >>> sys.modules["my_stream"].visits = visits
    >>> (source,) = open_entry("my_stream:visits")
    >>> [batch.y.tolist() for batch in source.batches(10, "strings")]
    [['cat', 'dog', 'cat'], ['dog']]
    """
    module, _, name = entry.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        function = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise DataError(f"{entry}: there is no module {error.name!r} here. Install it, or go to its folder.") from error
    except AttributeError:
        raise DataError(f"{entry}: the module {module} has no {name!r}.") from None
    except (Exception, SystemExit) as error:
        raise DataError(f"{entry}: {module} cannot be imported: {_told(error)}.") from error
    if not callable(function):
        raise DataError(f"{entry} is a {type(function).__name__}, not a function.")
    with _user_code(entry):
        made = function()
        readers = list(made) if isinstance(made, list | tuple) else [function]
    if not readers:
        raise DataError(f"{entry} returns an empty list. It should yield (X, y), or return functions that do.")
    return [GeneratedSource(f"{entry}[{i}]" if len(readers) > 1 else entry, read) for i, read in enumerate(readers)]


class GeneratedSource(Source):
    """Batches that a function yields. Its first batch is made twice, first to look at it.

    Parameters
    ----------
    name : str
        For messages.
    read : callable() -> iterable of (X, y) or (X, y, sample_weight)

    Attributes
    ----------
    first : object
        The first text or image; None if the function yields numbers.
    """

    def __init__(self, name: str, read: Reader) -> None:
        self.path = Path(name)
        if not callable(read):
            raise DataError(f"{name} is a {type(read).__name__}, not a function that yields (X, y).")
        self._batches = read
        X, y, _ = next(self.rows(), (None, None, None))
        self.first = X[0] if isinstance(X, list) else None
        self.n_features = None if X is None or isinstance(X, list) else X.shape[1]
        check_width(self.path, self.n_features)
        self._kind: LabelKind | None = None if y is None else kind_of(self.path, y.dtype)
        self._is_unlabelled = X is not None and y is None

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Return the kind that the labels of the first batch have."""
        if self._is_unlabelled:
            raise DataError(f"{self.path} yields X alone. Here it should yield (X, y): labels are needed.")
        return candidates & (set(LABEL_KINDS) if self._kind is None else {self._kind})

    def identity(self) -> str | None:
        """Return None: a function may give other rows another time."""
        return None

    def _read(self, size: int, kind: LabelKind | None) -> Iterator[Rows]:
        start = 0
        for X, y, weight in self.rows():
            for first in range(0, len(X), size):
                part = slice(first, first + size)
                labels = None if y is None or kind is None else self._typed_labels(y[part], start + first)
                yield X[part], labels, None if weight is None else weight[part]
            start += len(X)

    def rows(self) -> Iterator[tuple[Any, Array | None, Array | None]]:
        """Yield batches that are all alike: X as an array of numbers or a list of texts or images, labels, weights."""
        start, known = 0, None
        for X, y, weight in self._rows():
            labels_are = "missing" if y is None else kind_of(self.path, y.dtype)
            form = ("texts or images" if isinstance(X, list) else f"{X.shape[1]} features", labels_are)
            known = known or form
            if form != known:
                raise DataError(
                    f"{self.path}, rows from {start + 1} on: {form[0]} and labels that are {form[1]}, but the first "
                    f"batch has {known[0]} and {known[1]}."
                )
            yield X, y, weight
            start += len(X)

    def _rows(self) -> Iterator[tuple[Any, Array | None, Array | None]]:
        name, empty = str(self.path), 0
        with _user_code(name):
            batches = iter(self._batches())
        while True:
            with _user_code(name):
                rows = next(batches, None)
                if rows is None:
                    return
                X, y, weight = self._arrays(rows)
            empty = 0 if len(X) else empty + 1
            if empty == MAX_EMPTY:
                raise DataError(f"{name} has yielded {empty:,} batches without a row, one after the other.")
            if len(X):
                yield X, y, weight

    def _arrays(self, rows: Any) -> tuple[Any, Array | None, Array | None]:
        """Return a batch as arrays of the right shapes; texts and images as a list."""
        if not isinstance(rows, tuple):
            rows = (rows, None)
        if len(rows) not in (2, 3) or not hasattr(rows[0], "__len__"):
            raise DataError(f"{self.path} yields a {type(rows[0]).__name__}, not (X, y) or (X, y, sample_weight).")
        samples = raw_samples(rows[0])
        X: Any = np.asarray(rows[0]) if samples is None else list(samples)
        y = None if rows[1] is None else self._labels(rows[1])
        weight = None if len(rows) == 2 or rows[2] is None else np.asarray(rows[2], dtype=np.float64)
        others = [other for other in (y, weight) if other is not None]
        shape, type_ = ((len(X),), "a list") if samples is not None else (X.shape, X.dtype)
        fits = samples is not None or (X.ndim == 2 and X.dtype.kind in "fiub")
        if not fits or any(other.shape != shape[:1] for other in others):
            shapes = ", ".join(map(str, [shape, *(other.shape for other in others)]))
            raise DataError(
                f"{self.path} yields arrays of the shapes {shapes}, the first of type {type_}. X should be "
                "numbers of shape (n, f), or n texts or images; labels and sample weights of shape (n,)."
            )
        return X if samples is not None else np.ascontiguousarray(X, dtype=float_dtype(X.dtype)), y, weight

    def _labels(self, given: Any) -> Array:
        labels = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
        y = np.asarray(given)
        if y.dtype.kind not in "OSTU":
            return y
        kinds = {type(label) for label in labels.ravel().tolist()}
        if not all(issubclass(kind, str | bytes) for kind in kinds):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise DataError(f"{self.path} yields labels of the types {names}. Labels are all texts or all numbers.")
        texts = [label.decode() if isinstance(label, bytes) else label for label in labels.ravel().tolist()]
        for text in texts:
            check_text_label(str(self.path), text)
        return np.array(texts, dtype=str).reshape(labels.shape)


@contextmanager
def _user_code(name: str) -> Iterator[None]:
    """Turn whatever goes wrong in a function of the user's into an error that names it."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise DataError(f"{name} failed: {_told(error)}.") from error


def _told(error: BaseException) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
