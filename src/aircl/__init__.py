"""aircl: learning from streams that never stop, never balance and may not be stored.

>>> from aircl import AIRClassifier, RandomReLU
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aircl.classifiers import (
        ACILClassifier,
        AEFOCLClassifier,
        AIRClassifier,
        DSALClassifier,
        FeCAMClassifier,
        FileError,
        GKEALClassifier,
        NCMClassifier,
        RanPACClassifier,
        RecursiveACILClassifier,
        SLDAClassifier,
    )
    from aircl.engine import GammaPath, StoreError
    from aircl.expansion import GaussianKernel, RandomReLU

__version__ = "0.1.0"

__all__ = [
    "ACILClassifier",
    "AEFOCLClassifier",
    "AIRClassifier",
    "DSALClassifier",
    "FeCAMClassifier",
    "FileError",
    "GKEALClassifier",
    "GammaPath",
    "GaussianKernel",
    "NCMClassifier",
    "RanPACClassifier",
    "RandomReLU",
    "RecursiveACILClassifier",
    "SLDAClassifier",
    "StoreError",
    "__version__",
]

_HOMES = {
    "ACILClassifier": "aircl.classifiers",
    "AEFOCLClassifier": "aircl.classifiers",
    "AIRClassifier": "aircl.classifiers",
    "DSALClassifier": "aircl.classifiers",
    "FeCAMClassifier": "aircl.classifiers",
    "FileError": "aircl.classifiers",
    "GKEALClassifier": "aircl.classifiers",
    "GammaPath": "aircl.engine",
    "GaussianKernel": "aircl.expansion",
    "NCMClassifier": "aircl.classifiers",
    "RanPACClassifier": "aircl.classifiers",
    "RandomReLU": "aircl.expansion",
    "RecursiveACILClassifier": "aircl.classifiers",
    "SLDAClassifier": "aircl.classifiers",
    "StoreError": "aircl.engine",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: `aircl --help` can do without the second that takes."""
    if name not in _HOMES:
        raise AttributeError(f"module 'aircl' has no attribute {name!r}")
    try:
        home = import_module(_HOMES[name])
    except AttributeError as error:  # as it is, it would read as if there were no such name
        raise ImportError(f"{_HOMES[name]} cannot be imported: {error}") from error
    return getattr(home, name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
