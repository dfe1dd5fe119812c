"""How FeCAM's shrinkage="auto" was chosen: on training samples, part of which are held out. No test sample is seen.

python benchmarks/fecam_shrinkage.py [--features FILE.npz ...]

Always: the first 900 digits, five seeds. A file has `X` and `y`, training samples of many classes, as long-tailed as
they are, with 15 of every class to hold out and some more to learn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from unittest import mock

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score

from aircl import FeCAMClassifier
from aircl.classifiers import fecam

FIXED = (1.0, 10.0, 100.0)
FACTORS = (0.1, 0.2, 0.3, 0.5)
HELD_OUT = 15

Part = tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def digits() -> Iterator[Part]:
    """Yield long-tailed and balanced draws, what is learned and what is held out."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:900] / 16, y[:900]
    draws = {
        "60 to 2": [round(60 * (2 / 60) ** (i / 9)) for i in range(10)],
        "80 to 5": [80 >> i // 2 for i in range(10)],
        **{f"{n} each": [n] * 10 for n in (5, 20, 70)},
    }
    for name, counts in draws.items():
        for seed in range(5):
            random = np.random.default_rng(seed)
            rows, labels = random.permutation(900), random.permutation(10)
            keep = np.concatenate([rows[y[rows] == labels[i]][:n] for i, n in enumerate(counts)])
            rest = np.setdiff1d(rows, keep)
            yield f"digits, {name}", X[keep], y[keep], X[rest], y[rest]


def from_file(path: str) -> Iterator[Part]:
    """Yield all there is, and as many samples of every class that has them."""
    with np.load(path) as file:
        X, y = file["X"], file["y"]
    for shots in (None, 4, 20, 100):
        random, keep, rest = np.random.default_rng(0), [], []
        for label in np.unique(y):
            rows = random.permutation(np.flatnonzero(y == label))
            if len(rows) >= HELD_OUT + (shots or 1):
                rest.append(rows[:HELD_OUT])
                keep.append(rows[HELD_OUT:][:shots])
        if len(keep) > 1:
            learned, held = np.concatenate(keep), np.concatenate(rest)
            name = "all" if shots is None else f"{shots} each"
            yield f"{path}, {name}", X[learned], y[learned], X[held], y[held]


def scores(X: np.ndarray, y: np.ndarray, X_held: np.ndarray, y_held: np.ndarray) -> dict[str, float]:
    """Return the mean accuracy of the classes for every shrinkage; the statistics are learned once."""
    clf = FeCAMClassifier().fit(X, y)

    def score() -> float:
        return 100 * float(balanced_accuracy_score(y_held, clf.refresh().predict(X_held)))

    result = {}
    for alpha in FIXED:
        clf.set_params(shrinkage=alpha)
        result[f"{alpha:g}"] = score()
    clf.set_params(shrinkage="auto")
    for factor in FACTORS:
        with mock.patch.object(fecam, "AUTO", factor):
            result[f"{factor:g} f/n"] = score()
    clf.set_params(shrinkage=1.0, rounds=1, normalize=False)
    return result | {"version 0.1": score()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", nargs="*", default=[], metavar="FILE.npz")
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {}
    for name, *part in [*digits(), *(part for path in options.features for part in from_file(path))]:
        found.setdefault(name, []).append(scores(*part))
    columns = list(next(iter(found.values()))[0])
    width = max(map(len, found))
    print(" " * width, *(f"{column:>11}" for column in columns))
    for name, results in found.items():
        means = (np.mean([result[column] for result in results]) for column in columns)
        print(f"{name:<{width}}", *(f"{mean:11.1f}" for mean in means))


if __name__ == "__main__":
    main()
