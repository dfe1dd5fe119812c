"""Tiny-ImageNet in its official layout: 200 classes of ImageNet at 64 x 64 pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aircl.data.arrays.source import DataError
from aircl.data.catalogue import register_dataset
from aircl.data.dataset import Dataset
from aircl.data.image_folder import list_images, take
from aircl.data.layout import Layout
from aircl.data.wordnet import class_names

LAYOUT = Layout(
    dataset="tiny-imagenet",
    folder="tiny-imagenet-200",
    contents="wnids.txt, words.txt, train/<wnid>/images/ and val/",
    archive="tiny-imagenet-200.zip",
    url="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
    members=r"(?:wnids|words|val/val_annotations)\.txt|(?:train/n\d{8}|val)/images/[^/\\]+\.JPEG",
)


@register_dataset(
    "tiny-imagenet",
    kind="images",
    description="Photographs of 64 x 64 pixels: 200 classes, 500 training and 50 test images each",
    needs=LAYOUT.needs,
    missing=LAYOUT.missing,
)
def load_tiny_imagenet(root: Path | None, *, classes: int = 200, per_class: int = 500, n_test: int = 10_000) -> Dataset:
    """Load Tiny-ImageNet; its validation images are the test split, since those called test have no labels.

    Parameters
    ----------
    root : Path or None
        The data directory.
    classes, per_class, n_test : int
        How many classes, training images of each, and test images there have to be.

    Returns
    -------
    dataset : Dataset
        Classes are in the order of their WordNet numbers, training images in that of their names, test images in
        that of val_annotations.txt.
    """
    return LAYOUT.open(root, lambda folder: _read(folder, classes, per_class, n_test))


def _read(folder: Path, n_classes: int, per_class: int, n_test: int) -> Dataset:
    numbers = sorted(_text(folder / "wnids.txt").split())
    if len(numbers) != n_classes:
        raise DataError(f"wnids.txt names {len(numbers)} classes, but {n_classes} are right.")
    files, labels = list_images(folder / "train", numbers)
    for number, count in zip(numbers, np.bincount(labels, minlength=n_classes).tolist(), strict=True):
        if count != per_class:
            raise DataError(f"train/{number} has {count} images, but {per_class} are right.")
    lines = _text(folder / "val" / "val_annotations.txt").splitlines()
    annotations = [line.split("\t")[:2] for line in lines if "\t" in line]
    present = set(list_images(folder / "val", ["images"])[0])
    index = {number: label for label, number in enumerate(numbers)}
    tested = [(f"images/{name}", index[number]) for name, number in annotations if number in index]
    found = sum(name in present for name, _ in tested)
    if not found == len(tested) == n_test:
        raise DataError(
            f"val/val_annotations.txt labels {len(tested)} images, of which {found} are in val/images, but {n_test} "
            "are right."
        )
    test_labels = np.array([label for _, label in tested], np.int64)
    return Dataset(
        "tiny-imagenet",
        "images",
        take(folder / "train", files, labels),
        take(folder / "val", [name for name, _ in tested], test_labels),
        class_names(folder / "words.txt", numbers),
    )


def _text(path: Path) -> str:
    if not path.is_file():
        raise DataError(f"the file {path.name} is missing.")
    return path.read_text(encoding="utf-8")
