"""Files, folders of images and Python functions as shards."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.data.arrays import DataError, LabelKind, Source
from aircl.distributed.shard import Rows, Shard


def file_shards(
    sources: Sequence[Source], kind: LabelKind | None, dtype: npt.DTypeLike | None = None, *, by_id: bool = False
) -> list[Shard]:
    """Return one shard for each source.

    Parameters
    ----------
    sources : sequence of Source
        As `aircl.data.arrays.open_files` returns them.
    kind : {"integers", "strings", "booleans"} or None
        What labels are read as.
    dtype : dtype or None
        Precision that the features are brought to; None: that of the files.
    by_id : bool, default=False
        Whether a ledger knows rows by the ids of the files; else by what was read.

    Returns
    -------
    shards : list of Shard
        A file keeps its id as long as it is not changed, so what has learned it once does not learn it again.
    """
    shards = []
    for source in sources:
        source = copy.copy(source)
        identity = source.identity()
        if identity is not None:
            source.path = source.path.absolute()  # workers may work in another directory
        read = _Reader(source, kind, None if dtype is None else np.dtype(dtype), identity, by_id)
        shards.append(Shard(identity or uuid.uuid4().hex, read, str(source.path)))
    return shards


@dataclass(frozen=True)
class _Reader:
    source: Source
    kind: LabelKind | None
    dtype: np.dtype[Any] | None
    identity: str | None
    by_id: bool

    def __call__(self, batch_size: int) -> Iterator[Rows]:
        self._check_unchanged()
        for batch in self.source.batches(batch_size, self.kind):
            X = batch.X if self.dtype is None else batch.X.astype(self.dtype)
            raw = batch.X if batch.raw is None else batch.raw
            yield X, batch.y, batch.weight, batch.ids if self.by_id else None, raw
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        """Refuse a file that is not the one that was looked at: a part that is read again must be the same."""
        if self.identity is not None and self.source.identity() != self.identity:
            raise DataError(f"{self.source.path} has changed since the fit began. Begin again when it is complete.")
