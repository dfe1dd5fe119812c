"""Embeddings that arrive day by day, with classes that were not there the day before.

One sees two learners that are given the same batches by `partial_fit`. No sample is kept. Digits stand for embeddings;
on the last day a rare class comes, of which there are six samples. AIR gives it the same weight as the others. ACIL, in
which every sample weighs the same, misses most of it.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from aircl import ACILClassifier, AIRClassifier, RandomReLU

DAYS = ([0, 1, 2, 3], [4, 5, 6], [7, 8, 9])  # the classes that each day brings
RARE, FEW = 9, 6
BATCH = 32


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.4, stratify=y, random_state=0)
    rare = np.flatnonzero(y == RARE)
    X, y = np.delete(X, rare[FEW:], axis=0), np.delete(y, rare[FEW:])

    learners = {
        "AIR": AIRClassifier(expansion=RandomReLU(800, random_state=0)),
        "ACIL": ACILClassifier(expansion=RandomReLU(800, random_state=0)),
    }
    print("Recall in %, mean over the classes known so far\n")
    print("day  classes known         " + "".join(f"{name:>7}" for name in learners))
    for day, new in enumerate(DAYS, 1):
        rows = np.random.default_rng(day).permutation(np.flatnonzero(np.isin(y, new)))
        for batch in np.split(rows, range(BATCH, len(rows), BATCH)):
            for learner in learners.values():
                learner.partial_fit(X[batch], y[batch])
        known = learners["AIR"].classes_  # they grow by themselves
        asked = np.isin(y_test, known)
        recall = {
            name: 100 * recall_score(y_test[asked], learner.predict(X_test[asked]), average=None)
            for name, learner in learners.items()
        }
        shown = " ".join(map(str, known))
        print(f"{day:3d}  {shown:22s}" + "".join(f"{values.mean():7.1f}" for values in recall.values()))

    print(f"\nThe rare class, digit {RARE}: {FEW} of {len(y)} training samples")
    for name, values in recall.items():
        print(f"{name:5s} recognises {values[known == RARE][0]:.0f} % of its {np.sum(y_test == RARE)} test samples")


if __name__ == "__main__":
    main()
