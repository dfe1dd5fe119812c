"""What a row is, to a ledger: the bytes of its content, its label and its weight, and those of its id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from aircl.engine.backend import Array, is_tensor
from aircl.engine.state import BLOCK_BYTES
from aircl.expansion.tensors import on_cpu

# A key of fewer bytes could be guessed.
MIN_KEY_BYTES = 16


# What the parameter `ledger` may be: whether there is one, or where its key is; all of them after a merge of several.
KeepLedger = bool | str | Path | Sequence[str | Path]


def read_keys(ledger: KeepLedger) -> tuple[bytes, ...]:
    """Return the keys, of 32 bytes, that the parameter `ledger` names files of; none if it names none."""
    if isinstance(ledger, bool | np.bool_):
        return ()
    files: Any = ledger if isinstance(ledger, list | tuple) else [ledger]
    if not files or not all(isinstance(path, str | Path) for path in files):
        raise ValueError(
            f"ledger={ledger!r} is not possible. Use True, False, or the path of a file that holds a key, or several."
        )
    return tuple(_read_key(Path(path)) for path in files)


def _read_key(path: Path) -> bytes:
    if not path.is_file():
        raise ValueError(
            f"the key of the ledger, {path}, does not exist or is not a file. Make one of random bytes: "
            f"head -c 32 /dev/urandom > {path}"
        )
    secret = path.read_bytes()
    if len(secret) < MIN_KEY_BYTES:
        raise ValueError(f"{path} has {len(secret)} bytes. A key needs at least {MIN_KEY_BYTES}, which are random.")
    return blake2b(secret, digest_size=32, person=b"aircl ledger key").digest()


def check_ids(ids: Any, n: int) -> list[bytes]:
    """Return ids as bytes, one per row: 17 and "17" are the same."""
    values = np.asarray(on_cpu(ids)).tolist()
    if not isinstance(values, list) or any(isinstance(value, list) for value in values[:1]):
        raise ValueError("ids should be one-dimensional: one id per row.")
    if len(values) != n:
        raise ValueError(f"there are {len(values)} ids for {n} rows. Give one id per row.")
    if wrong := [value for value in values if isinstance(value, bool) or not isinstance(value, str | int)]:
        raise ValueError(f"the id {wrong[0]!r} is neither a text nor a whole number. Ids are texts or whole numbers.")
    return [str(value).encode("utf-8", "surrogatepass") for value in values]


def contents(X: Any, labels: Array, weight: Array | None) -> Iterator[Any]:
    """Yield the bytes that a row is known by: its content, its label and its weight.

    Numbers are taken as float64 and 0.0 for -0.0, so that a row is the same dense or sparse, as an array or as a
    tensor, and in float32 if it is a row of float32.

    Parameters
    ----------
    X : array, sparse matrix or tensor of shape (n, d), or a sequence of n texts, bytes, paths or arrays
    labels : array of shape (n,)
    weight : array of shape (n,) or None

    Yields
    ------
    content : bytes
    """
    ends = _ends(labels, weight)
    if not (sparse.issparse(X) or is_tensor(X) or (isinstance(X, np.ndarray) and X.ndim == 2)):
        yield from (_bytes(row) + end.tobytes() for row, end in zip(X, ends, strict=True))
        return
    n = max(1, BLOCK_BYTES // (64 * (X.shape[1] + 1)))  # small beside what is learned at a time
    for start in range(0, X.shape[0], n):
        part = X[start : start + n]
        block = part.toarray() if sparse.issparse(part) else np.asarray(on_cpu(part))
        numbers = np.ascontiguousarray(block, dtype="<f8") + 0.0  # -0.0 becomes 0.0
        table = np.concatenate([numbers.view(np.uint8), ends[start : start + n]], axis=1)
        width, view = table.shape[1], table.reshape(-1).data
        yield from (view[place : place + width] for place in range(0, len(view), width))


def _ends(labels: Array, weight: Array | None) -> Array:
    """Return label and weight as bytes of the same number for all, shape (n, 24)."""
    unique, inverse = np.unique(labels, return_inverse=True)
    texts = [value if isinstance(value, str) else repr(value if isinstance(value, bool) else int(value))
             for value in unique.tolist()]  # fmt: skip
    digests = b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts)
    label = np.frombuffer(digests, np.uint8).reshape(-1, 16)[inverse]
    numbers = np.ones(len(labels)) if weight is None else np.asarray(weight)
    return np.concatenate([label, numbers.astype("<f8").reshape(-1, 1).view(np.uint8)], axis=1)


def _bytes(row: Any) -> bytes:
    """Return the content of a raw row."""
    if isinstance(row, str):
        return row.encode("utf-8", "surrogatepass")
    if isinstance(row, bytes | bytearray | memoryview):
        return bytes(row)
    if isinstance(row, Path):
        return row.read_bytes()
    values = np.asarray(on_cpu(row))  # an image
    return f"{values.dtype} {values.shape} ".encode() + values.tobytes()
