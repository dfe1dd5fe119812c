"""aircl: learning from streams that never stop, never balance and may not be stored.

>>> from aircl import AIRClassifier, RandomReLU
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aircl.lazy import on_demand

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
        Snapshot,
    )
    from aircl.client import Client, ServiceError
    from aircl.embedding import Embedding
    from aircl.engine import GammaPath, StoreError
    from aircl.expansion import GaussianKernel, RandomReLU

__version__ = "0.1.0"

__all__ = [
    "ACILClassifier",
    "AEFOCLClassifier",
    "AIRClassifier",
    "Client",
    "DSALClassifier",
    "Embedding",
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
    "ServiceError",
    "Snapshot",
    "StoreError",
    "__version__",
]

__getattr__ = on_demand(
    __name__,
    {
        "classifiers": "ACILClassifier AEFOCLClassifier AIRClassifier DSALClassifier FeCAMClassifier FileError "
        "GKEALClassifier NCMClassifier RanPACClassifier RecursiveACILClassifier SLDAClassifier Snapshot",
        "embedding": "Embedding",
        "engine": "GammaPath StoreError",
        "expansion": "GaussianKernel RandomReLU",
        "client": "Client ServiceError",
    },
)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
