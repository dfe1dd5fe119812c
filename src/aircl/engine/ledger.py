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
    """Rows that are shown to a ledger, hashed with the key of each of its books.

    Attributes
    ----------
    row : tuple of arrays of shape (n,)
        The hash of the id, or of content, label and weight.
    content : tuple of arrays of shape (n,)
        Of content, label and weight; the same as `row` where there are no ids.
    """

    row: tuple[Array, ...]
    content: tuple[Array, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.row[0])

    def taken(self, chosen: Array) -> Shown:
        """Return some of the rows."""
        return Shown(tuple(row[chosen] for row in self.row), tuple(content[chosen] for content in self.content))


@dataclass(frozen=True, eq=False)
class Rows:
    """Learned rows, sorted by their hash.

    Attributes
    ----------
    row : array of shape (n,)
    slot : array of shape (n,)
        Of the class.
    content : array of shape (n,) or None
        None where the row is known by its content.
    """

    row: Array
    slot: Array
    content: Array | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.row)

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return self.row.nbytes + self.slot.nbytes + (0 if self.content is None else self.content.nbytes)

    def taken(self, index: Array) -> Rows:
        """Return some of the rows, in this order."""
        return Rows(self.row[index], self.slot[index], None if self.content is None else self.content[index])

    def sorted(self) -> Rows:
        """Return the same, sorted."""
        return self.taken(np.argsort(self.row, kind="stable"))

    def joined(self, other: Rows) -> Rows:
        """Return both, sorted: the stable sort of NumPy merges what is sorted in parts."""
        content = None
        if self.content is not None and other.content is not None:
            content = np.concatenate([self.content, other.content])
        row, slot = np.concatenate([self.row, other.row]), np.concatenate([self.slot, other.slot])
        return Rows(row, slot, content).sorted()

    def span(self, row: Array) -> tuple[Array, Array]:
        """Return where the rows of each hash begin, and how many there are."""
        order = np.argsort(row)  # neighbours are looked for one after the other, in memory that is at hand
        left, right = np.empty(len(row), np.intp), np.empty(len(row), np.intp)
        left[order] = np.searchsorted(self.row, row[order], "left")
        right[order] = np.searchsorted(self.row, row[order], "right")
        return left, right - left


@dataclass(frozen=True, eq=False)
class Book:
    """Rows of one key.

    Attributes
    ----------
    key_id : str
    key : bytes or None
        None if it is kept elsewhere, and has to be given.
    runs : tuple of Rows
        Each longer than all after it.
    """

    key_id: str
    key: bytes | None
    runs: tuple[Rows, ...] = ()

    def key_from(self, given: Collection[bytes]) -> bytes:
        """Return the key, which is here or was given."""
        keys = {id_of_key(key): key for key in given} | ({} if self.key is None else {self.key_id: self.key})
        if self.key_id not in keys:
            what = f"the key given is {' and '.join(keys)}" if keys else "no key was given"
            raise LedgerError(
                f"the ledger was made with the key {self.key_id}, which is not in the model, and {what}. Give the "
                "file it is in: ledger=FILE, or --ledger-key FILE. After a merge of two keys, both are needed: "
                "ledger=[FILE, FILE], or --ledger-key twice."
            )
        return keys[self.key_id]

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.runs))

    def count(self, row: Array) -> Array:
        """Return how often rows were learned, shape (n,)."""
        return sum((run.span(row)[1] for run in self.runs), np.zeros(len(row), np.intp))

    def is_same(self, row: Array, content: Array) -> Array:
        """Tell of rows that were learned whether their content was this, shape (n,)."""
        same = np.zeros(len(row), bool)
        for run in self.runs:
            left, n = run.span(row)
            here = n > 0
            same[here] = True if run.content is None else run.content[left[here]] == content[here]
        return same

    def plus(self, rows: Rows) -> Book:
        """Return the book with more rows."""
        runs = [*self.runs, rows.sorted()] if len(rows) else list(self.runs)
        while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
            last = runs.pop()
            runs[-1] = runs[-1].joined(last)
        return replace(self, runs=tuple(runs))

    def minus(self, row: Array, nth: Array) -> Book:
        """Return the book without rows: of those that are equal, the nth, which is there."""
        runs = []
        for run in self.runs:
            left, n = run.span(row)
            runs.append(run.taken(np.delete(np.arange(len(run)), (left + nth)[(nth >= 0) & (nth < n)])))
            nth = nth - n
        return replace(self, runs=tuple(run for run in runs if len(run)))

    def joined(self) -> Rows | None:
        """Return all rows in one, which does not depend on the order they came in; None if there is none."""
        rows: Rows | None = None
        for run in reversed(self.runs):
            rows = run if rows is None else run.joined(rows)
        return rows

    def common(self, other: Book) -> int:
        """Return how many rows are in the other book too."""
        return int(sum((other.count(run.row) > 0).sum() for run in self.runs))

    def with_slots(self, new: Array) -> Book:
        """Return the book after the classes have got other slots; -1: their rows are gone."""
        runs = [replace(run, slot=new[run.slot].astype(np.int32)) for run in self.runs]
        kept = [run if (run.slot >= 0).all() else run.taken(np.flatnonzero(run.slot >= 0)) for run in runs]
        return replace(self, runs=tuple(run for run in kept if len(run)))


@dataclass(frozen=True, eq=False)
class Ledger:
    """Which rows were learned.

    Attributes
    ----------
    by_id : bool
        Whether rows are known by their ids.
    books : tuple of Book
        One, unless ledgers of different keys were merged; the first is written into.

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
    books: tuple[Book, ...]

    @classmethod
    def begun(cls, *, by_id: bool, key: bytes | None = None) -> Ledger:
        """Return a ledger without rows; a key that is given is not kept, else one is drawn and kept."""
        if key is not None:
            return cls(by_id, (Book(id_of_key(key), None),))
        drawn = secrets.token_bytes(32)
        return cls(by_id, (Book(id_of_key(drawn), drawn),))

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.books))

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return sum(run.nbytes for book in self.books for run in book.runs)

    @property
    def keys(self) -> list[bytes]:
        """Those of its keys that are in it."""
        return [book.key for book in self.books if book.key is not None]

    # -- questions --
    def check_keys(self, given: Collection[bytes]) -> None:
        """Refuse to go on without a key that is neither here nor given."""
        for book in self.books:
            book.key_from(given)

    def shown(
        self, contents: Iterable[Any], ids: Iterable[bytes] | None = None, given: Collection[bytes] = ()
    ) -> Shown:
        """Hash rows: the bytes of their contents, and of their ids where rows are known by ids.

        Parameters
        ----------
        contents : iterable of bytes
        ids : iterable of bytes or None
        given : collection of bytes
            Keys that are not in the ledger.

        Returns
        -------
        shown : Shown
        """
        keys = [book.key_from(given) for book in self.books]
        if len(keys) > 1:
            contents, ids = list(contents), None if ids is None else list(ids)
        content = tuple(hashes(contents, key, b"aircl content") for key in keys)
        return Shown(content if ids is None else tuple(hashes(ids, key, b"aircl id") for key in keys), content)

    def count(self, shown: Shown) -> Array:
        """Return how often rows were learned, shape (n,)."""
        counts = (book.count(row) for book, row in zip(self.books, shown.row, strict=True))
        return sum(counts, np.zeros(len(shown), np.intp))

    def is_same(self, shown: Shown) -> Array:
        """Tell whether rows were learned as they are shown: with this content, label and weight; shape (n,)."""
        parts = zip(self.books, shown.row, shown.content, strict=True)
        return np.any([book.is_same(row, content) for book, row, content in parts], axis=0)  # type: ignore[no-any-return]

    def count_torn(self) -> int:
        """Return how many ids stand for rows of different contents."""
        torn = 0
        for rows in (book.joined() for book in self.books):
            if rows is not None and rows.content is not None:
                differs = (rows.row[1:] == rows.row[:-1]) & (rows.content[1:] != rows.content[:-1])
                torn += len(np.unique(rows.row[1:][differs]))
        return torn

    def common(self, other: Ledger) -> tuple[int, bool]:
        """Return how many rows another ledger has in common with this, and whether that could be told of all."""
        pairs = [(book, another) for book in self.books for another in other.books if len(book) and len(another)]
        found = sum(book.common(another) for book, another in pairs if book.key_id == another.key_id)
        return found, all(book.key_id == another.key_id for book, another in pairs)

    # -- change --
    def plus(self, shown: Shown, slots: Array) -> Ledger:
        """Return the ledger after rows of classes in these slots were learned."""
        content = shown.content[0] if self.by_id else None
        first = self.books[0].plus(Rows(shown.row[0], slots.astype(np.int32), content))
        return replace(self, books=(first, *self.books[1:]))

    def minus(self, shown: Shown) -> Ledger:
        """Return the ledger without rows, each of which is in it as often as it is shown."""
        nth, books = occurrence(shown.row[0]), []
        for book, row in zip(self.books, shown.row, strict=True):
            count = book.count(row)
            books.append(book.minus(row[(nth >= 0) & (nth < count)], nth[(nth >= 0) & (nth < count)]))
            nth = nth - count
        return replace(self, books=tuple(books))

    def merged(self, other: Ledger, slots: Array) -> Ledger:
        """Return the ledger with the rows of another, whose classes have these slots here."""
        other = other.with_slots(slots)
        if not len(self):
            return other
        books = {book.key_id: book for book in self.books}
        for book in other.books:
            rows = book.joined()
            if rows is not None:
                books[book.key_id] = books[book.key_id].plus(rows) if book.key_id in books else book
        return replace(self, books=tuple(books.values()))

    def emptied(self) -> Ledger:
        """Return a ledger of the same keys without rows."""
        return replace(self, books=tuple(replace(book, runs=()) for book in self.books))

    def with_keys(self, keys: Collection[bytes]) -> Ledger:
        """Return the ledger with those of its keys that are given, and no other, in it."""
        named = {id_of_key(key): key for key in keys}
        return replace(self, books=tuple(replace(book, key=named.get(book.key_id)) for book in self.books))

    def with_slots(self, new: Array) -> Ledger:
        """Return the ledger after the classes have got other slots; -1: their rows are gone."""
        return replace(self, books=tuple(book.with_slots(new) for book in self.books))

    def without_slots(self, gone: list[int], n_classes: int) -> Ledger:
        """Return the ledger without the rows of some classes; the later slots move up."""
        kept = np.ones(n_classes, bool)
        kept[gone] = False
        return self.with_slots(np.where(kept, np.cumsum(kept) - 1, -1))

    # -- files --
    def arrays(self) -> dict[str, Array]:
        """Return the rows as named arrays, which do not depend on the order they came in."""
        arrays: dict[str, Array] = {}
        for number, book in enumerate(self.books):
            if (rows := book.joined()) is not None:
                arrays |= {f"{number}.row": _integers(rows.row), f"{number}.slot": rows.slot}
                arrays |= {} if rows.content is None else {f"{number}.content": _integers(rows.content)}
        return arrays

    def header(self) -> dict[str, Any]:
        """Return the rest, as JSON can hold it."""
        keys = [{"id": book.key_id, "key": None if book.key is None else book.key.hex()} for book in self.books]
        return {"by_id": self.by_id, "keys": keys}

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, Array], n_classes: int) -> Ledger:
        """Return what `header` and `arrays` were made of; refuse what does not fit."""
        books = []
        for number, noted in enumerate(header["keys"]):
            key = None if noted["key"] is None else bytes.fromhex(noted["key"])
            if key is not None and (not 16 <= len(key) <= 64 or id_of_key(key) != noted["id"]):
                raise ValueError("the key of the ledger is not the one that its id is of")
            book = Book(noted["id"], key)
            if f"{number}.row" in arrays:
                content = _from_integers(arrays[f"{number}.content"]) if header["by_id"] else None
                rows = Rows(_from_integers(arrays[f"{number}.row"]), arrays[f"{number}.slot"], content)
                _check(rows, n_classes)
                book = replace(book, runs=(rows,))
            books.append(book)
        if not books:
            raise ValueError("the ledger has no key")
        return cls(header["by_id"], tuple(books))


def occurrence(row: Array) -> Array:
    """Return how many equal hashes come before each one, shape (n,).

    >>> occurrence(np.array([b"a", b"b", b"a", b"a"])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(row, kind="stable")
    is_first = np.ones(len(row), bool)
    is_first[1:] = row[order][1:] != row[order][:-1]
    place = np.arange(len(row))
    nth = np.empty(len(row), np.intp)
    nth[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return nth


def _integers(row: Array) -> Array:
    """Return hashes as pairs of 64-bit integers, which files of arrays have."""
    return np.ascontiguousarray(row).view("<i8").reshape(-1, 2)


def _from_integers(pairs: Array) -> Array:
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype != np.int64:
        raise ValueError(f"the ledger has hashes of shape {pairs.shape} and type {pairs.dtype}")
    return np.ascontiguousarray(pairs).astype("<i8", copy=False).view(HASH).reshape(-1)


def _check(rows: Rows, n_classes: int) -> None:
    if rows.slot.shape != rows.row.shape or rows.slot.dtype != np.int32:
        raise ValueError(f"the ledger has {len(rows.row)} rows but classes of shape {rows.slot.shape}")
    if len(rows) and not 0 <= rows.slot.min() <= rows.slot.max() < n_classes:
        raise ValueError(f"the ledger has rows of a class that is not among the {n_classes}")
    if rows.content is not None and rows.content.shape != rows.row.shape:
        raise ValueError(f"the ledger has {len(rows.row)} rows but {len(rows.content)} contents")
    if np.any(rows.row[1:] < rows.row[:-1]):
        raise ValueError("the rows of the ledger are not sorted")
