"""Texts and images of requests: checked before a backbone sees them."""

from __future__ import annotations

import base64
import binascii
import warnings
from collections.abc import Iterable
from io import BytesIO
from typing import Any

from aircl.backbones import catalogue
from aircl.data.samples import rgb
from aircl.inputs import Kind, Samples
from aircl.serve.errors import RefusedError

# What browsers show, and cameras make; other decoders of Pillow are never reached.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")

_KINDS: tuple[Kind, ...] = ("texts", "images", "features")


class Images(Samples):
    """Images as arrays, beside the files that they were decoded from.

    Attributes
    ----------
    files : list of bytes
    """

    files: list[bytes]


def kinds_of(backbone: Any) -> tuple[Kind, ...]:
    """Return what a model with this backbone, or without one, is sent.

    >>> kinds_of(None), kinds_of("char-ngrams"), kinds_of("efficientnet-lite0")
    (('features',), ('texts',), ('images',))
    """
    if backbone is None:
        return ("features",)
    kinds = catalogue.kinds_of(backbone) if isinstance(backbone, str) else backbone.kinds
    return tuple(kind for kind in _KINDS if kind in kinds)


def decode_images(texts: list[str], max_rows: int, max_pixels: int) -> Images:
    """Return images that are sent as base64 texts.

    Parameters
    ----------
    texts : list of str
        Files; "data:image/png;base64," may stand before them, as browsers write it.
    max_rows, max_pixels : int
        How many there may be, and how many pixels they may have together. They are counted before any is decoded.

    Returns
    -------
    images : Images
    """
    if not 0 < len(texts) <= max_rows:
        raise RefusedError(f"{len(texts)} images are sent; 1 to {max_rows} are possible.", 413 if texts else 422)
    try:
        files = [base64.b64decode(text.rpartition(",")[2], validate=True) for text in texts]
    except (binascii.Error, ValueError):
        raise RefusedError("an image is not base64.") from None
    return images_of(files, max_pixels)


def images_of(files: Iterable[bytes], max_pixels: int | None = None) -> Images:
    """Decode files of images."""
    from PIL import Image

    files = list(files)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of sizes beyond Pillow's own limit, and of damaged metadata
            opened = [Image.open(BytesIO(file), formats=FORMATS) for file in files]
            pixels = sum(image.width * image.height for image in opened)
            if max_pixels is not None and pixels > max_pixels:
                raise RefusedError(f"the images have {pixels} pixels; {max_pixels} are possible in a request.", 413)
            images = Images(rgb(image) for image in opened)
    except RefusedError:
        raise
    except Exception:  # whatever decoders make of bytes that anybody may send
        raise RefusedError(f"an image cannot be read. Send {', '.join(FORMATS)}, whole files.") from None
    images.files = files
    return images
