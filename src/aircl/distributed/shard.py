"""A shard: rows that are read in one place, with an id by which they are counted once."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

# (X, y), (X, y, sample_weight) or (X, y, sample_weight, ids), as `partial_fit` takes them; and what a ledger knows rows
# by, if that is not X.
Rows = tuple[Any, ...]


@dataclass(frozen=True)
class Shard:
    """Rows to learn, read where they are learned.

    Attributes
    ----------
    id : str
        It goes into the lineage of what is learned: statistics that have an id in common are never added up. Equal ids
        mean equal rows, also in another run.
    read : callable(batch_size) -> iterable of (X, y), (X, y, sample_weight) or (X, y, sample_weight, ids)
        Called in a worker process, again if the worker is lost, and once more for the first batch; it must give the
        same batches every time. It travels by pickle, a lambda or a function of ``__main__`` too.
    name : str
        For messages.

    Examples
    --------
    Rows that are made, or fetched, where they are learned; the id makes sure that a day is learned once:

    >>> import numpy as np
    >>> from aircl import AIRClassifier
    >>> from aircl.distributed import Shard, fit_joblib
    >>> def day(number):
    ...     def read(batch_size):
    ...         y = np.arange(60) % 3
    ...         yield np.random.default_rng(number).normal(size=(60, 3)) + 3 * np.eye(3)[y], y
    ...     return Shard(f"day {number}", read)
    >>> monday, tuesday = (fit_joblib(AIRClassifier(1.0), [day(i)], workers=1) for i in (1, 2))
    >>> monday.merge(tuesday).class_count_
    array([40., 40., 40.])
    >>> monday.merge(tuesday)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.engine.space.StoreError: cannot merge: samples of this learner are in the other one already ...
    """

    id: str
    read: Callable[[int], Iterable[Rows]]
    name: str = ""

    def batches(self, batch_size: int) -> Iterator[tuple[Any, Any, Any, Any, Any]]:
        """Yield X, y, sample weights (None: all one), ids (or None) and what rows are known by (None: X), by batch."""
        for rows in self.read(batch_size):
            if not isinstance(rows, tuple) or not 2 <= len(rows) <= 5:
                raise ValueError(
                    f"{self.name or self.id} gave a {type(rows).__name__} where (X, y), (X, y, sample_weight) or "
                    "(X, y, sample_weight, ids) is expected. Yield tuples, one per batch."
                )
            yield (*rows, *[None] * (5 - len(rows)))


def as_shards(shards: Iterable[Any], fit: str | None = None) -> list[Shard]:
    """Return shards, their ids distinct.

    Parameters
    ----------
    shards : iterable of Shard, (X, y), (X, y, sample_weight), with ids, or callable() -> iterable of such tuples
        What has no id is given a new one.
    fit : str or None
        What new ids begin with; None: something that was never used before.

    Returns
    -------
    shards : list of Shard
    """
    fit = uuid.uuid4().hex if fit is None else fit
    made = [_as_shard(shard, f"{fit}-{number}", f"shard {number}") for number, shard in enumerate(shards)]
    times = Counter(shard.id for shard in made)
    if repeated := [shard.name or shard.id for shard in made if times[shard.id] > 1]:
        raise ValueError(f"{repeated[0]} is given more than once, and its rows would be counted as often.")
    return made


def _as_shard(shard: Any, id_: str, name: str) -> Shard:
    if isinstance(shard, Shard):
        return shard
    if callable(shard):
        return Shard(id_, partial(_called, shard), name)
    if isinstance(shard, Sequence) and len(shard) in (2, 3, 4) and not isinstance(shard, str):
        return Shard(id_, partial(_sliced, tuple(shard)), name)
    raise ValueError(
        "a shard is a Shard, (X, y), (X, y, sample_weight), (X, y, sample_weight, ids), or a function that yields such "
        f"batches, not a {type(shard).__name__}."
    )


def _called(function: Callable[[], Iterable[Rows]], batch_size: int) -> Iterable[Rows]:
    return function()


def _sliced(arrays: Rows, batch_size: int) -> Iterator[Rows]:
    X = arrays[0]
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if wrong := [len(other) for other in arrays[1:] if other is not None and len(other) != n]:
        raise ValueError(f"a shard has {n} rows of features, but {wrong[0]} labels, sample weights or ids.")
    for start in range(0, n, batch_size):
        part = slice(start, start + batch_size)
        yield tuple(None if array is None else _rows(array, part) for array in arrays)


def _rows(array: Any, part: slice) -> Any:
    return array.iloc[part] if hasattr(array, "iloc") else array[part]
