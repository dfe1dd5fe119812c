"""CIFAR-100 [1]_, the official version for Python.

References
----------
.. [1] A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from aircl.data.arrays.source import DataError
from aircl.data.catalogue import register_dataset
from aircl.data.dataset import Dataset, Split
from aircl.data.layout import Layout
from aircl.data.samples import ArrayInputs

MD5 = MappingProxyType(
    {
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "7973b15100ade9c7d40fb424638fde48",
    }
)
LAYOUT = Layout(
    dataset="cifar100",
    folder="cifar-100-python",
    contents="the files train, test and meta",
    archive="cifar-100-python.tar.gz",
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    members="train|test|meta",
)


@register_dataset(
    "cifar100",
    kind="images",
    description="Photographs of 32 x 32 pixels: 100 classes, 500 training and 100 test images each",
    needs=LAYOUT.needs,
    missing=LAYOUT.missing,
)
def load_cifar100(root: Path | None, *, md5: Mapping[str, str] = MD5) -> Dataset:
    """Load CIFAR-100 with its fine labels, in its own order, as images of shape (32, 32, 3) held in memory.

    Parameters
    ----------
    root : Path or None
        The data directory.
    md5 : mapping
        What the files `train`, `test` and `meta` are checked against.

    Returns
    -------
    dataset : Dataset
    """
    return LAYOUT.open(root, lambda folder: _read(folder, md5))


def _read(folder: Path, md5: Mapping[str, str]) -> Dataset:
    contents = {name: _checked(folder, name, md5[name]) for name in ("train", "test", "meta")}
    train, test = (_split(contents.pop(name), md5[name]) for name in ("train", "test"))
    names = _unpickle(contents["meta"])[b"fine_label_names"]
    return Dataset("cifar100", "images", train, test, tuple(name.decode() for name in names))


def _checked(folder: Path, name: str, expected: str) -> bytes:
    path = folder / name
    if not path.is_file():
        raise DataError(f"the file {name!r} is missing.")
    content = path.read_bytes()
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != expected:
        raise DataError(f"the file {name!r} has the md5 sum {found}, but {expected} is right.")
    return content


def _split(content: bytes, md5: str) -> Split:
    batch = _unpickle(content)
    # A row is one image, channel after channel. This is a view: bytes are put in order when a batch is asked for.
    images = batch[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    labels = np.array(batch[b"fine_labels"], np.int64)
    return Split(ArrayInputs(images), labels, f"cifar100-{md5}")


def _unpickle(content: bytes) -> Any:
    return _Unpickler(io.BytesIO(content), encoding="bytes").load()


class _Unpickler(pickle.Unpickler):
    """Reads arrays of bytes and plain values; a pickle that asks for more could run code."""

    def find_class(self, module: str, name: str) -> Any:
        admitted = {
            ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): _byte_type,
        }
        if (module, name) not in admitted:
            raise DataError(f"a pickled file asks for {module}.{name}, which could run code: it is not of CIFAR-100.")
        return admitted[module, name]


def _byte_type(code: bytes, align: int, copy: int) -> np.dtype[np.uint8]:
    """Make the one type of array that is in the files, whatever today's NumPy thinks of how it was pickled."""
    if code != b"u1":
        raise DataError(f"a pickled array has the type {code!r}, but images are of bytes, b'u1'.")
    return np.dtype(np.uint8, copy=True)
