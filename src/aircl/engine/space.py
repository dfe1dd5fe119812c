"""What kind of numbers statistics are made of, and how many may be held in memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aircl.engine.backend import NUMPY, NumpyBackend
from aircl.engine.memory import DiskSpace, available_memory

# Small batches are collected, since one rank-4096 update costs far less than 64 updates of rank 64 ..
WAITING_ROWS = 4096
# .. but not beyond this many bytes, which is enough for wide rows.
WAITING_BYTES = 64 * 2**20


class StoreError(ValueError):
    """What was asked for cannot be done exactly by this store, so it was not done at all.

    Examples
    --------
    A small store has no statistics of a single class that it could take out again:

    >>> import numpy as np
    >>> from aircl import AIRClassifier
    >>> clf = AIRClassifier(0.1, store="shared").fit(np.eye(3), ["cat", "dog", "owl"])
    >>> clf.forget(classes=["owl"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.engine.space.StoreError: store='shared' ... cannot forget a whole class without its rows. Pass ...
    >>> clf.forget([[0.0, 0.0, 1.0]], ["owl"]).classes_
    array(['cat', 'dog'], dtype='<U3')
    """


NOT_LEARNED = (
    "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned with their "
    "classes. Nothing was changed."
)


@dataclass(frozen=True)
class Space:
    """The rows that are learned and the memory for them.

    Parameters
    ----------
    n_features : int
        Width f of the rows.
    dtype : dtype
        float32 or float64, of the second moments. Counts and sums are float64 always.
    backend : backend of the rows
        Rows, sums and second moments are its arrays; counts and weights are NumPy arrays always.
    memory_limit : int or None
        Bytes that may be held in memory. None: `default_limit`.
    default_limit : int or None
        In place of half of what the process may take now.
    disk : DiskSpace
        Where the rest goes.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.engine import Space
    >>> space = Space(n_features=1000, dtype=np.float32, memory_limit=2**30)
    >>> space.waiting_rows, space.room < 2**30
    (4096, True)
    """

    n_features: int
    dtype: np.dtype[Any]
    backend: NumpyBackend = NUMPY
    memory_limit: int | None = None
    default_limit: int | None = field(default=None, compare=False)
    disk: DiskSpace = field(default_factory=DiskSpace, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        if self.memory_limit is None and self.default_limit is None:
            object.__setattr__(self, "default_limit", available_memory() // 2)
        if self.memory_limit is None:
            return
        if not self.backend.spills:
            raise ValueError(
                f"memory_limit={self.memory_limit} cannot be kept for {self.backend.name}: only NumPy arrays can live "
                "in files. Set memory_limit=None, or learn from NumPy arrays."
            )
        if self.memory_limit < self.workspace_bytes:
            raise ValueError(
                f"memory_limit is {self.memory_limit} bytes, but with {self.n_features} features of {self.dtype} "
                f"batches and a solve alone need {self.workspace_bytes}. Raise memory_limit or use fewer features."
            )

    @property
    def waiting_rows(self) -> int:
        """How many rows may wait before they are absorbed."""
        return max(256, min(WAITING_ROWS, WAITING_BYTES // (self.n_features * self.dtype.itemsize)))

    @property
    def workspace_bytes(self) -> int:
        """Bytes that a batch, a solve and the choice of gamma take for a while, beside what is held."""
        batch = 3 * self.waiting_rows * self.n_features * self.dtype.itemsize
        return batch + self.n_features**2 * (8 * self.dtype.itemsize + 16)

    @property
    def room(self) -> int:
        """Bytes that second moments may take in memory; beyond it they go to files."""
        if not self.backend.spills:
            return sys.maxsize
        if self.memory_limit is not None:
            return self.memory_limit - self.workspace_bytes
        assert self.default_limit is not None
        return max(self.default_limit - self.workspace_bytes, self.workspace_bytes)
