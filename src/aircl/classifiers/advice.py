"""What to say to somebody who gives a classifier what it cannot take as rows of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from aircl.inputs import raw_samples

TEXTS = "'wordllama', 'minilm-l6', 'sentence-transformers:NAME' or 'hf:NAME'"
IMAGES = "'efficientnet-lite0', 'timm:NAME', 'hf:NAME' or 'checkpoint:FILE'"


def advice_on(X: Any, name: str) -> str | None:
    """Return what X is and how a classifier of this name takes it, if it is texts, images or lists in a column.

    Parameters
    ----------
    X : object
        What was refused.
    name : str

    Examples
    --------
    >>> from aircl import AIRClassifier
    >>> AIRClassifier().fit(["where is my card", "which rate"], ["card", "rate"])
    Traceback (most recent call last):
    ValueError: X holds texts ('where is my card'), and AIRClassifier learns from numbers. Name what makes features of \
texts: AIRClassifier(backbone=...) with 'wordllama', 'minilm-l6', 'sentence-transformers:NAME' or 'hf:NAME'; `aircl \
list backbones` says which there are.
    """
    if isinstance(X, str):
        return f"X is one text ({X[:40]!r}). Put it in a list. {_named(name, 'texts', TEXTS)}"
    samples = raw_samples(X)
    if len(shape := _nested_shape(X) if samples is None else getattr(X, "shape", ())) > 2:
        return (
            f"Found array with dim {len(shape)}: X has the shape {tuple(shape)}, and {name} learns from rows of "
            f"numbers, (n, f). {_named(name, 'images', IMAGES)} They take uint8 arrays of shape (n, height, width, "
            "channels). Or make rows of the numbers: X.reshape(len(X), -1)."
        )
    if samples is not None:
        first = samples[0]
        if isinstance(first, str):
            return f"X holds texts ({first[:40]!r}), and {name} learns from numbers. {_named(name, 'texts', TEXTS)}"
        return f"X holds images ({type(first).__name__}), not numbers. {_named(name, 'images', IMAGES)}"
    is_frame_or_tensor = hasattr(X, "columns") or hasattr(X, "detach")
    cells = np.asarray(X) if hasattr(X, "__array__") and not is_frame_or_tensor else np.zeros(0)
    if cells.dtype == object and cells.shape and len(cells) and isinstance(cells.flat[0], list | tuple | np.ndarray):
        return (
            f"X holds a list in every cell, and {name} takes rows of numbers, (n, f). Make rows of them: np.stack(X)."
        )
    if hasattr(X, "columns") and hasattr(X, "shape") and X.shape[0]:
        for column in X.columns:
            cell = np.asarray(X[column])[0]
            if isinstance(cell, list | tuple | np.ndarray):
                return (
                    f"column {column!r} holds lists, and {name} takes one number per cell. Make rows of them: "
                    f"np.stack(X[{column!r}])."
                )
            if isinstance(cell, str):
                return (
                    f"column {column!r} holds texts ({cell[:40]!r}), and {name} learns from numbers. Leave it out, or "
                    f"give that column alone, X[{column!r}]. {_named(name, 'texts', TEXTS)}"
                )
    return None


def _nested_shape(X: Any) -> tuple[int, ...]:
    """Return the shape of an array, or of lists of lists as long as their neighbours."""
    try:
        return np.shape(X) if isinstance(X, list | tuple) else tuple(getattr(X, "shape", ()))
    except ValueError:
        return ()


def _named(name: str, kind: str, backbones: str) -> str:
    return (
        f"Name what makes features of {kind}: {name}(backbone=...) with {backbones}; `aircl list backbones` says which "
        "there are."
    )
