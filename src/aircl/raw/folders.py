"""Folders of images, one folder per class or without classes, and single images."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from aircl.data.arrays import DataError, LabelKind
from aircl.data.arrays.source import Array
from aircl.data.image_folder import SUFFIXES, list_classes, list_images
from aircl.data.samples import UnnamedImages
from aircl.raw.encoded import Block, EncodedSource
from aircl.raw.frozen import FrozenBackbone

# Some seconds of work on a core: what is lost with a worker is little.
SHARD_IMAGES = 1024


class ImageSource(EncodedSource):
    """Some images of a folder, as features; the labels, if there are any, are the names of their folders.

    Parameters
    ----------
    inputs : UnnamedImages
    labels : array of str of shape (n,) or None
    backbone : FrozenBackbone
    """

    def __init__(self, inputs: UnnamedImages, labels: Array | None, backbone: FrozenBackbone) -> None:
        super().__init__(backbone)
        self.path, self.n_rows = inputs.folder, len(inputs)
        self._inputs, self._labels = inputs, labels

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Return strings: they are names."""
        return candidates & {"strings"}

    def identity(self) -> str | None:
        """Return a hash of the names, sizes and times of the files, and of the backbone."""
        digest = hashlib.sha256(f"{self.path.resolve()}\0{self._backbone.fingerprint}\0".encode())
        for name in self._inputs.names:
            status = (self._inputs.folder / name).stat()
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
        return digest.hexdigest()

    def _blocks(self, kind: LabelKind | None) -> Iterator[Block]:
        names = list(self._inputs.names)
        paths = [self._inputs.folder / name for name in names]
        yield Block(self._inputs, self._labels if kind else None, None, names, paths)


def open_folder(folder: Path, *, labelled: bool) -> tuple[list[str], Array | None]:
    """Return the images of a folder.

    Parameters
    ----------
    folder : Path
        With one folder per class, if they are labelled; else images may be anywhere in it.
    labelled : bool

    Returns
    -------
    files : list of str
        Paths below the folder, with forward slashes.
    labels : array of str or None

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.raw.folders import open_folder
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         Path(folder, name).mkdir()
    ...         Path(folder, name, "1.png").touch()
    ...     files, labels = open_folder(Path(folder), labelled=True)
    >>> files, labels.tolist()
    (['cat/1.png', 'dog/1.png'], ['cat', 'dog'])
    """
    if labelled:
        classes = list_classes(folder)
        files, index = list_images(folder, classes)
        if files:
            return files, np.array(classes)[index]
        here = sum(is_image(path.name) for path in folder.iterdir())
        what = f"{here} images, but no folders with images: nothing says what they show" if here else "no images"
        raise DataError(f"{folder} has {what}. Put them ({', '.join(SUFFIXES)}) into one folder per class in it.")
    files = [
        Path(directory, name).relative_to(folder).as_posix()
        for directory, _, names in os.walk(folder)
        for name in names
        if is_image(name)
    ]
    if not files:
        raise DataError(f"{folder} has no images ({', '.join(SUFFIXES)}).")
    return sorted(files), None


def is_image(name: str) -> bool:
    """Tell images by the ends of their names."""
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")


def image_shards(
    folder: Path, files: Sequence[str], labels: Array | None, backbone: FrozenBackbone, shard_images: int = SHARD_IMAGES
) -> list[ImageSource]:
    """Return images in shards, which can be read in different processes.

    Parameters
    ----------
    folder : Path
    files : sequence of str
        Paths below it.
    labels : array of str or None
    backbone : FrozenBackbone
    shard_images : int
        Images per shard, at most.
    """
    parts = [slice(start, start + shard_images) for start in range(0, len(files), shard_images)]
    return [
        ImageSource(UnnamedImages(folder, files[part]), None if labels is None else labels[part], backbone)
        for part in parts
    ]
