"""Two sites learn apart, a server merges what they learned, and a class is forgotten, all of it exactly.

One sees that the server, which gets two files of statistics and no row, ends with the classifier that a fit on the rows
of both would give, and that after `forget` it is the classifier that never saw the class. What differs is rounding.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from aircl import AIRClassifier, RandomReLU

FORGOTTEN = 9


def learner() -> AIRClassifier:
    """All settings are the same everywhere, the seed of the expansion too; what does not fit is not merged."""
    return AIRClassifier(expansion=RandomReLU(300, random_state=0))


def difference(one: AIRClassifier, other: AIRClassifier) -> float:
    """Return the largest difference of two classifiers' weights, relative to the largest weight."""
    return float(np.abs(one.coef_ - other.coef_).max() / np.abs(other.coef_).max())


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=0)
    sites = {"north": y < 6, "south": y >= 4}  # both have fours and fives
    sites["south"] &= np.arange(len(y)) % 2 == 0
    sites["north"] &= ~sites["south"]

    with TemporaryDirectory() as folder:
        for name, rows in sites.items():
            learner().fit(X[rows], y[rows]).save(Path(folder, f"{name}.safetensors"))
            print(f"{name}: {rows.sum()} rows of the digits {' '.join(map(str, np.unique(y[rows])))}")
        server = learner()
        for file in sorted(Path(folder).iterdir()):
            server.merge(AIRClassifier.load(file))

    everything = sites["north"] | sites["south"]
    joint = learner().fit(X[everything], y[everything])
    print(f"server: accuracy {server.score(X_test, y_test):.3f}, the joint fit's {joint.score(X_test, y_test):.3f}")
    print(f"largest difference to the joint fit: {difference(server, joint):.0e}")

    server.forget(classes=[FORGOTTEN])
    kept = everything & (y != FORGOTTEN)
    never = learner().fit(X[kept], y[kept])
    print(f"after forgetting {FORGOTTEN}: classes {' '.join(map(str, server.classes_))}")
    print(f"largest difference to a fit that never saw a {FORGOTTEN}: {difference(server, never):.0e}")


if __name__ == "__main__":
    main()
