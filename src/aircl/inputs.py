"""What data sources give and backbones take: images, texts or features, fetched by index."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

Kind = Literal["images", "texts", "features"]

# A batch of inputs. Images: uint8 arrays of shape (height, width, channels), channels 1 (grey) or 3 (RGB), as one array
# of shape (n, height, width, channels) where all have one size, else as a list. Texts: a list of str. Features: an
# array of floats of shape (n, d).
Batch = Any


class Inputs(Protocol):
    """A sequence of samples that is read only where it is asked for."""

    def __len__(self) -> int:
        """Return the number of samples."""
        ...

    def __getitem__(self, indices: npt.NDArray[np.intp]) -> Batch:
        """Return the samples at an array of indices, in its order."""
        ...


class Samples(list[Any]):
    """Texts, or images as arrays, whose features are made once, and never kept on the disk.

    Attributes
    ----------
    features : tuple of (str, array) or None
        Of which backbone, by its fingerprint, and the features.

    Examples
    --------
    >>> from aircl import Embedding
    >>> texts, embedding = Samples(["Paris", "Lyon"]), Embedding("char-ngrams")
    >>> embedding.fit(texts).transform(texts) is embedding.transform(texts)
    True
    """

    features: tuple[str, npt.NDArray[Any]] | None = None


def raw_samples(X: Any) -> list[Any] | npt.NDArray[Any] | None:
    """Return texts, paths or images as a list, or images as one array; None for anything else, such as numbers.

    Parameters
    ----------
    X : object
        A list, an array, a Series, or a frame of one column.

    Examples
    --------
    >>> raw_samples(("where is my card", "which rate")), raw_samples([[1.0, 2.0]])
    (['where is my card', 'which rate'], None)
    """
    if hasattr(X, "detach"):  # a tensor
        return None
    if not isinstance(X, list | tuple | np.ndarray) and hasattr(X, "__array__"):
        X = np.asarray(X)  # of a Series or a frame
    if isinstance(X, np.ndarray):
        if X.dtype.kind != "O" and X.ndim > 2:
            return X
        if X.dtype.kind not in "OUT" or not (X.ndim == 1 or X.shape[1:] == (1,)):
            return None
        X = X.ravel().tolist()
    if not isinstance(X, list | tuple) or not len(X):
        return None
    if _is_sample(X[0]) or (np.ndim(X[0]) == 0 and any(isinstance(value, str) for value in X)):
        return list(X)
    return None


def is_empty(value: Any) -> bool:
    """Tell whether a sample is a text without a character but spaces.

    Examples
    --------
    >>> is_empty(" "), is_empty("where is my card")
    (True, False)
    """
    return isinstance(value, str) and not value.strip()


def _is_sample(value: Any) -> bool:
    """Tell a text, a path or an image from a row of numbers."""
    return isinstance(value, str | PathLike) or hasattr(value, "convert") or getattr(value, "ndim", 0) > 1
