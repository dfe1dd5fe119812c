"""AIR against ACIL on long-tailed digits: the same engine, the same stream, one difference, the class weights."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from aircl import ACILClassifier, AIRClassifier

SEEDS = range(5)
BATCH = 64


def long_tailed_digits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Keep 88 samples of digit 0, fewer of every next digit, 4 of digit 9; the test set stays balanced."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=seed)
    counts = np.geomspace(88, 4, 10).astype(int)
    keep = np.concatenate([np.flatnonzero(y_train == digit)[: counts[digit]] for digit in range(10)])
    keep = np.random.default_rng(seed).permutation(keep)
    return X_train[keep], y_train[keep], X_test, y_test


def main() -> None:
    recalls = {"AIR": [], "ACIL": []}
    for seed in SEEDS:
        X, y, X_test, y_test = long_tailed_digits(seed)
        learners = {
            "AIR": AIRClassifier(random_state=seed),
            "ACIL": ACILClassifier(random_state=seed),
        }
        for name, learner in learners.items():
            for start in range(0, len(X), BATCH):  # one pass, in batches, no sample is kept
                learner.partial_fit(X[start : start + BATCH], y[start : start + BATCH])
            recalls[name].append(recall_score(y_test, learner.predict(X_test), average=None))

    counts = np.unique(y, return_counts=True)[1]
    print(f"Long-tailed digits, {len(X)} training samples, mean of {len(SEEDS)} seeds, accuracy in %\n")
    print("digit            " + "".join(f"{digit:6d}" for digit in range(10)) + "   all (class-balanced)")
    print("training samples " + "".join(f"{count:6d}" for count in counts))
    for name, rows in recalls.items():
        per_class = 100 * np.mean(rows, axis=0)
        print(f"{name:17s}" + "".join(f"{value:6.1f}" for value in per_class) + f"   {per_class.mean():.1f}")


if __name__ == "__main__":
    main()
