"""The ledger: which rows were learned, as hashes under a key.

A row is known by its id, or by its content, its label and its weight. What is held of it are 128 bits of BLAKE2b,
which nobody can make without the key, and the slot of its class. By id, the hash of the content is held too: it tells
whether the row that is shown is the row that was learned.

Like statistics, a ledger is a value: what changes it returns another one. Equal rows stand as often as they were
learned, side by side in sorted arrays. New rows are a short array of their own, and arrays of similar length are
joined: n rows cost O(n log n) in all, and looking up k of them O(k log^2 n).
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from aircl.engine.backend import Array

# 16 bytes: NumPy sorts and searches them as fixed-width strings, whose zeros at the end do no harm at equal width.
HASH = np.dtype("S16")


class LedgerError(ValueError):
    """Rows were learned already, were never learned, or cannot be checked.

    Examples
    --------
    >>> from aircl import AIRClassifier
    >>> clf = AIRClassifier(0.1, ledger=True).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1], ids=["ann", "bob"])
    >>> clf.partial_fit([[1.0, 0.0], [3.0, 0.0]], [0, 0], ids=["ann", "eve"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.engine.ledger.LedgerError: 1 of 2 rows was learned already: ids 'ann'. on_duplicate="skip" leaves out ...
    """


class LedgerWarning(UserWarning):
    """Two ledgers have no key in common, so nobody can tell whether they have rows in common.

    Examples
    --------
    >>> import warnings
    >>> from aircl import AIRClassifier
    >>> from aircl.engine.ledger import LedgerWarning
    >>> one, two = (AIRClassifier(0.1, ledger=True).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1]) for _ in range(2))
    >>> with warnings.catch_warnings(record=True, action="always", category=LedgerWarning) as caught:
    ...     merged = one.merge(two)
    >>> print(str(caught[0].message)[:59])
    the ledgers have different keys: nothing tells whether they
    """


def id_of_key(key: bytes) -> str:
    """Return a name of a key, from which it cannot be got back."""
    return blake2b(b"", digest_size=8, key=key, person=b"aircl key").hexdigest()


def hashes(values: Iterable[Any], key: bytes, purpose: bytes) -> Array:
    """Return the hash of each of some bytes, under a key and for a purpose, shape (n,)."""
    digests = [blake2b(value, digest_size=16, key=key, person=purpose).digest() for value in values]
    return np.frombuffer(b"".join(digests), dtype=HASH)


@dataclass(frozen=True, eq=False)
class Shown:
    """Rows that are shown to a ledger, hashed with each of its keys: arrays of shape (n,), one per key."""

    row: tuple[Array, ...]  # of the id, or of content, label and weight
    content: tuple[Array, ...]  # of content, label and weight; the same as `row` where there are no ids

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.row[0])

    def taken(self, chosen: Array) -> Shown:
        """Return some of the rows."""
        return Shown(tuple(row[chosen] for row in self.row), tuple(content[chosen] for content in self.content))


@dataclass(frozen=True, eq=False)
class Key:
    """A key by its name, and the key itself; None if that is kept elsewhere, and has to be given."""

    id: str
    secret: bytes | None

    def among(self, given: Collection[bytes]) -> bytes:
        """Return the key, which is here or was given."""
        keys = {id_of_key(key): key for key in given} | ({} if self.secret is None else {self.id: self.secret})
        if self.id not in keys:
            what = f"the key given is {' and '.join(keys)}" if keys else "no key was given"
            raise LedgerError(
                f"the ledger was made with the key {self.id}, which is not in the model, and {what}. Give the "
                "file it is in: ledger=FILE, or --ledger-key FILE. After a merge of two keys, both are needed: "
                "ledger=[FILE, FILE], or --ledger-key twice."
            )
        return keys[self.id]


@dataclass(frozen=True, eq=False)
class Run:
    """Learned rows, sorted by their hash under one key."""

    number: int  # of the key, among those of the ledger
    row: Array  # (n,)
    slot: Array  # (n,) of the class
    content: Array | None = None  # (n,) None where the row is known by its content

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.row)

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return self.row.nbytes + self.slot.nbytes + (0 if self.content is None else self.content.nbytes)

    def taken(self, index: Array) -> Run:
        """Return some of the rows, in this order."""
        return Run(
            self.number, self.row[index], self.slot[index], None if self.content is None else self.content[index]
        )

    def sorted(self) -> Run:
        """Return the same, sorted."""
        return self.taken(np.argsort(self.row, kind="stable"))

    def joined(self, other: Run) -> Run:
        """Return both, sorted: the stable sort of NumPy merges what is sorted in parts."""
        content = None
        if self.content is not None and other.content is not None:
            content = np.concatenate([self.content, other.content])
        row, slot = np.concatenate([self.row, other.row]), np.concatenate([self.slot, other.slot])
        return Run(self.number, row, slot, content).sorted()

    def span(self, row: Array) -> tuple[Array, Array]:
        """Return where the rows of each hash begin, and how many there are."""
        order = np.argsort(row)  # neighbours are looked for one after the other, in memory that is at hand
        left, right = np.empty(len(row), np.intp), np.empty(len(row), np.intp)
        left[order] = np.searchsorted(self.row, row[order], "left")
        right[order] = np.searchsorted(self.row, row[order], "right")
        return left, right - left


@dataclass(frozen=True, eq=False)
class Ledger:
    """Which rows were learned.

    Attributes
    ----------
    by_id : bool
        Whether rows are known by their ids.
    keys : tuple of Key
        One, unless ledgers of different keys were merged; new rows are hashed with the first.
    runs : tuple of Run
        The rows, key by key; of one key, each run is more than twice as long as the next.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.engine.ledger import Ledger
    >>> ledger = Ledger.begun(by_id=False)
    >>> shown = ledger.shown([b"first row", b"second row", b"second row"])
    >>> ledger = ledger.plus(shown, np.array([0, 1, 1]))
    >>> len(ledger), ledger.count(ledger.shown([b"second row", b"another row"])).tolist()
    (3, [2, 0])
    """

    by_id: bool
    keys: tuple[Key, ...]
    runs: tuple[Run, ...] = ()

    @classmethod
    def begun(cls, *, by_id: bool, key: bytes | None = None) -> Ledger:
        """Return a ledger without rows; a key that is given is not kept, else one is drawn and kept."""
        if key is not None:
            return cls(by_id, (Key(id_of_key(key), None),))
        drawn = secrets.token_bytes(32)
        return cls(by_id, (Key(id_of_key(drawn), drawn),))

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.runs))

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return sum(run.nbytes for run in self.runs)

    @property
    def own_keys(self) -> list[bytes]:
        """Those of its keys that are in it."""
        return [key.secret for key in self.keys if key.secret is not None]

    # -- questions --
    def check_keys(self, given: Collection[bytes]) -> None:
        """Refuse to go on without a key that is neither here nor given."""
        for key in self.keys:
            key.among(given)

    def shown(
        self, contents: Iterable[Any], ids: Iterable[bytes] | None = None, given: Collection[bytes] = ()
    ) -> Shown:
        """Hash the bytes of rows' contents, and of their ids where rows are known by these.

        `given` are keys that are not in the ledger.
        """
        keys = [key.among(given) for key in self.keys]
        if len(keys) > 1:
            contents, ids = list(contents), None if ids is None else list(ids)
        content = tuple(hashes(contents, key, b"aircl content") for key in keys)
        return Shown(content if ids is None else tuple(hashes(ids, key, b"aircl id") for key in keys), content)

    def count(self, shown: Shown) -> Array:
        """Return how often rows were learned, shape (n,)."""
        return sum((run.span(shown.row[run.number])[1] for run in self.runs), np.zeros(len(shown), np.intp))

    def is_same(self, shown: Shown) -> Array:
        """Tell whether rows were learned as they are shown: with this content, label and weight; shape (n,)."""
        same = np.zeros(len(shown), bool)
        for run in self.runs:
            left, n = run.span(shown.row[run.number])
            here = n > 0
            same[here] |= True if run.content is None else run.content[left[here]] == shown.content[run.number][here]
        return same

    def count_torn(self) -> int:
        """Return how many ids stand for rows of different contents."""
        torn = 0
        for rows in self._joined():
            if rows.content is not None:
                differs = (rows.row[1:] == rows.row[:-1]) & (rows.content[1:] != rows.content[:-1])
                torn += len(np.unique(rows.row[1:][differs]))
        return torn

    def common(self, other: Ledger) -> tuple[int, bool]:
        """Return how many rows another ledger has in common with this, and whether that could be told of all."""
        found, complete = 0, True
        for rows in other._joined():
            for run in self.runs:
                if self.keys[run.number].id == other.keys[rows.number].id:
                    found += int((rows.span(run.row)[1] > 0).sum())
                else:
                    complete = False
        return found, complete

    # -- change --
    def plus(self, shown: Shown, slots: Array) -> Ledger:
        """Return the ledger after rows of classes in these slots were learned."""
        return self._with(Run(0, shown.row[0], slots.astype(np.int32), shown.content[0] if self.by_id else None))

    def _with(self, rows: Run) -> Ledger:
        """Return the ledger with more rows of one of its keys; runs of similar length are joined."""
        if not len(rows):
            return self
        others = [run for run in self.runs if run.number != rows.number]
        runs = [*(run for run in self.runs if run.number == rows.number), rows.sorted()]
        while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
            last = runs.pop()
            runs[-1] = runs[-1].joined(last)
        return self._of([*runs, *others])

    def _of(self, runs: Iterable[Run]) -> Ledger:
        """Return the ledger with these runs, key by key, without empty ones."""
        return replace(self, runs=tuple(sorted((run for run in runs if len(run)), key=lambda run: run.number)))

    def minus(self, shown: Shown) -> Ledger:
        """Return the ledger without rows, each of which is in it as often as it is shown."""
        nth, runs = occurrence(shown.row[0]), []  # of rows that are equal, the nth is taken out
        for run in self.runs:
            left, n = run.span(shown.row[run.number])
            runs.append(run.taken(np.delete(np.arange(len(run)), (left + nth)[(nth >= 0) & (nth < n)])))
            nth = nth - n
        return self._of(runs)

    def merged(self, other: Ledger, slots: Array) -> Ledger:
        """Return the ledger with the rows of another, whose classes have these slots here."""
        other = other.with_slots(slots)
        if not len(self):
            return other
        merged = self
        for rows in other._joined():
            key, ids = other.keys[rows.number], [known.id for known in merged.keys]
            if key.id not in ids:
                merged, ids = replace(merged, keys=(*merged.keys, key)), [*ids, key.id]
            merged = merged._with(replace(rows, number=ids.index(key.id)))
        return merged

    def _joined(self) -> list[Run]:
        """Return the rows of each key that has some in one run, which does not depend on the order they came in."""
        joined: dict[int, Run] = {}
        for run in reversed(self.runs):
            joined[run.number] = run.joined(joined[run.number]) if run.number in joined else run
        return [joined[number] for number in sorted(joined)]

    def emptied(self) -> Ledger:
        """Return a ledger of the same keys without rows."""
        return replace(self, runs=())

    def with_keys(self, given: Collection[bytes]) -> Ledger:
        """Return the ledger with those of its keys that are given, and no other, in it."""
        named = {id_of_key(key): key for key in given}
        return replace(self, keys=tuple(Key(key.id, named.get(key.id)) for key in self.keys))

    def with_slots(self, new: Array) -> Ledger:
        """Return the ledger after the classes have got other slots; -1: their rows are gone."""
        runs = [replace(run, slot=new[run.slot].astype(np.int32)) for run in self.runs]
        return self._of(run.taken(np.flatnonzero(run.slot >= 0)) if np.any(run.slot < 0) else run for run in runs)

    def of_classes(self, slots: Array, n_classes: int) -> Ledger:
        """Return the ledger of the rows of some of the classes, whose slots are numbered anew in this order."""
        new = np.full(n_classes, -1)
        new[slots] = np.arange(len(slots))
        return self.with_slots(new)

    # -- files --
    def arrays(self) -> dict[str, Array]:
        """Return the rows as named arrays, which do not depend on the order they came in."""
        arrays: dict[str, Array] = {}
        for rows in self._joined():
            arrays |= {f"{rows.number}.row": _integers(rows.row), f"{rows.number}.slot": rows.slot}
            arrays |= {} if rows.content is None else {f"{rows.number}.content": _integers(rows.content)}
        return arrays

    def header(self) -> dict[str, Any]:
        """Return the rest, as JSON can hold it."""
        keys = [{"id": key.id, "key": None if key.secret is None else key.secret.hex()} for key in self.keys]
        return {"by_id": self.by_id, "keys": keys}

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, Array], n_classes: int) -> Ledger:
        """Return what `header` and `arrays` were made of; refuse what does not fit."""
        keys, runs = [], []
        for number, noted in enumerate(header["keys"]):
            key = None if noted["key"] is None else bytes.fromhex(noted["key"])
            if key is not None and (not 16 <= len(key) <= 64 or id_of_key(key) != noted["id"]):
                raise ValueError("the key of the ledger is not the one that its id is of")
            keys.append(Key(noted["id"], key))
            if f"{number}.row" in arrays:
                content = _from_integers(arrays[f"{number}.content"]) if header["by_id"] else None
                rows = Run(number, _from_integers(arrays[f"{number}.row"]), arrays[f"{number}.slot"], content)
                _check(rows, n_classes)
                runs.append(rows)
        if not keys:
            raise ValueError("the ledger has no key")
        return cls(header["by_id"], tuple(keys), tuple(runs))


def occurrence(row: Array) -> Array:
    """Return how many equal hashes come before each one, shape (n,).

    >>> occurrence(np.array([b"a", b"b", b"a", b"a"])).tolist()
    [0, 0, 1, 2]
    """
    order, nth = np.argsort(row, kind="stable"), np.empty(len(row), np.intp)
    ordered = row[order]
    nth[order] = np.arange(len(row)) - np.searchsorted(ordered, ordered)
    return nth


def _integers(row: Array) -> Array:
    """Return hashes as pairs of 64-bit integers, which files of arrays have."""
    return np.ascontiguousarray(row).view("<i8").reshape(-1, 2)


def _from_integers(pairs: Array) -> Array:
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype != np.int64:
        raise ValueError(f"the ledger has hashes of shape {pairs.shape} and type {pairs.dtype}")
    return np.ascontiguousarray(pairs).astype("<i8", copy=False).view(HASH).reshape(-1)


def _check(rows: Run, n_classes: int) -> None:
    if rows.slot.shape != rows.row.shape or rows.slot.dtype != np.int32:
        raise ValueError(f"the ledger has {len(rows.row)} rows but classes of shape {rows.slot.shape}")
    if len(rows) and not 0 <= rows.slot.min() <= rows.slot.max() < n_classes:
        raise ValueError(f"the ledger has rows of a class that is not among the {n_classes}")
    if rows.content is not None and rows.content.shape != rows.row.shape:
        raise ValueError(f"the ledger has {len(rows.row)} rows but {len(rows.content)} contents")
    if np.any(rows.row[1:] < rows.row[:-1]):
        raise ValueError("the rows of the ledger are not sorted")
