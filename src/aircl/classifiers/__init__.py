"""Classifiers with scikit-learn's face, one a file."""

from aircl.classifiers.acil import ACILClassifier
from aircl.classifiers.air import AIRClassifier
from aircl.classifiers.file import FileError

__all__ = ["ACILClassifier", "AIRClassifier", "FileError"]
