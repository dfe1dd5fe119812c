"""Images in folders, one folder per class."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aircl.data.arrays.source import DataError
from aircl.data.catalogue import below, register_dataset
from aircl.data.dataset import Dataset, Indices, Labels, Split, stratified_split
from aircl.data.samples import ImageFiles

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


@register_dataset(
    "image-folder",
    kind="images",
    description="Images in DIR/train/<class>/ and DIR/test/<class>/, or in DIR/<class>/ to be split 80/20",
    needs="a folder of images",
    argument="DIR",
)
def load_image_folder(root: Path | None, argument: str = "") -> Dataset:
    """Load a folder of images.

    Parameters
    ----------
    root : Path or None
        The data directory.
    argument : str
        The folder, below the data directory or a path of its own; "": the data directory itself. It has one folder a
        class below `train` and below `test` (or `val`), or else directly, of which a fixed stratified fifth is test.

    Returns
    -------
    dataset : Dataset
        Classes, and the images of a class, are in the order of their names.
    """
    folder = below(root, argument) if argument else root
    if folder is None:
        raise DataError("no folder of images was given. Say which: image-folder:DIR, --data DIR or AIRCL_DATA.")
    if not folder.is_dir():
        raise DataError(f"the folder of images {folder} does not exist.")
    parts = [part for part in ("train", "test", "val") if (folder / part).is_dir()][:2]
    if not parts:
        classes = list_classes(folder)
        files, labels = list_images(folder, classes)
        train, test = (take(folder, files, labels, rows) for rows in stratified_split(labels))
    elif len(parts) == 2 and parts[0] == "train":
        classes = sorted({name for part in parts for name in list_classes(folder / part)})
        train, test = (take(folder / part, *list_images(folder / part, classes)) for part in parts)
    else:
        raise DataError(
            f"{folder} has {' and '.join(f'{part}/' for part in parts)}, but not both train/ and test/. Put one folder "
            "a class into each of them, or all of them directly into the folder."
        )
    if not len(train) or not len(test):
        raise DataError(
            f"{folder} has {len(train)} training and {len(test)} test images. Put images ({', '.join(SUFFIXES)}) into "
            "train/<class>/ and test/<class>/ below it, or at least two of a class into <class>/."
        )
    return Dataset(f"image-folder:{argument}".rstrip(":"), "images", train, test, tuple(classes))


def list_classes(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted, without hidden ones."""
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def list_images(folder: Path, classes: Sequence[str]) -> tuple[list[str], Labels]:
    """Return the images below the folders of classes and their labels, in the order of torchvision's ImageFolder.

    Parameters
    ----------
    folder : Path
    classes : sequence of str
        Folders in it, one per class; one that is not there has no images.

    Returns
    -------
    files : list of str
        Paths below the folder, with forward slashes.
    labels : array of shape (n,)
    """
    files: list[str] = []
    counts = []
    for name in classes:
        before = len(files)
        for directory, _, entries in sorted(os.walk(folder / name)):
            prefix = Path(directory).relative_to(folder).as_posix()
            files += [f"{prefix}/{entry}" for entry in sorted(entries) if _is_image(entry)]
        counts.append(len(files) - before)
    return files, np.repeat(np.arange(len(classes), dtype=np.int64), counts)


def take(
    folder: Path, files: Sequence[str], labels: Labels, rows: Indices | None = None, domains: Labels | None = None
) -> Split:
    """Return a split of some of the images in a folder: those at `rows`, in their order; None: all of them."""
    if rows is not None:
        files, labels = [files[row] for row in rows], labels[rows]
        domains = None if domains is None else domains[rows]
    inputs = ImageFiles(folder, files)
    return Split(inputs, labels, inputs.fingerprint, domains)


def _is_image(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")
