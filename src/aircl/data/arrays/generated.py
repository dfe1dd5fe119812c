"""Rows that a Python function makes: `module:function` in the place of a file."""

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
    Source,
    check_text_label,
    check_width,
    float_dtype,
    kind_of,
)

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
        `module:function`. The function takes nothing and yields batches, (X, y) or (X, y, sample_weight); or it returns
        a list of such functions, which can be read in different processes.

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
    """

    def __init__(self, name: str, read: Reader) -> None:
        self.path = Path(name)
        if not callable(read):
            raise DataError(f"{name} is a {type(read).__name__}, not a function that yields (X, y).")
        self._batches = read
        X, y, _ = next(self._rows(), (None, None, None))
        self.n_features = None if X is None else X.shape[1]
        check_width(self.path, self.n_features)
        self._kind: LabelKind | None = None if y is None else kind_of(self.path, y.dtype)

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Return the kind that the labels of the first batch have."""
        return candidates & (set(LABEL_KINDS) if self._kind is None else {self._kind})

    def identity(self) -> str | None:
        """Return None: a function may give other rows another time."""
        return None

    def _read(self, size: int, kind: LabelKind | None) -> Iterator[tuple[Array, Array | None, Array | None]]:
        start = 0
        for X, y, weight in self._rows():
            labels_are = kind_of(self.path, y.dtype)
            if (X.shape[1], labels_are) != (self.n_features, self._kind):
                raise DataError(
                    f"{self.path}, rows from {start + 1} on: {X.shape[1]} features and labels that are {labels_are}, "
                    f"but the first batch has {self.n_features} features and {self._kind}."
                )
            for first in range(0, len(X), size):
                part = slice(first, first + size)
                labels = self._typed_labels(y[part], start + first)
                yield X[part], labels, None if weight is None else weight[part]
            start += len(X)

    def _rows(self) -> Iterator[tuple[Array, Array, Array | None]]:
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

    def _arrays(self, rows: Any) -> tuple[Array, Array, Array | None]:
        """Return a batch as arrays of the right shapes."""
        if not isinstance(rows, tuple) or len(rows) not in (2, 3):
            raise DataError(f"{self.path} yields a {type(rows).__name__}, not (X, y) or (X, y, sample_weight).")
        X = np.asarray(rows[0])
        labels = rows[1] if isinstance(rows[1], np.ndarray) else np.asarray(rows[1], dtype=object)
        y = np.asarray(rows[1])
        if y.dtype.kind in "OSTU":
            kinds = {type(label) for label in labels.ravel().tolist()}
            if not all(issubclass(kind, str | bytes) for kind in kinds):
                names = ", ".join(sorted(kind.__name__ for kind in kinds))
                raise DataError(f"{self.path} yields labels of the types {names}. Labels are all texts or all numbers.")
            texts = [label.decode() if isinstance(label, bytes) else label for label in labels.ravel().tolist()]
            for text in texts:
                check_text_label(str(self.path), text)
            y = np.array(texts, dtype=str).reshape(labels.shape)
        weight = None if len(rows) == 2 or rows[2] is None else np.asarray(rows[2], dtype=np.float64)
        others = [y] if weight is None else [y, weight]
        if X.ndim != 2 or X.dtype.kind not in "fiub" or any(other.shape != X.shape[:1] for other in others):
            shapes = ", ".join(str(array.shape) for array in (X, *others))
            raise DataError(
                f"{self.path} yields arrays of the shapes {shapes}, the first of type {X.dtype}. X should be "
                "numbers of shape (n, f), labels and sample weights of shape (n,)."
            )
        return np.ascontiguousarray(X, dtype=float_dtype(X.dtype)), y, weight


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
