"""What an operator may set."""

from __future__ import annotations

from dataclasses import dataclass

from aircl.serve.kept import Cipher


@dataclass(frozen=True)
class Settings:
    """How a service keeps what it has learned, and what it takes.

    Attributes
    ----------
    checkpoint_rows : int
        A checkpoint is due after this many rows.
    checkpoint_seconds : float
        It is due as long after the first change that is in none.
    keep_versions : int
        Checkpoints that stay, to roll back to.
    keep_keys : int
        Changes whose `Idempotency-Key` is remembered.
    journal : bool
        False: no row is ever written to the disk; every answer to a change waits for a checkpoint instead.
    cipher : Cipher or None
        What rows are kept encrypted by; None: none are kept.
    drop_rows : bool
        Whether rows that were kept are removed.
    max_body, max_rows, max_merge : int
        Bytes of a request, rows in it, and bytes of a model that is merged.
    max_pixels : int
        Of the images of a request, together.
    max_waiting : int
        Changes that may wait for the writer, and rows that may wait for a prediction, in thousands.
    """

    checkpoint_rows: int = 20_000
    checkpoint_seconds: float = 60.0
    keep_versions: int = 10
    keep_keys: int = 100_000
    journal: bool = True
    cipher: Cipher | None = None
    drop_rows: bool = False
    max_body: int = 32 * 2**20
    max_rows: int = 10_000
    max_merge: int = 2**31
    max_pixels: int = 50_000_000
    max_waiting: int = 100
