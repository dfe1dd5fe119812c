"""What a lower layer asks of an upper one, which it must not import: the package registers it when it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_make_embedding: Callable[[Any, str | None], Any] | None = None


def register_embedding(make: Callable[[Any, str | None], Any]) -> None:
    """Say how a backbone becomes a transformer from texts or images to features.

    Parameters
    ----------
    make : callable(backbone, fingerprint)
        As `embedding` is called.
    """
    global _make_embedding
    _make_embedding = make


def embedding(backbone: Any, fingerprint: str | None = None) -> Any:
    """Return a transformer from texts or images to features.

    Parameters
    ----------
    backbone : str or Backbone
        A name, or an object.
    fingerprint : str or None
        Of the backbone that it must turn out to be; None: it is not fitted, and takes any.

    Returns
    -------
    embedding : transformer
        With `fit`, `transform`, `make` and `noted`.

    Examples
    --------
    >>> from aircl.hooks import embedding
    >>> embedding("char-ngrams").fit(["Paris"]).transform(["Paris", "Lyon"]).shape
    (2, 1024)
    """
    assert _make_embedding is not None, "the package registers it"
    return _make_embedding(backbone, fingerprint)
