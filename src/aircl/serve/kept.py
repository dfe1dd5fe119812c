"""Rows that are kept, encrypted, so that they can be corrected or forgotten by their ids alone.

A row is kept from the change that has learned it until no version has it any more: `added` and `removed` are numbers of
changes, and version v has the rows with added <= v < removed. So a rollback finds the rows of its version again. The
table is in the file of the journal, and written by the same transactions: a row is kept exactly if it is learned.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from aircl.serve.changes import Change, Rows
from aircl.storage.errors import InputError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS kept_by (proof BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS kept (
    id BLOB NOT NULL, added INTEGER NOT NULL, removed INTEGER, label BLOB NOT NULL, row BLOB NOT NULL,
    PRIMARY KEY (id, added)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kept_added ON kept (added);
CREATE INDEX IF NOT EXISTS kept_removed ON kept (removed);
CREATE INDEX IF NOT EXISTS kept_label ON kept (label);
"""

# A key of fewer bytes could be guessed; a file of more, or without an end such as /dev/urandom, is none.
MIN_KEY_BYTES, MAX_KEY_BYTES = 32, 2**16


class Cipher:
    """Encrypts rows (AES-256-GCM), and hides ids and labels behind keyed hashes.

    Parameters
    ----------
    secret : bytes

    Examples
    --------
    >>> cipher = Cipher(bytes(32))
    >>> sealed = cipher.seal(b"a row")
    >>> b"a row" in sealed, cipher.open(sealed), cipher.name("17") == cipher.name(17)
    (False, b'a row', True)
    """

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._aead = AESGCM(blake2b(secret, digest_size=32, person=b"aircl rows").digest())
        self._names = blake2b(secret, digest_size=32, person=b"aircl names").digest()

    @classmethod
    def of_file(cls, path: Path) -> Cipher:
        """Read the key from a file."""
        try:
            with path.open("rb") as file:
                secret = file.read(MAX_KEY_BYTES + 1)
        except OSError as error:
            raise InputError(
                f"the key {path} cannot be read ({error.strerror}). Make one: head -c 32 /dev/urandom > {path}"
            ) from None
        if not MIN_KEY_BYTES <= len(secret) <= MAX_KEY_BYTES:
            has = f"{len(secret)} bytes" if len(secret) < MIN_KEY_BYTES else "more"
            raise InputError(f"{path} has {has}. A key has {MIN_KEY_BYTES} to {MAX_KEY_BYTES} random bytes.")
        return cls(secret)

    def seal(self, content: bytes) -> bytes:
        """Encrypt."""
        nonce = os.urandom(12)
        return nonce + self._aead.encrypt(nonce, content, None)

    def open(self, sealed: bytes) -> bytes:
        """Decrypt what was sealed by this key, and refuse anything else."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._aead.decrypt(sealed[:12], sealed[12:], None)
        except (InvalidTag, ValueError):
            raise InputError(
                "rows are kept here by another key, or damaged. Give the right one: --keep-rows."
            ) from None

    def name(self, value: Any) -> bytes:
        """Return what stands for an id or a label."""
        return blake2b(str(value).encode("utf-8", "surrogatepass"), key=self._names, digest_size=16).digest()


class Kept:
    """The table of rows that are kept.

    Parameters
    ----------
    connection : sqlite3.Connection
        Of the journal, whose transactions these are.
    cipher : Cipher
    """

    def __init__(self, connection: sqlite3.Connection, cipher: Cipher) -> None:
        self._connection, self._cipher = connection, cipher
        connection.executescript(_SCHEMA)
        found = connection.execute("SELECT proof FROM kept_by").fetchone()
        if found is None:
            connection.execute("INSERT INTO kept_by VALUES (?)", (cipher.seal(b"aircl"),))
        else:
            cipher.open(found[0])

    def follow(self, number: int, change: Change) -> None:
        """Keep the rows that a change learns, and let go those that it forgets; it may still be refused."""
        gone = change.old if change.kind == "correct" else change.rows if change.kind == "forget" else None
        if gone is not None and gone.ids is not None:
            self._remove(number, "id", gone.ids)
        if change.classes is not None:
            self._remove(number, "label", change.classes)
        rows = change.rows
        if change.kind in ("learn", "correct") and rows is not None and rows.ids is not None:
            name, seal = self._cipher.name, self._cipher.seal
            self._connection.executemany(  # a row that is there stays: the ledger skips or refuses the other one
                "INSERT OR IGNORE INTO kept SELECT ?1, ?2, NULL, ?3, ?4 "
                "WHERE NOT EXISTS (SELECT 1 FROM kept WHERE id = ?1 AND removed IS NULL)",
                (
                    (name(id), number, name(label), seal(row.content()))
                    for id, label, row in zip(rows.ids, rows.labels, rows.split(), strict=True)
                ),
            )

    def _remove(self, number: int, column: str, values: Iterable[Any]) -> None:
        self._connection.executemany(
            f"UPDATE kept SET removed = ? WHERE {column} = ? AND removed IS NULL",
            [(number, self._cipher.name(value)) for value in values],
        )

    def roll_back(self, number: int, version: int) -> None:
        """Go over to the rows of a version."""
        execute = self._connection.execute
        execute("UPDATE kept SET removed = ? WHERE removed IS NULL AND added > ?", (number, version))
        execute(
            "INSERT INTO kept SELECT id, ?1, NULL, label, row FROM kept WHERE added <= ?2 AND removed > ?2",
            (number, version),
        )

    def undo(self, numbers: Iterable[int]) -> None:
        """Take back what was done for changes that were refused."""
        given = [(number,) for number in numbers]
        self._connection.executemany("DELETE FROM kept WHERE added = ?", given)
        self._connection.executemany("UPDATE kept SET removed = NULL WHERE removed = ?", given)

    def numbers_after(self, number: int) -> list[int]:
        """Return the changes after a version that have done something."""
        found = self._connection.execute(
            "SELECT added FROM kept WHERE added > ?1 UNION SELECT removed FROM kept WHERE removed > ?1", (number,)
        )
        return [row[0] for row in found]

    def prune(self, oldest: int) -> None:
        """Overwrite rows that no version from this one on has."""
        self._connection.execute("DELETE FROM kept WHERE removed <= ?", (oldest,))

    def find(self, ids: Sequence[Any]) -> Rows:
        """Return rows as they were learned.

        Raises
        ------
        LookupError
            If some are not kept.
        """
        query = "SELECT row FROM kept WHERE id = ? AND removed IS NULL"
        found = [self._connection.execute(query, (self._cipher.name(id),)).fetchone() for id in ids]
        if missing := sum(row is None for row in found):
            raise LookupError(f"of {missing} of {len(ids)} ids no row is kept.")
        return Rows.joined([Rows.of_content(self._cipher.open(row[0])) for row in found])


def drop(connection: sqlite3.Connection, *, wanted: bool) -> None:
    """Overwrite all rows that are kept, if that is wanted, or refuse to go on beside rows that no key is given for."""
    tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'kept_by'").fetchone()
    if tables is None or connection.execute("SELECT 1 FROM kept_by").fetchone() is None:
        return
    if not wanted:
        raise InputError("rows are kept here: give their key, --keep-rows KEY, or have them removed, --drop-rows.")
    connection.executescript("DELETE FROM kept; DELETE FROM kept_by;")
