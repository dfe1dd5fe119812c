"""Classifiers with scikit-learn's API, one per file."""

from aircl.classifiers.acil import ACILClassifier
from aircl.classifiers.acil_recursive import RecursiveACILClassifier
from aircl.classifiers.aefocl import AEFOCLClassifier
from aircl.classifiers.air import AIRClassifier
from aircl.classifiers.decisions import Decisions
from aircl.classifiers.dsal import DSALClassifier
from aircl.classifiers.export import load_export
from aircl.classifiers.fecam import FeCAMClassifier
from aircl.classifiers.file import FileError
from aircl.classifiers.gkeal import GKEALClassifier
from aircl.classifiers.ncm import NCMClassifier
from aircl.classifiers.ranpac import RanPACClassifier
from aircl.classifiers.slda import SLDAClassifier
from aircl.classifiers.snapshot import Snapshot

__all__ = [
    "ACILClassifier",
    "AEFOCLClassifier",
    "AIRClassifier",
    "DSALClassifier",
    "Decisions",
    "FeCAMClassifier",
    "FileError",
    "GKEALClassifier",
    "NCMClassifier",
    "RanPACClassifier",
    "RecursiveACILClassifier",
    "SLDAClassifier",
    "Snapshot",
    "load_export",
]
