"""A piece: what some shards have taught of all classes, or of a few of them, with what it was made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from aircl.classifiers.fingerprint import check_same_kind
from aircl.classifiers.persistence import pack_labels, unpack_labels
from aircl.engine import State, Statistics, StoreError
from aircl.engine.air import ClassMoments
from aircl.engine.backend import packed_size
from aircl.engine.labels import Labels
from aircl.engine.ledger import Ledger
from aircl.engine.memory import OnDisk

# What a worker takes at a time when it merges class matrices ..
BUCKET_BYTES = 256 * 2**20
# .. of this many classes; there may be more.
EXPECTED_CLASSES = 1000
MOST_BUCKETS = 64


@dataclass(frozen=True)
class Piece:
    """Sealed statistics, labels and ledger, and the shards that are in them: a value.

    Attributes
    ----------
    state : State
        Without what is the same for all pieces.
    shards : frozenset of str
        Ids.
    kind : dict
        The fingerprint: only equal ones can be added up.
    rows : int
    """

    state: State
    shards: frozenset[str]
    kind: dict[str, Any]
    rows: int

    @property
    def labels(self) -> Labels:
        """Of the classes."""
        return self.state.labels

    @property
    def store(self) -> Statistics:
        """What was learned."""
        return self.state.statistics

    def check(self, shards: frozenset[str], kind: dict[str, Any]) -> None:
        """Refuse statistics of another kind, and shards that are here already."""
        check_same_kind(self.kind, kind)
        if twice := sorted(self.shards & shards):
            raise StoreError(
                f"cannot merge: {len(twice)} shards are on both sides and would be counted twice: {twice[0]}, .."
            )

    def merged(self, other: Piece) -> Piece:
        """Return the sum: a task that is run again finds its inputs unchanged."""
        self.check(other.shards, other.kind)
        total = with_classes(self.state, other.state)
        return replace(self, state=total, shards=self.shards | other.shards, rows=self.rows + other.rows)

    # -- by class --
    @property
    def is_divisible(self) -> bool:
        """Whether classes can be told apart."""
        return isinstance(self.store, ClassMoments)

    def split(self, n_buckets: int) -> list[Piece]:
        """Return the same in buckets; a class always is in the same one. Nothing is copied."""
        if n_buckets == 1:
            return [self]
        bucket = np.array([_bucket(label, n_buckets) for label in self.labels.seen.tolist()], dtype=np.intp)
        pieces = [self._taken(np.flatnonzero(bucket == number)) for number in range(n_buckets)]
        return [pieces[0], *(replace(piece, rows=0) for piece in pieces[1:])]  # rows are counted once

    def one_by_one(self) -> Iterator[State]:
        """Yield the classes one after the other, or all together where they cannot be told apart."""
        if not self.is_divisible:
            yield self.state
            return
        for slot in range(len(self.labels)):
            yield self._taken(np.array([slot])).state

    def _taken(self, slots: Any) -> Piece:
        ledger = self.state.ledger
        if ledger is not None:
            ledger = ledger.of_classes(slots, len(self.labels))
        state = State(self.store.taken(slots), labels=self.labels.taken(slots), ledger=ledger)
        return replace(self, state=state)

    # -- scratch files, between the processes of one machine --
    def write(self, path: Path) -> None:
        """Write to a file that lives no longer than the fit: no checksum, and no waiting for the disk."""
        header = {
            "labels": pack_labels(self.labels),
            "shards": sorted(self.shards),
            "kind": self.kind,
            "rows": self.rows,
            "ledger": None if self.state.ledger is None else self.state.ledger.header(),
        }
        arrays = {
            name: array.read() if isinstance(array, OnDisk) else np.ascontiguousarray(array)
            for name, array in self.store.arrays().items()
        }
        if self.state.ledger is not None:
            arrays |= {f"ledger.{name}": array for name, array in self.state.ledger.arrays().items()}
        save_file(arrays, path, metadata={"piece": json.dumps(header)})

    @classmethod
    def read(cls, path: Path, like: Statistics) -> Piece:
        """Read what `write` wrote of statistics like these."""
        with safe_open(path, framework="numpy") as file:
            header = json.loads(file.metadata()["piece"])
            kind = header["kind"]
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        noted = {name.removeprefix("ledger."): arrays.pop(name) for name in list(arrays) if name.startswith("ledger.")}
        labels, ledger = unpack_labels(header["labels"]), header["ledger"]
        if ledger is not None:
            ledger = Ledger.restored(ledger, noted, len(labels))
        state = State(type(like).restored(arrays, like.space), labels=labels, ledger=ledger)
        return cls(state, frozenset(header["shards"]), kind, header["rows"])


def with_classes(into: State, more: State) -> State:
    """Return a state with what was learned of other classes added, matched by label; new ones get the next slots."""
    if not len(more.labels):
        return into
    with into.statistics.space.backend.no_grad():
        return into.merged(more, check=False)


def count_buckets(store: Statistics) -> int:
    """Return how many buckets of classes to merge apart, so that each is small; it depends on the width alone."""
    if not isinstance(store, ClassMoments):
        return 1
    class_bytes = packed_size(store.space.n_features) * store.space.dtype.itemsize
    return min(MOST_BUCKETS, -(-EXPECTED_CLASSES * class_bytes // BUCKET_BYTES))


def merge_order(n: int) -> Iterator[tuple[int, int]]:
    """Yield which of n pieces takes in which: neighbours first, then neighbours of neighbours; 0 ends up with all.

    >>> list(merge_order(5))
    [(0, 1), (2, 3), (0, 2), (0, 4)]
    """
    step = 1
    while step < n:
        for left in range(0, n - step, 2 * step):
            yield left, left + step
        step *= 2


def _bucket(label: Any, n_buckets: int) -> int:
    name = label if isinstance(label, str) else str(int(label))  # 3.0 is the class that 3 is
    return crc32(name.encode()) % n_buckets
