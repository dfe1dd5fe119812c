"""Changes that are not in a checkpoint yet, and the keys of those that were made: one SQLite file.

A change is durable when `append` returns: the write-ahead log is then on the disk. Rows are in the file from then until
`erase`, which overwrites them (secure_delete) and empties the log, where they are as well. The number of a change is
that of the version it makes.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aircl.serve.changes import Change
from aircl.storage.errors import InputError

FILE = "journal.sqlite"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS service (id TEXT NOT NULL, secret BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS changes (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, fields TEXT NOT NULL, rows BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS keys (
    key TEXT PRIMARY KEY, digest BLOB NOT NULL, number INTEGER NOT NULL, answer TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS keys_by_number ON keys (number);
"""


class StorageError(OSError):
    """A change cannot be made durable: the disk is full, or fails."""


class JournalError(InputError):
    """A journal is damaged, or is that of another service."""


@dataclass(frozen=True)
class Entry:
    """A change and what is remembered of it.

    Attributes
    ----------
    number : int
    key : str or None
        By which a repeated request is known.
    digest : bytes
        Of the request: the same key with another request is a mistake.
    answer : str
        What is answered, again and again.
    change : Change or None
        None if it is durable by a checkpoint instead.
    """

    number: int
    key: str | None
    digest: bytes
    answer: str
    change: Change | None = None


class Journal:
    """The journal of one service, opened by its one writer.

    Parameters
    ----------
    folder : Path
        Of the service.
    id : str
        Of the service.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> place = TemporaryDirectory()
    >>> journal = Journal(Path(place.name), "cats")
    >>> journal.append([Entry(1, "key", b"digest", "{}", Change("forget-classes", classes=["cat"]))])
    >>> [(number, change.classes) for number, change in journal.after(0)], journal.find("key")
    ([(1, ['cat'])], (b'digest', '{}'))
    >>> journal.erase(1, keep_keys=100)
    >>> list(journal.after(0)), journal.find("key")
    ([], (b'digest', '{}'))
    >>> journal.close(); place.cleanup()
    """

    def __init__(self, folder: Path, id: str) -> None:
        path = folder / FILE
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        try:
            # Transactions begin where `_transaction` says. One thread at a time uses it, not always the same.
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "fullfsync=1", "secure_delete=ON"):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()
            # Erasing is ours to time; in between, the log goes to the file whenever it has 4000 pages.
            self._connection.execute("PRAGMA wal_autocheckpoint=4000").fetchall()
            self._connection.executescript(_SCHEMA)
            rows = self._connection.execute("SELECT id, secret FROM service").fetchall()
            if not rows:
                rows = [(id, secrets.token_bytes(32))]
                with self._transaction():
                    self._connection.execute("INSERT INTO service VALUES (?, ?)", rows[0])
        except sqlite3.DatabaseError as error:
            raise _translated(error, path) from error
        if rows[0][0] != id:
            raise JournalError(f"{path} is the journal of another service. Put the right one back.")
        self._secret: bytes = rows[0][1]

    def close(self) -> None:
        """Close the file; SQLite empties the log if it can."""
        with suppress(sqlite3.Error):
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StorageError(f"the journal cannot be written ({error}).") from error

    def digest(self, *parts: bytes) -> bytes:
        """Return a keyed hash of a request, from which nothing of it can be guessed."""
        hash = hashlib.blake2b(key=self._secret, digest_size=16)
        for part in parts:
            hash.update(len(part).to_bytes(8, "little") + part)
        return hash.digest()

    def find(self, key: str) -> tuple[bytes, str] | None:
        """Return digest and answer of a change that was made by this key."""
        row: tuple[bytes, str] | None
        row = self._connection.execute("SELECT digest, answer FROM keys WHERE key = ?", (key,)).fetchone()
        return row

    def append(self, entries: Sequence[Entry]) -> None:
        """Make changes durable, all in one transaction."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT INTO changes VALUES (?, ?, ?, ?)",
                ((entry.number, *entry.change.packed()) for entry in entries if entry.change is not None),
            )
            connection.executemany(
                "INSERT INTO keys VALUES (?, ?, ?, ?)",
                ((e.key, e.digest, e.number, e.answer) for e in entries if e.key is not None),
            )

    def after(self, number: int) -> Iterator[tuple[int, Change]]:
        """Yield the changes after a version, in their order; one at a time is in memory."""
        rows = self._connection.execute("SELECT * FROM changes WHERE number > ? ORDER BY number", (number,))
        for found, kind, fields, blob in rows:
            yield found, Change.unpacked(kind, fields, blob)

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove changes that were refused, as if they had never been asked for."""
        with self._transaction() as connection:
            for table in ("changes", "keys"):
                connection.executemany(f"DELETE FROM {table} WHERE number = ?", [(number,) for number in numbers])

    def remove_unmade(self, number: int) -> None:
        """Remove keys after a version without a change: they were noted for a checkpoint that did not happen."""
        with self._transaction() as connection:
            connection.execute(
                "DELETE FROM keys WHERE number > ? AND number NOT IN (SELECT number FROM changes)", (number,)
            )

    def erase(self, number: int, *, keep_keys: int) -> None:
        """Overwrite the changes up to a version, which is kept elsewhere now, and let old keys go."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM changes WHERE number <= ?", (number,))
            connection.execute("DELETE FROM keys WHERE number <= ?", (number - keep_keys,))
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"the journal cannot be emptied ({error}).") from error


def _translated(error: sqlite3.DatabaseError, path: Path) -> Exception:
    if error.sqlite_errorcode in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return JournalError(f"{path} is damaged ({error}). Put a copy of it back, or remove it and lose what is in it.")
    return StorageError(f"{path} cannot be opened ({error}).")
