"""aircl: learning from streams that never stop, never balance and may not be stored.

>>> from aircl import AIRClassifier, RandomReLU
"""

from aircl.classifiers import ACILClassifier, AIRClassifier, FileError
from aircl.engine import StoreError
from aircl.expansion import GaussianKernel, RandomReLU

__version__ = "0.1.0"

__all__ = [
    "ACILClassifier",
    "AIRClassifier",
    "FileError",
    "GaussianKernel",
    "RandomReLU",
    "StoreError",
    "__version__",
]
