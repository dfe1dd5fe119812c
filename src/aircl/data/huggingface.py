"""Datasets of the Hugging Face Hub, or of a folder that the package `datasets` reads."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.data.arrays.source import DataError
from aircl.data.catalogue import missing_package, register_dataset
from aircl.data.dataset import Dataset, Indices, Split, index_labels, stratified_split
from aircl.data.samples import rgb, stacked
from aircl.inputs import Batch, Kind


class HubInputs:
    """Rows of one column of a table of the package `datasets`, decoded when they are asked for.

    Parameters
    ----------
    table : datasets.Dataset
    column : str
    kind : {"images", "texts"}
    rows : array of shape (n,)
        Which rows of the table, in this order.
    """

    def __init__(self, table: Any, column: str, kind: Kind, rows: Indices) -> None:
        self.table, self.column, self.kind, self.rows = table.select_columns([column]), column, kind, rows
        # The package's own hash of the table's contents and of what was done to it.
        self._source = f"{table._fingerprint} {column} {kind} "

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, indices: npt.NDArray[np.intp]) -> Batch:
        cells = self.table[self.rows[indices].tolist()][self.column]
        return stacked([rgb(image) for image in cells]) if self.kind == "images" else list(cells)

    def fingerprint(self) -> str:
        """Return a hash of what the package says the table is, and of the rows."""
        return hashlib.sha256(self._source.encode() + np.asarray(self.rows, np.int64).tobytes()).hexdigest()


@register_dataset(
    "hf",
    kind="images or texts",
    description="A dataset of the Hugging Face Hub by its name there, such as hf:uoft-cs/cifar100",
    needs="pip install 'aircl[hf]', and internet the first time",
    missing=lambda root: missing_package("datasets", "hf"),
    argument="NAME",
)
def load_huggingface(
    root: Path | None,
    argument: str = "",
    *,
    config: str | None = None,
    train: str = "train",
    test: str | None = None,
    column: str | None = None,
    label: str | None = None,
) -> Dataset:
    """Load a dataset with the package `datasets`.

    Parameters
    ----------
    root : Path or None
        Not used: the package keeps what it fetches in a cache of its own.
    argument : str
        The name on the Hub, or a folder.
    config : str or None
        Which configuration, of a dataset that has several.
    train, test : str
        Which of its splits to use. None for test: `test`, else `validation`, else a fixed stratified fifth of the
        training rows.
    column, label : str or None
        Columns of inputs and of labels. None: the only column of images, else the only one of texts; the only column
        of class labels.

    Returns
    -------
    dataset : Dataset
    """
    if not argument:
        raise DataError("no dataset of the Hugging Face Hub was given. Say which: hf:NAME.")
    if advice := missing_package("datasets", "hf"):
        raise DataError(f"hf:{argument} needs the package datasets. Install it: {advice}.")
    import datasets

    tables = datasets.load_dataset(argument, config)
    test = test or next((name for name in ("test", "validation") if name in tables), None)
    for name in filter(None, (train, test)):
        if name not in tables:
            raise DataError(f"hf:{argument} has no split {name!r}. It has {', '.join(tables)}.")
    types = {name: _type(feature) for name, feature in tables[train].features.items()}
    label = label or _only(argument, "label", types, "class")
    column = column or _only(argument, "column", types, "image" if "image" in types.values() else "text")
    for name in (column, label):
        if name not in types:
            raise DataError(f"hf:{argument} has no column {name!r}. It has {', '.join(types)}.")
    kind: Kind = "images" if types[column] == "image" else "texts"
    values = np.asarray(list(tables[train][label]))
    if test is None:
        train_rows, test_rows = stratified_split(values)
        test, test_values, values = train, values[test_rows], values[train_rows]
    else:
        test_values = np.asarray(list(tables[test][label]))
        train_rows, test_rows = np.arange(len(values)), np.arange(len(test_values))
    if values.dtype.kind in "iu" and min(values.min(initial=0), test_values.min(initial=0)) < 0:
        raise DataError(f"hf:{argument}: some labels are negative, which stands for hidden. Choose another test split.")
    train_labels, test_labels, names = index_labels(values, test_values)
    if types[label] == "class":
        known = tables[train].features[label].names
        names = tuple(known[int(name)] for name in names)
    inputs = HubInputs(tables[train], column, kind, train_rows), HubInputs(tables[test], column, kind, test_rows)
    return Dataset(
        f"hf:{argument}",
        kind,
        Split(inputs[0], train_labels, inputs[0].fingerprint),
        Split(inputs[1], test_labels, inputs[1].fingerprint),
        names,
    )


def _type(feature: Any) -> str:
    name = type(feature).__name__
    if name in ("Image", "ClassLabel"):
        return {"Image": "image", "ClassLabel": "class"}[name]
    return "text" if getattr(feature, "dtype", None) in ("string", "large_string") else "other"


def _only(argument: str, option: str, types: dict[str, str], wanted: str) -> str:
    found = [name for name, kind in types.items() if kind == wanted]
    if len(found) != 1:
        raise DataError(
            f"hf:{argument} has {len(found)} columns of type {wanted} ({', '.join(found) or 'none'}). Say which one to "
            f"use with the option {option}; its columns are {', '.join(types)}."
        )
    return found[0]
