"""What all raw sources have in common: blocks of texts or images become features, each block once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from aircl.data.arrays import LabelKind, Source
from aircl.data.arrays.source import Array, Rows
from aircl.inputs import Inputs
from aircl.raw.frozen import FrozenBackbone

# Rows whose features are one entry of the cache. It does not depend on the size of batches, so that another size finds
# them again.
BLOCK_ROWS = 1024


class Samples(Inputs, Protocol):
    """Inputs that are known by their contents."""

    def fingerprint(self) -> str:
        """Return a hash of the contents."""
        ...


@dataclass(frozen=True)
class Block:
    """Consecutive rows before the backbone.

    Attributes
    ----------
    inputs : Inputs with a fingerprint
    y : array of shape (n,) or None
    weight : array of shape (n,) or None
    ids : list of str or None
    raw : sequence
        Texts, or paths of images.
    """

    inputs: Samples
    y: Array | None
    weight: Array | None
    ids: list[str] | None
    raw: Sequence[Any]


class EncodedSource(Source):
    """Rows of texts or images, as features of a backbone. Features are kept in the cache, by contents.

    Parameters
    ----------
    backbone : FrozenBackbone

    Attributes
    ----------
    progress : callable or None
        Called with the rows of a block that are done, and all of its rows.

    Examples
    --------
    A source of one's own yields blocks; features, cache, checks and batches come with it:

    >>> from pathlib import Path
    >>> from aircl.data.samples import Texts
    >>> from aircl.raw.encoded import EncodedSource
    >>> from aircl.raw.frozen import FrozenBackbone
    >>> from aircl.raw.encoded import Block
    >>> class Questions(EncodedSource):
    ...     path = Path("questions")
    ...     def label_kinds(self, candidates):
    ...         return candidates & {"strings"}
    ...     def _blocks(self, kind):
    ...         texts = ["where is my card", "which rate"]
    ...         yield Block(Texts(texts), np.array(["card", "rate"]), None, None, texts)
    >>> source = Questions(FrozenBackbone.create("char-ngrams", "texts", None))
    >>> [(batch.X.shape, batch.raw) for batch in source.batches(1, "strings")]
    [((1, 1024), ['where is my card']), ((1, 1024), ['which rate'])]
    """

    progress: Callable[[int, int], None] | None = None

    def __init__(self, backbone: FrozenBackbone) -> None:
        self._backbone = backbone
        self.n_features = backbone.width

    @abstractmethod
    def _blocks(self, kind: LabelKind | None) -> Iterator[Block]:
        """Yield all rows, at most BLOCK_ROWS at a time."""

    def _read(self, size: int, kind: LabelKind | None) -> Iterator[Rows]:
        for block in self._blocks(kind):
            X = self._backbone.features(block.inputs, data=str(self.path), progress=self.progress)
            for start in range(0, len(X), size):
                part = slice(start, start + size)
                y, weight, ids = (None if a is None else a[part] for a in (block.y, block.weight, block.ids))
                yield np.array(X[part]), y, weight, ids, block.raw[part]
