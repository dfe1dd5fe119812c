"""Handwritten digits, which scikit-learn brings along."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aircl.data.catalogue import register_dataset
from aircl.data.dataset import Dataset, Split, stratified_split
from aircl.data.samples import ArrayInputs


@register_dataset("digits", kind="images", description="Handwritten digits of 8 x 8 pixels: 10 classes, 1797 images")
def load_digits(root: Path | None = None) -> Dataset:
    """Load the 1797 digits as grey images of shape (8, 8, 1), a fixed stratified fifth of them for test.

    The ink of a pixel, 0 to 16, is rounded to 0 to 255.
    """
    from sklearn import datasets

    ink, labels = datasets.load_digits(return_X_y=True)
    images = np.rint(ink * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8, 1)
    labels = labels.astype(np.int64)

    def part(rows: np.ndarray) -> Split:
        inputs = ArrayInputs(images[rows])
        return Split(inputs, labels[rows], inputs.fingerprint)

    train, test = map(part, stratified_split(labels))
    return Dataset("digits", "images", train, test, tuple("0123456789"))
