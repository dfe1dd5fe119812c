"""Folders of images, read through a frozen backbone wherever they are learned."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aircl.backbones import Backbone, create_backbone
from aircl.data.arrays import DataError, LabelKind, Source
from aircl.data.arrays.source import Array
from aircl.data.image_folder import SUFFIXES, list_classes, list_images
from aircl.data.samples import ImageFiles

# Some seconds of work on a core: what is lost with a worker is little.
SHARD_IMAGES = 1024

_networks: dict[str, Backbone] = {}  # by fingerprint, one a process


@dataclass(frozen=True)
class FrozenBackbone:
    """A backbone by name, made anew in every process, where it must turn out to be the same.

    Attributes
    ----------
    name : str
        As in `aircl list backbones`.
    fingerprint : str
        Of weights and transform.
    width : int
    device : str or None
        Where it computes, in every process; see `create_backbone`.
    """

    name: str
    fingerprint: str
    width: int
    device: str | None = None

    @classmethod
    def create(cls, name: str, example: ImageFiles, device: str | None = None) -> FrozenBackbone:
        """Make the backbone here, and note what it is."""
        if name.startswith("base:"):
            raise ValueError(f"{name} is trained on the first phase of a stream. Use a saved one: checkpoint:FILE.")
        network = create_backbone(name, example=example[np.arange(1)], device=device)
        if "images" not in network.kinds:
            raise ValueError(f"{name} takes {' or '.join(network.kinds)}, not images.")
        _networks[network.fingerprint] = network
        return cls(name, network.fingerprint, network.width, device)

    def network(self, example: ImageFiles) -> Backbone:
        """Return the backbone of this process; refuse one that is another here, in weights or transform."""
        if self.fingerprint not in _networks:
            network = create_backbone(self.name, example=example[np.arange(1)], device=self.device)
            if network.fingerprint != self.fingerprint:
                raise ValueError(
                    f"{self.name} is not the same on this worker: fingerprint {network.fingerprint[:12]}.., expected "
                    f"{self.fingerprint[:12]}... Give all workers the same weights and versions."
                )
            _networks[network.fingerprint] = network
        return _networks[self.fingerprint]


class ImageSource(Source):
    """Some images of a folder, as features; the labels are the names of their folders.

    Parameters
    ----------
    inputs : ImageFiles
    labels : array of str of shape (n,)
    backbone : FrozenBackbone
    """

    def __init__(self, inputs: ImageFiles, labels: Array, backbone: FrozenBackbone) -> None:
        self.path = inputs.folder
        self.n_rows, self.n_features = len(inputs), backbone.width
        self._inputs, self._labels, self._backbone = inputs, labels, backbone

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

    def _read(self, size: int, kind: LabelKind | None) -> Iterator[tuple[Array, Array | None, Array | None]]:
        network = self._backbone.network(self._inputs)
        step = min(size, network.batch_size)
        for start in range(0, len(self._inputs), step):
            rows = np.arange(start, min(start + step, len(self._inputs)))
            yield network.forward(network.prepare(self._inputs[rows])), self._labels[rows], None


def open_images(
    folder: Path, name: str, shard_images: int = SHARD_IMAGES, *, device: str | None = None
) -> tuple[list[Source], FrozenBackbone]:
    """Return the images of a folder in shards.

    Parameters
    ----------
    folder : Path
        With one folder a class.
    name : str
        Of the backbone.
    shard_images : int
        Images a shard, at most.
    device : str or None
        Where the backbone computes.

    Returns
    -------
    sources : list of Source
    backbone : FrozenBackbone
    """
    folder = folder.absolute()
    classes = list_classes(folder)
    files, index = list_images(folder, classes)
    if not files:
        raise DataError(f"{folder} has no images. Put them ({', '.join(SUFFIXES)}) into one folder a class in it.")
    labels = np.array(classes)[index]
    backbone = FrozenBackbone.create(name, ImageFiles(folder, files[:1]), device)
    return [
        ImageSource(
            ImageFiles(folder, files[start : start + shard_images]), labels[start : start + shard_images], backbone
        )
        for start in range(0, len(files), shard_images)
    ], backbone
