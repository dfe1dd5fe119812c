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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aircl.serve import kept
from aircl.serve.changes import Change, with_text, without_text
from aircl.serve.errors import StorageError
from aircl.serve.kept import Cipher, Kept
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
        None for a merge and a rollback.
    by_checkpoint : bool
        Whether it is durable by a checkpoint instead: its rows are not in the journal.
    version : int or None
        What is rolled back to.
    """

    number: int
    key: str | None
    digest: bytes
    answer: str
    change: Change | None = None
    by_checkpoint: bool = False
    version: int | None = None


class Journal:
    """The journal of one service, opened by its one writer.

    Parameters
    ----------
    folder : Path
        Of the service.
    id : str
        Of the service.
    cipher : Cipher or None
        If rows are kept: everything of rows is encrypted then, in the journal as well.
    drop : bool
        Without a cipher: whether rows that were kept are removed. Otherwise they are a reason to refuse.

    Attributes
    ----------
    kept : Kept or None

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

    def __init__(self, folder: Path, id: str, cipher: Cipher | None = None, *, drop: bool = False) -> None:
        path, self._cipher = folder / FILE, cipher
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
        self.kept: Kept | None = None
        try:
            if cipher is None:
                kept.drop(self._connection, wanted=drop)
            else:
                self.kept = Kept(self._connection, cipher)
        except sqlite3.DatabaseError as error:
            raise _translated(error, path) from error

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

    def append(self, entries: Sequence[Entry], *, undone: int | None = None) -> None:
        """Make changes durable, all in one transaction, in which what the change `undone` brought is erased."""
        with self._transaction() as connection:
            if undone is not None:
                left = (*Change("undone").packed(), undone)
                query = "UPDATE changes SET kind = ?, fields = ?, rows = ? WHERE number = ?"
                is_here = connection.execute(query, left).rowcount > 0
                if self.kept is not None and is_here:
                    self.kept.undo([undone])
                elif self.kept is not None:  # a version has it
                    self.kept.roll_back(entries[0].number, undone - 1)
            connection.executemany(
                "INSERT INTO changes VALUES (?, ?, ?, ?)",
                (
                    (entry.number, *self._packed(entry.change))
                    for entry in entries
                    if entry.change is not None and not entry.by_checkpoint
                ),
            )
            connection.executemany(
                "INSERT INTO keys VALUES (?, ?, ?, ?)",
                ((e.key, e.digest, e.number, e.answer) for e in entries if e.key is not None),
            )
            for entry in entries:
                if self.kept is not None and entry.change is not None:
                    self.kept.follow(entry.number, entry.change)
                elif self.kept is not None and entry.version is not None:
                    self.kept.roll_back(entry.number, entry.version)

    def _packed(self, change: Change) -> tuple[str, str, bytes]:
        kind, fields, content = change.packed()
        return (
            (kind, fields, content)
            if self._cipher is None
            else (kind, "", self._cipher.seal(with_text(fields, content)))
        )

    def _unpacked(self, kind: str, fields: str, content: bytes) -> Change:
        if not fields:
            if self._cipher is None:
                raise JournalError("the journal is encrypted: give the key, --keep-rows.")
            fields, content = without_text(self._cipher.open(content))
        return Change.unpacked(kind, fields, content)

    def after(self, number: int) -> Iterator[tuple[int, Change]]:
        """Yield the changes after a version, in their order; one at a time is in memory."""
        rows = self._connection.execute("SELECT * FROM changes WHERE number > ? ORDER BY number", (number,))
        for found, kind, fields, blob in rows:
            yield found, self._unpacked(kind, fields, blob)

    def change_answer(self, number: int, answer: str) -> None:
        """Have a change answered otherwise when it is asked for again."""
        with self._transaction() as connection:
            connection.execute("UPDATE keys SET answer = ? WHERE number = ?", (answer, number))

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove changes that were refused, as if they had never been asked for."""
        with self._transaction() as connection:
            for table in ("changes", "keys"):
                connection.executemany(f"DELETE FROM {table} WHERE number = ?", [(number,) for number in numbers])
            if self.kept is not None:
                self.kept.undo(numbers)

    def remove_unmade(self, number: int) -> None:
        """Remove keys after a version without a change: they were noted for a checkpoint that did not happen."""
        with self._transaction() as connection:
            if self.kept is not None:
                made = connection.execute("SELECT number FROM changes").fetchall()
                self.kept.undo(set(self.kept.numbers_after(number)).difference(row[0] for row in made))
            connection.execute(
                "DELETE FROM keys WHERE number > ? AND number NOT IN (SELECT number FROM changes)", (number,)
            )

    def erase(self, number: int, *, keep_keys: int, oldest: int = 0) -> None:
        """Overwrite the changes up to a version, which is kept elsewhere now, and let old keys go.

        Rows that are kept go too, if no version from `oldest` on has them.
        """
        with self._transaction() as connection:
            if self.kept is not None:
                self.kept.prune(oldest)
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
