"""A dataset: training and test samples with labels, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aircl.inputs import Inputs, Kind


@dataclass(frozen=True)
class Split:
    """Samples in dataset order.

    Attributes
    ----------
    inputs : Inputs
        Read where they are asked for: ``split.inputs[indices]``.
    labels : array of shape (n,)
        Class indices, 0..C-1.
    domains : array of shape (n,) or None
        Where each sample comes from, for domain-incremental streams; None if the data does not say.
    fingerprint : str
        Hash of the samples and their order, whatever they are labelled; features are cached under it.
    """

    inputs: Inputs
    labels: npt.NDArray[np.int64]
    fingerprint: str
    domains: npt.NDArray[np.int64] | None = None

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
    """

    name: str
    kind: Kind
    train: Split
    test: Split
    class_names: tuple[str, ...]
