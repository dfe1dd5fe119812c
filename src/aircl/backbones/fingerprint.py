"""One hash of everything that decides a feature."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def fingerprint(weights: Mapping[str, Any], transform: Mapping[str, Any]) -> str:
    """Hash weights and transform.

    Parameters
    ----------
    weights : mapping of str to array or CPU tensor
        Names, dtypes, shapes and bytes all count; the order of the names does not.
    transform : mapping of str to JSON values
        Whatever else the features depend on, such as the input size.

    Returns
    -------
    fingerprint : str
        SHA-256, 64 hexadecimal digits.
    """
    digest = hashlib.sha256(json.dumps(transform, sort_keys=True).encode())
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
