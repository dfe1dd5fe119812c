"""Data sources by name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aircl.data.dataset import Dataset
from aircl.registry import Registry

Loader = Callable[..., Dataset]


@dataclass(frozen=True)
class DataSource:
    """How a dataset is loaded, and what is known about it before.

    Attributes
    ----------
    load : callable
        Called with the data directory (a Path or None), with what stands behind the colon if the source takes an
        `argument`, and with options by name.
    kind : str
        "images", "texts" or "features".
    description, needs : str
        One line each.
    missing : callable
        From the data directory to what is missing there, or ""; it must be fast.
    argument : str
        What may stand behind the name and a colon, such as FILE; "": nothing.

    Examples
    --------
    >>> from aircl.data import DATASETS
    >>> source = DATASETS["cities"]
    >>> source.kind, source.needs
    ('texts', "pip install 'aircl[cities]'")
    """

    load: Loader
    kind: str
    description: str
    needs: str
    missing: Callable[[Path | None], str]
    argument: str = ""


DATASETS: Registry[DataSource] = Registry("dataset")


@dataclass(frozen=True)
class DatasetInfo:
    """What `list_datasets` tells about a dataset.

    Attributes
    ----------
    name, kind, description, needs : str
    available : bool
        Whether it can be loaded now; contents are checked when it is.
    missing : str
        What it takes to have it; "" if it is available.

    Examples
    --------
    >>> from aircl.data import list_datasets
    >>> info = next(info for info in list_datasets() if info.name == "digits")
    >>> info.kind, info.description, info.available
    ('images', 'Handwritten digits of 8 x 8 pixels: 10 classes, 1797 images', True)
    """

    name: str
    kind: str
    description: str
    needs: str
    available: bool
    missing: str


def register_dataset(
    name: str,
    *,
    kind: str,
    description: str,
    needs: str = "nothing",
    missing: Callable[[Path | None], str] = lambda root: "",
    argument: str = "",
) -> Callable[[Loader], Loader]:
    """Return a decorator that makes a function a data source.

    Parameters
    ----------
    name : str
        For `load_dataset` and `aircl run --dataset`.
    kind : {"images", "texts", "features"}
    description : str
        One line.
    needs : str, default="nothing"
        What has to be there, in one line.
    missing : callable, optional
        From the data directory (a Path or None) to what is missing there, or ""; it must be fast.
    argument : str, default=""
        What may stand behind the name and a colon, such as FILE; "": nothing.

    Returns
    -------
    decorator : callable
        Of a function as `DataSource.load`.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.data import ArrayInputs, Dataset, Split, load_dataset, register_dataset
    >>> @register_dataset("noise", kind="features", description="Normal noise: 3 classes, 4 features")
    ... def load_noise(root, *, rows=30):
    ...     inputs, labels = ArrayInputs(np.random.default_rng(0).normal(size=(rows, 4))), np.arange(rows) % 3
    ...     split = Split(inputs, labels, inputs.fingerprint)
    ...     return Dataset("noise", "features", split, split, ("a", "b", "c"))
    >>> dataset = load_dataset("noise", rows=60)
    >>> len(dataset.train), dataset.train.inputs[np.arange(2)].shape
    (60, (2, 4))
    """

    def add(load: Loader) -> Loader:
        DATASETS.register(name)(DataSource(load, kind, description, needs, missing, argument))
        return load

    return add


def load_dataset(name: str, root: str | os.PathLike[str] | None = None, **options: Any) -> Dataset:
    """Load a dataset by name.

    Parameters
    ----------
    name : str
        One of `DATASETS`; some take something behind a colon, such as ``features:FILE``.
    root : path or None
        The data directory; None: that of the environment variable AIRCL_DATA, if it is set.
    **options
        Of the source.

    Returns
    -------
    dataset : Dataset

    Examples
    --------
    >>> import numpy as np
    >>> digits = load_dataset("digits")
    >>> len(digits.train), len(digits.test), digits.train.inputs[np.arange(2)].shape
    (1438, 359, (2, 8, 8, 1))
    """
    key, colon, argument = name.partition(":")
    source = DATASETS[key]
    if colon and not source.argument:
        raise ValueError(f"{name!r} was given, but the dataset {key!r} takes nothing behind its name.")
    given = (data_directory(root), argument) if source.argument else (data_directory(root),)
    try:
        inspect.signature(source.load).bind(*given, **options)
    except TypeError as error:
        known = [p.name for p in inspect.signature(source.load).parameters.values() if p.kind is p.KEYWORD_ONLY]
        raise ValueError(f"{name!r}: {error}. The options of this dataset are: {', '.join(known) or 'none'}.") from None
    return source.load(*given, **options)


def list_datasets(root: str | os.PathLike[str] | None = None) -> list[DatasetInfo]:
    """Say which datasets there are, and which can be loaded here and now.

    Parameters
    ----------
    root : path or None
        The data directory; None: that of the environment variable AIRCL_DATA, if it is set.

    Returns
    -------
    infos : list of DatasetInfo

    Examples
    --------
    What can be loaded as it is, and what it takes to have another:

    >>> from aircl.data import list_datasets
    >>> infos = {info.name: info for info in list_datasets()}
    >>> infos["digits"].available, infos["cifar100"].needs
    (True, 'cifar-100-python.tar.gz or cifar-100-python/ in --data DIR')
    """
    infos = []
    for name in DATASETS:
        source = DATASETS[name]
        missing = source.missing(data_directory(root))
        shown = f"{name}:{source.argument}" if source.argument else name
        infos.append(DatasetInfo(shown, source.kind, source.description, source.needs, not missing, missing))
    return infos


def find_datasets(root: str | os.PathLike[str]) -> list[str]:
    """Return the names of the datasets that stand in a data directory.

    Parameters
    ----------
    root : path
        The data directory.

    Returns
    -------
    names : list of str
        Those for which something has to be there, and is; contents are checked when they are loaded.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.data import find_datasets
    >>> with TemporaryDirectory() as root:
    ...     Path(root, "cifar-100-python.tar.gz").touch()
    ...     find_datasets(root)
    ['cifar100']
    """
    sources = {name: DATASETS[name] for name in DATASETS}
    return [name for name, source in sources.items() if source.missing(None) and not source.missing(Path(root))]


def data_directory(root: str | os.PathLike[str] | None) -> Path | None:
    """Return the data directory: `root`, else that of the environment variable AIRCL_DATA, else None."""
    chosen = root or os.environ.get("AIRCL_DATA")
    return Path(chosen).expanduser() if chosen else None


def missing_package(module: str, extra: str) -> str:
    """Return how to install the extra that a module comes with, or "" if it is there."""
    spec = find_spec(module)
    # A folder of this name in the current directory, such as datasets/, has a spec too, but no origin.
    return "" if spec is not None and spec.origin else f"pip install 'aircl[{extra}]'"


def below(root: Path | None, argument: str) -> Path:
    """Return the path that stands behind a dataset's name: below the data directory if it is there, else as given."""
    path = Path(argument).expanduser()
    return root / path if root is not None and (root / path).exists() else path
