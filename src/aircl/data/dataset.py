"""A dataset: training and test samples with labels, and what they are called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.inputs import Inputs, Kind

Labels = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]


class Split:
    """Samples in dataset order.

    Parameters
    ----------
    inputs : Inputs
        Read where they are asked for: ``split.inputs[indices]``.
    labels : array of shape (n,)
        Class indices, 0..C-1.
    fingerprint : str or callable
        Hash of the samples and their order, or a function that computes it when it is first asked for: that of a
        folder of images means reading all of them.
    domains : array of shape (n,) or None
        Where each sample comes from, for domain-incremental streams; None if the data does not say.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.data import Split, Texts
    >>> texts = Texts(["Paris", "Lyon", "Rome"])
    >>> split = Split(texts, np.array([0, 0, 1]), texts.fingerprint)
    >>> len(split), split.inputs[np.array([2, 0])], split.fingerprint[:8]
    (3, ['Rome', 'Paris'], '87302547')
    """

    def __init__(
        self, inputs: Inputs, labels: Labels, fingerprint: str | Callable[[], str], domains: Labels | None = None
    ) -> None:
        if len(inputs) != len(labels):
            raise ValueError(f"there are {len(inputs)} samples, but {len(labels)} labels. Every sample needs one.")
        self.inputs, self.labels, self.domains = inputs, labels, domains
        self._fingerprint = fingerprint

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the samples and their order, wherever they are kept; features are cached under it."""
        return self._fingerprint if isinstance(self._fingerprint, str) else self._fingerprint()

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """A training and a test split.

    Attributes
    ----------
    name : str
    kind : {"images", "texts", "features"}
    train, test : Split
    class_names : tuple of str
        By class index.
    domain_names : tuple of str
        By domain index; empty if there are no domains.
    files : tuple of Path
        Files that the dataset was read from and that no output should replace, if it consists of few.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.data import load_dataset
    >>> digits = load_dataset("digits")
    >>> digits.kind, digits.class_names[:3], np.bincount(digits.test.labels).tolist()
    ('images', ('0', '1', '2'), [36, 36, 35, 37, 36, 36, 36, 36, 35, 36])
    >>> images = digits.train.inputs[np.array([0, 5])]
    >>> images.shape, digits.train.labels[[0, 5]]
    ((2, 8, 8, 1), array([0, 6]))
    """

    name: str
    kind: Kind
    train: Split
    test: Split
    class_names: tuple[str, ...]
    domain_names: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


def stratified_split(labels: npt.NDArray[Any], share: float = 0.2, most: int | None = None) -> tuple[Indices, Indices]:
    """Deal samples to training and test, class by class, always in the same way.

    Parameters
    ----------
    labels : array of shape (n,)
    share : float, default=0.2
        Share of each class that becomes test data, rounded, at least one sample of a class that has two.
    most : int or None
        No class gives more test samples than this.

    Returns
    -------
    train, test : arrays
        Indices, both in dataset order.

    Examples
    --------
    >>> train, test = stratified_split(np.array([0] * 10 + [1] * 3 + [2]))
    >>> len(train), test.tolist()
    (11, [2, 8, 12])
    """
    rng = np.random.RandomState(0)  # its numbers are the same in every version of NumPy
    is_test = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        n_test = min(max(1, round(share * len(members))), len(members) - 1, len(members) if most is None else most)
        is_test[members[:n_test]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def index_labels(train: npt.NDArray[Any], test: npt.NDArray[Any]) -> tuple[Labels, Labels, tuple[str, ...]]:
    """Turn labels of any sortable type into class indices.

    Parameters
    ----------
    train, test : arrays of shape (n,) and (m,)

    Returns
    -------
    train, test : arrays of shape (n,) and (m,)
        Class indices, in the order of the sorted labels.
    names : tuple of str
        By class index.
    """
    classes, index = np.unique(np.concatenate([train, test]), return_inverse=True)
    index = index.astype(np.int64)
    return index[: len(train)], index[len(train) :], tuple(map(str, classes.tolist()))
