"""aircl: learning from streams that never stop, never balance and may not be stored.

>>> from aircl import AIRClassifier, RandomReLU
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aircl.hooks import register_embedding
from aircl.lazy import on_demand

if TYPE_CHECKING:
    from aircl.classifiers import (
        ACILClassifier,
        AEFOCLClassifier,
        AIRClassifier,
        Decisions,
        DSALClassifier,
        FeCAMClassifier,
        FileError,
        GKEALClassifier,
        NCMClassifier,
        RanPACClassifier,
        RecursiveACILClassifier,
        SLDAClassifier,
        Snapshot,
        load_export,
    )
    from aircl.client import Client, ServiceError
    from aircl.embedding import Embedding
    from aircl.engine import GammaPath, LedgerError, LedgerWarning, StoreError
    from aircl.expansion import GaussianKernel, RandomReLU

__version__ = "0.2.0"

__all__ = [
    "ACILClassifier",
    "AEFOCLClassifier",
    "AIRClassifier",
    "Client",
    "DSALClassifier",
    "Decisions",
    "Embedding",
    "FeCAMClassifier",
    "FileError",
    "GKEALClassifier",
    "GammaPath",
    "GaussianKernel",
    "LedgerError",
    "LedgerWarning",
    "NCMClassifier",
    "RanPACClassifier",
    "RandomReLU",
    "RecursiveACILClassifier",
    "SLDAClassifier",
    "ServiceError",
    "Snapshot",
    "StoreError",
    "__version__",
    "load_export",
]

__getattr__ = on_demand(
    __name__,
    {
        "classifiers": "ACILClassifier AEFOCLClassifier AIRClassifier DSALClassifier Decisions FeCAMClassifier "
        "FileError GKEALClassifier NCMClassifier RanPACClassifier RecursiveACILClassifier SLDAClassifier Snapshot "
        "load_export",
        "embedding": "Embedding",
        "engine": "GammaPath LedgerError LedgerWarning StoreError",
        "expansion": "GaussianKernel RandomReLU",
        "client": "Client ServiceError",
    },
)


def _embedding(backbone: Any, fingerprint: str | None) -> Any:
    """Give classifiers, which know nothing of backbones, what makes features of texts and images."""
    from aircl.embedding import Embedding

    return Embedding.of(backbone, fingerprint)


register_embedding(_embedding)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
