"""Samples that are read where they are asked for: rows of an array, texts, image files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from aircl.data.arrays.source import DataError
from aircl.inputs import Batch

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]


class ArrayInputs:
    """Samples that are held in memory: images of shape (n, height, width, channels) or features of shape (n, d).

    Parameters
    ----------
    array : array of shape (n, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.data import ArrayInputs
    >>> inputs = ArrayInputs(np.arange(6.0).reshape(3, 2))
    >>> len(inputs), inputs[np.array([2, 0])].tolist()
    (3, [[4.0, 5.0], [0.0, 1.0]])
    """

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, indices: npt.NDArray[np.intp]) -> Batch:
        return np.ascontiguousarray(self.array[indices])

    def fingerprint(self) -> str:
        """Return a hash of the values and their type."""
        digest = hashlib.sha256(f"{self.array.dtype.str} {self.array.shape}".encode())
        digest.update(np.ascontiguousarray(self.array).data)
        return digest.hexdigest()


class Texts:
    """Texts.

    Parameters
    ----------
    texts : sequence of str

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.data import Texts
    >>> texts = Texts(["Paris", "Lyon", "Rome"])
    >>> len(texts), texts[np.array([2, 0])]
    (3, ['Rome', 'Paris'])
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, indices: npt.NDArray[np.intp]) -> Batch:
        return [self.texts[i] for i in indices]

    def fingerprint(self) -> str:
        """Return a hash of the texts."""
        digest = hashlib.sha256()
        for text in map(str.encode, self.texts):
            digest.update(b"%d " % len(text) + text)
        return digest.hexdigest()


class ImageFiles:
    """Image files, decoded when they are asked for; of all that Pillow reads, as RGB.

    Parameters
    ----------
    folder : path
    names : sequence of str
        Paths below the folder, with forward slashes.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from PIL import Image
    >>> from aircl.data import ImageFiles
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("a.png", "b.png"):
    ...         Image.new("L", (4, 3), 255).save(Path(folder, name))
    ...     images = ImageFiles(folder, ["a.png", "b.png"])
    ...     print(len(images), images[np.arange(2)].shape)
    2 (2, 3, 4, 3)
    """

    def __init__(self, folder: str | os.PathLike[str], names: Sequence[str]) -> None:
        self.folder, self.names = Path(folder), names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, indices: npt.NDArray[np.intp]) -> Batch:
        return stacked([read_image(self.folder / self.names[i]) for i in indices])

    def fingerprint(self) -> str:
        """Return a hash of names and contents, for which every file is read: some 3 s for 100000 small ones."""
        digest = hashlib.sha256()
        for name in self.names:
            content = (self.folder / name).read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + hashlib.sha256(content).digest())
        return digest.hexdigest()


class UnnamedImages(ImageFiles):
    """Image files whose names do not matter: the same files elsewhere are the same samples.

    Parameters
    ----------
    folder : path
    names : sequence of str
        Paths below the folder, with forward slashes.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("a.png", "b.png"):
    ...         Image.new("L", (4, 3), 255).save(Path(folder, name))
    ...     UnnamedImages(folder, ["a.png"]).fingerprint() == UnnamedImages(folder, ["b.png"]).fingerprint()
    True
    """

    def fingerprint(self) -> str:
        """Return a hash of the contents in their order, for which every file is read."""
        digest = hashlib.sha256()
        for name in self.names:
            digest.update(hashlib.sha256((self.folder / name).read_bytes()).digest())
        return digest.hexdigest()


def read_image(path: Path) -> Pixels:
    """Return an image file as an array of shape (height, width, 3)."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return rgb(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} cannot be read as an image ({error}). Replace it or take it away.") from error


def stacked(images: list[Pixels]) -> Batch:
    """Return images as one array if they have one size, else as they are."""
    return np.stack(images) if len({image.shape for image in images}) == 1 else images


def rgb(image: Image) -> Pixels:
    """Return an image of any mode as an array of shape (height, width, 3)."""
    if image.mode.startswith("I;16"):  # Pillow would clip to 255 instead of scaling
        return np.repeat((np.asarray(image) >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    if "transparency" in image.info:  # Pillow wants it resolved before it is dropped
        image = image.convert("RGBA")
    return np.asarray(image.convert("RGB"))
