"""Texts and images that a Python function makes."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

from aircl.data.arrays import DataError, LabelKind
from aircl.data.arrays.generated import GeneratedSource
from aircl.data.samples import Texts, UnnamedImages
from aircl.embedding import ImageList
from aircl.inputs import Kind, is_empty
from aircl.raw.encoded import BLOCK_ROWS, Block, EncodedSource, Samples
from aircl.raw.frozen import FrozenBackbone


class FunctionSource(EncodedSource):
    """Batches of texts or images that a function yields.

    Parameters
    ----------
    rows : GeneratedSource
    backbone : FrozenBackbone

    Examples
    --------
    >>> from aircl.data.arrays.generated import GeneratedSource
    >>> from aircl.raw.frozen import FrozenBackbone
    >>> from aircl.raw.functions import FunctionSource
    >>> def visits():
    ...     yield ["where is my card", "which rate"], ["card", "rate"]
    >>> backbone = FrozenBackbone.create("char-ngrams", "texts", None)
    >>> source = FunctionSource(GeneratedSource("my:visits", visits), backbone)
    >>> [(batch.X.shape, batch.y.tolist()) for batch in source.batches(10, "strings")]
    [((2, 1024), ['card', 'rate'])]
    """

    def __init__(self, rows: GeneratedSource, backbone: FrozenBackbone) -> None:
        super().__init__(backbone)
        self.path, self._rows = rows.path, rows

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Return the kind that the labels of the first batch have."""
        return self._rows.label_kinds(candidates)

    def identity(self) -> str | None:
        """Return None: a function may give other rows another time."""
        return None

    def _blocks(self, kind: LabelKind | None) -> Iterator[Block]:
        start = 0
        for samples, y, weight in self._rows.rows():
            for first in range(0, len(samples), BLOCK_ROWS):
                part = slice(first, first + BLOCK_ROWS)
                labels = None if y is None or kind is None else self._typed_labels(y[part], start + first)
                inputs = as_inputs(str(self.path), samples[part], self._backbone.kind)
                yield Block(inputs, labels, None if weight is None else weight[part], None, samples[part])
            start += len(samples)


def kind_of_sample(sample: Any) -> Kind:
    """Return what a sample is where no backbone says; a string may also be the path of an image."""
    return "texts" if isinstance(sample, str) else "images"


def as_inputs(place: str, samples: list[Any], kind: Kind) -> Samples:
    """Return samples as what a backbone takes."""
    if kind == "texts":
        if wrong := [sample for sample in samples if not isinstance(sample, str)]:
            raise DataError(f"{place} yields a {type(wrong[0]).__name__} among texts.")
        if any(map(is_empty, samples)):
            raise DataError(f"{place} yields a text that holds nothing but spaces. Fill or drop such rows.")
        return Texts(samples)
    if all(isinstance(sample, str | PathLike) for sample in samples):
        return UnnamedImages(".", [str(sample) for sample in samples])
    return ImageList(samples)
