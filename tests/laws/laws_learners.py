"""Learners of every kind on small streams, and what tells two of them apart."""

from pathlib import Path
from zlib import crc32

import numpy as np
from sklearn.base import clone

from aircl import (
    ACILClassifier,
    AEFOCLClassifier,
    AIRClassifier,
    DSALClassifier,
    FeCAMClassifier,
    NCMClassifier,
    RanPACClassifier,
    RecursiveACILClassifier,
    SLDAClassifier,
)
from aircl.engine import Space
from aircl.expansion import RandomReLU

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

F = 12
# Room for about two packed matrices beside the workspace: the others go to files.
LIMIT = Space(F, np.float64).workspace_bytes + 2 * F * (F + 1) * 4

LEARNERS = {
    "per-class": AIRClassifier(0.5, **PAPER),
    "per-class, spilling": AIRClassifier(0.5, memory_limit=LIMIT, **PAPER),
    "shared": AIRClassifier(0.5, store="shared", **PAPER),
    "pooled": AIRClassifier(0.5, store="pooled", **PAPER),
    "pooled, spilling": AIRClassifier(0.5, store="pooled", memory_limit=LIMIT, **PAPER),
    "ledger": AIRClassifier(0.5, ledger=Path(__file__), **PAPER),  # any file of 16 bytes or more is a key
    "ledger, shared": AIRClassifier(0.5, store="shared", ledger=Path(__file__), **PAPER),
    "gamma auto": AIRClassifier(store="shared", **PAPER),
    "expansion": ACILClassifier(0.5, store="per-class", expansion=RandomReLU(15, random_state=0), calibrate=False),
    "recursive": RecursiveACILClassifier(0.5),
    "ranpac": RanPACClassifier(n_components=10, random_state=0),
    "ds-al": DSALClassifier(0.5, n_components=8, random_state=0),
    "aef-ocl": AEFOCLClassifier(0.5),
    "slda": SLDAClassifier(),
    "ncm": NCMClassifier(),
    "fecam": FeCAMClassifier(),
}
STORES = ("per-class", "per-class, spilling", "shared", "pooled", "pooled, spilling", "ledger")


def rows(seed, n=40, classes=(0, 1, 2), f=F):
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, size=n)
    return rng.normal(size=(n, f)) + np.arange(f) * 0.1 * y[:, None], y


def begun(name):
    """A learner with packed classes, one of few rows and rows that wait."""
    clf = clone(LEARNERS[name])
    clf.partial_fit(*rows(0))
    clf.partial_fit(*rows(1, n=5, classes=(3,)))
    clf.predict(rows(2)[0])  # absorbs, and remembers a solution
    return clf.partial_fit(*rows(3, n=6))


def other(name):
    return clone(LEARNERS[name]).partial_fit(*rows(7, classes=(10, 11)))


QUERY = rows(99)[0]


def look(clf):
    """Everything a user can see of a learner, in numbers."""
    if not clf.__sklearn_is_fitted__():
        return {"fitted": np.zeros(1)}
    return {
        "classes": np.asarray(clf.classes_),
        "count": np.asarray(clf.class_count_),
        "scores": np.asarray(clf._current().decision_function(QUERY)),
        "lineage": np.array([len(clf._learner.state.lineage)]),
        "ledger": ledger(clf._learner.state),
    }


def ledger(state):
    """The rows of a ledger, as small numbers: equal for equal rows only."""
    if state.ledger is None:
        return np.zeros(0)
    code = crc32(b"".join(array.tobytes() for _, array in sorted(state.ledger.arrays().items())))
    return np.array([len(state.ledger), code >> 16, code & 0xFFFF])


def differences(one, two):
    """Return the names of what differs, beyond rounding."""
    if one.keys() != two.keys() or one.get("classes", np.zeros(0)).tolist() != two.get("classes", np.zeros(0)).tolist():
        return ["classes"]
    return [
        name
        for name in one
        if one[name].shape != two[name].shape or not np.allclose(one[name], two[name], rtol=1e-7, atol=1e-7)
    ]
