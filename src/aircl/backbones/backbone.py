"""What a backbone is: a frozen function from inputs to features."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from aircl.inputs import Batch, Kind
from aircl.storage.errors import InputError

Features = npt.NDArray[np.float32]


class BackboneError(InputError):
    """A backbone cannot be made: a package is missing, or a file of weights is not what it should be.

    Examples
    --------
    >>> from aircl.backbones import create_backbone
    >>> create_backbone("checkpoint:deit.pth")  # needs torch  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.backbones.backbone.BackboneError: deit.pth does not exist or is not a file. A backbone ...
    """


class Backbone(Protocol):
    """A frozen feature extractor with a transform of its own.

    Attributes
    ----------
    name : str
        As it was asked for, such as "efficientnet-lite0".
    kinds : tuple of {"images", "texts", "features"}
        What it takes.
    width : int
        Number of features.
    fingerprint : str
        Hash of weights and transform: equal fingerprints give equal features.
    batch_size : int
        How many inputs it likes to be given at a time.

    Examples
    --------
    A backbone of one's own needs no base class. This one sees how bright an image is:

    >>> import numpy as np
    >>> class Brightness:
    ...     name, fingerprint = "brightness", "brightness 1"
    ...     kinds, width, batch_size = ("images",), 1, 256
    ...     def prepare(self, inputs):
    ...         return [np.asarray(image, np.float32) / 255 for image in inputs]
    ...     def forward(self, prepared):
    ...         return np.array([[image.mean()] for image in prepared], np.float32)
    >>> backbone = Brightness()
    >>> images = np.zeros((2, 8, 8, 3), np.uint8)
    >>> images[1] = 51
    >>> print(backbone.forward(backbone.prepare(images)).round(2))
    [[0. ]
     [0.2]]
    """

    name: str
    kinds: tuple[Kind, ...]
    width: int
    fingerprint: str
    batch_size: int

    def prepare(self, inputs: Batch) -> Any:
        """Transform a batch (resize, normalise, tokenise); may run in another thread than `forward`."""
        ...

    def forward(self, prepared: Any) -> Features:
        """Return the features of a prepared batch, shape (n, width); row i depends on input i alone."""
        ...


def check_backbone(backbone: Any) -> Backbone:
    """Return an object that has the protocol, or say what it lacks.

    Parameters
    ----------
    backbone : object

    Examples
    --------
    >>> from aircl.backbones.backbone import check_backbone
    >>> check_backbone(len)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.backbones.backbone.BackboneError: backbone=<built-in function len> is neither a name ...
    """
    needed = (*Backbone.__annotations__, "prepare", "forward")
    if lacking := [name for name in needed if not hasattr(backbone, name)]:
        raise BackboneError(
            f"backbone={backbone!r:.60} is neither a name of `aircl list backbones` nor an object with the Backbone "
            f"protocol: it lacks {', '.join(lacking)}."
        )
    checked: Backbone = backbone
    return checked
