"""Which dataset a command means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aircl.data import Dataset


def open_dataset(name: str | None, data: str | None) -> Dataset:
    """Load the dataset of this name, or the only one there is in a directory.

    Parameters
    ----------
    name : str or None
        A name of `aircl list datasets`. None: `data` tells.
    data : str or None
        The directory datasets are looked for in; without a name, it may also be the name of an embedded dataset.
    """
    from aircl.data import DATASETS, find_datasets, load_dataset

    if name is not None:
        return load_dataset(name, root=data)
    if data is None:
        raise ValueError("which dataset? Name one of `aircl list datasets`, or give its directory with --data.")
    if data in DATASETS and not Path(data).exists():
        return load_dataset(data)
    found = find_datasets(data)
    if len(found) != 1:
        what = f"there are several datasets in {data}" if found else f"no dataset is found in {data}"
        raise ValueError(f"{what}. Name the one you mean: {', '.join(found or DATASETS)}.")
    return load_dataset(found[0], root=data)
