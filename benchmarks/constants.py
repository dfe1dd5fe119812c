"""How the constants of calibration and novelty were chosen: on training data alone.

    python benchmarks/constants.py --banking77 banking77-train.csv [--only calibration] [--constant TAILS]

Every constant is changed alone, the others being as they are in the package, and every line is a value of one. Half of
the rows is learned and the other half judged: of digits (whole, and cut to a tail of 1/20 and to ten a class), breast
cancer, docstrings of NumPy, SciPy and scikit-learn, whose modules are their classes (embedded by wordllama; a natural
tail of 233 to 4), and Banking77's training file (whole and cut to a tail of 1/10). Banking77's test file and all of
CIFAR-100, cities, iris and wine have no part in it: docs/against-retraining.md measures there what was chosen here.

Calibration: the NLL against that of the constants as they are, in %, and what is expected too much, in points of
accuracy, with its mean size. Novelty: the rows of known classes that are flagged at 0.05, in %, as mean and range, and
the AUROC of a fifth of the classes which was not learned. All are means over sets and stores.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from panel import Split, cut, halves, read_banking77, tail
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from aircl import AIRClassifier
from aircl.engine import calibration, novelty
from aircl.engine.gamma import Criterion

STORES = ("per-class", "shared")
VALUES: dict[str, dict[str, tuple[float, ...]]] = {
    "calibration": {
        "TAILS": (3.0, 5.0, 8.0, 30.0),
        "PRIOR": (3.0, 10.0, 30.0),
        "PRIOR_SHAPE": (0.0, 0.25, 0.5, 0.75, 1.0),
        "VARIED": (1.5, 2.0, 3.0, 5.0),
        "WIDEST": (1.0, 4.0 / 3.0, 5.0 / 3.0, 2.0),
        "PENALTY": (0.001, 0.01, 0.1),
    },
    "novelty": {
        "RIDGE": (0.25, 0.5, 1.0),
        "BACKGROUND": (0.1, 0.2, 0.5),
        "SPREAD": (0.3, 0.42, 0.6),
        "STRAY": (0.3, 0.5, 0.7),
        "PRIOR_ALONG": (0.04, 0.06, 0.08),
        "PRIOR_WIDENING": (0.1, 0.15, 0.2),
    },
}


# -- sets --
def docstrings(fewest: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings of the beginnings of docstrings, and the modules that they are in."""
    from aircl.backbones import create_backbone

    modules: dict[str, set[str]] = {}
    for package in ("numpy", "scipy", "sklearn"):
        for entry in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if entry.name.startswith("_") or "test" in entry.name:
                continue
            try:
                module = importlib.import_module(f"{package}.{entry.name}")
            except ImportError:
                continue
            for name, member in vars(module).items():
                if name.startswith("_") or not callable(member):
                    continue
                own = vars(member).items() if inspect.isclass(member) and member.__module__.startswith(package) else ()
                for thing in (member, *(value for key, value in own if not key.startswith("_") and callable(value))):
                    if text := " ".join((inspect.getdoc(thing) or "").split())[:300]:
                        modules.setdefault(text, set()).add(module.__name__)
    texts = sorted(text for text, found in modules.items() if len(found) == 1)  # of one module only
    y = np.array([next(iter(modules[text])) for text in texts])
    names, count = np.unique(y, return_counts=True)
    kept = np.flatnonzero(np.isin(y, names[count >= fewest]))
    backbone = create_backbone("wordllama")
    return backbone.forward(backbone.prepare([texts[i] for i in kept])), y[kept]


def parts(X: np.ndarray, y: np.ndarray) -> Split:
    """Return a half to learn and a half to judge."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    return X, y, X_test, y_test


def sets(train: Path | None) -> Iterator[tuple[str, Split]]:
    """Yield names and splits."""
    for seed in (0, 1):
        split = halves(load_digits(), seed)
        yield "digits", split
        yield "digits, tail", cut(split, tail(split[1], 1 / 20, 80, seed))
        yield "digits, few", cut(split, tail(split[1], 1.0, 10, seed))
        yield "breast cancer", halves(load_breast_cancer(), seed, scaled=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "docstrings", parts(*docstrings())
    if train is not None:
        split = parts(*read_banking77(train))
        yield "Banking77", split
        yield "Banking77, tail", cut(split, tail(split[1], 1 / 10, 60))


# -- measures --
class Calibrated:
    """A set learned by a store, to be calibrated again with other constants."""

    def __init__(self, split: Split, store: str) -> None:
        X, y, X_test, y_test = split
        clf = AIRClassifier(store=store).fit(X, y)
        solution = clf._solution()
        self.problem, self.W = solution.problem, solution.W
        trial = Criterion(solution.problem).at(solution.gamma)
        self.told = trial.trace, trial.leverage
        self.scores = clf.expand(X_test) @ solution.W
        self.own = np.searchsorted(np.unique(y), y_test)

    def measure(self) -> tuple[float, float]:
        """Return the NLL, averaged over classes, and what is expected minus what is measured."""
        found = calibration.calibrate(self.problem, self.W, *self.told)
        log_p = log_softmax((self.scores + found.b) / found.temperature, axis=1)
        each = [self.own == k for k in np.unique(self.own)]
        right = np.mean([(log_p[rows].argmax(axis=1) == self.own[rows]).mean() for rows in each])
        nll = np.mean([-log_p[rows, self.own[rows]].mean() for rows in each])
        return float(nll), float(found.share @ found.predicted(found.b)[:, 0] - right)


class Unknown:
    """A set of which a fifth of the classes was not learned."""

    def __init__(self, split: Split, store: str) -> None:
        X, y, X_test, y_test = split
        classes = np.random.default_rng(0).permutation(np.unique(y))
        unknown = classes[: len(classes) // 5]
        known = ~np.isin(y, unknown)
        clf = AIRClassifier(store=store, calibrate=False).fit(X[known], y[known])
        self.problem, self.features = clf._solution().problem, clf.expand(X_test)
        self.unknown = np.isin(y_test, unknown)

    def measure(self) -> tuple[float, float]:
        """Return the share of known rows that is flagged at 0.05, and the AUROC; NaN if all classes were learned."""
        model = novelty.novelty(self.problem)
        share = model.share(model.distance(self.features), np.ones(len(self.problem.count)))
        auroc = roc_auc_score(self.unknown, -share) if self.unknown.any() else np.nan
        return float((share[~self.unknown] < 0.05).mean()), float(auroc)


def report(part: str, found: np.ndarray, reference: np.ndarray) -> str:
    """Return a line of the table, of two figures for every set and store."""
    first, second = found.T
    if part == "calibration":
        nll = 100 * np.log(first / reference[:, 0])
        return (
            f"NLL {nll.mean():+6.1f} % ({nll.min():+.1f} to {nll.max():+.1f}), "
            f"expected {100 * second.mean():+5.1f} (size {100 * np.abs(second).mean():.1f})"
        )
    size = np.abs(np.log(first.clip(min=1e-3) / 0.05)).mean()
    flagged = f"flagged {100 * first.mean():5.1f} ({100 * first.min():.1f} to {100 * first.max():.1f})"
    return f"{flagged}, off by a factor of {np.exp(size):.2f}, AUROC {100 * np.nanmean(second):.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banking77", type=Path, metavar="TRAIN")
    parser.add_argument("--only", choices=sorted(VALUES))
    parser.add_argument("--constant", help="one constant only")
    parser.add_argument("--sets", action="store_true", help="print every set with the constants as they are")
    arguments = parser.parse_args()
    every = list(sets(arguments.banking77))
    for part, module, kind in (("calibration", calibration, Calibrated), ("novelty", novelty, Unknown)):
        if arguments.only not in (None, part):
            continue
        cases: list[Any] = [kind(split, store) for _, split in every for store in STORES]
        reference = np.array([case.measure() for case in cases])
        print(f"{part + ' as it is':28} {report(part, reference, reference)}", flush=True)
        if arguments.sets:
            for (name, store), row in zip([(n, s) for n, _ in every for s in STORES], reference, strict=True):
                print(f"  {name:16} {store:10} {row[0]:.3f} {row[1]:+.3f}")
        for constant, values in VALUES[part].items():
            if arguments.constant not in (None, constant):
                continue
            before = getattr(module, constant)
            for value in values:
                setattr(module, constant, value)
                found = np.array([case.measure() for case in cases])
                print(
                    f"{constant:14} {value:<6.4g} {'*' if value == before else ' ':6} {report(part, found, reference)}",
                    flush=True,
                )
            setattr(module, constant, before)
