"""What else learns as rows arrive: nearest neighbours, and river, beside AIR, on the sets of panel.py.

    python benchmarks/alternatives.py --banking77 TRAIN.csv TEST.csv [--only NAME] [--results FILE.jsonl]

Nearest neighbours are what a vector database answers with: every row is kept, the k nearest by cosine vote, weighted by
similarity, and k is the best of five by cross-validation on training rows. river's models learn row by row, in one pass
over the shuffled rows, with river's defaults; without river they are left out. Accuracy and NLL are averaged over
classes; seconds are processor time of one thread (set OMP_NUM_THREADS=1); "kept" is memory: of rows for the
neighbours, of statistics for AIR. For river it was not measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
from panel import Split, quality, seconds, sets
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from aircl import AIRClassifier


class Neighbours:
    """k nearest neighbours by cosine, with the best of five k."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        common = np.isin(y, [label for label, n in zip(*np.unique(y, return_counts=True), strict=True) if n >= 5])
        models = [self.model(k) for k in (1, 3, 5, 10, 20)]
        scores = [cross_val_score(m, X[common], y[common], cv=folds, scoring="balanced_accuracy") for m in models]
        self.best = models[int(np.argmax([score.mean() for score in scores]))]

    @staticmethod
    def model(k: int) -> KNeighborsClassifier:
        similar = lambda distance: 1.0 - distance + 1e-9  # noqa: E731 (cosine similarity, which embeddings have above 0)
        return KNeighborsClassifier(k, metric="cosine", weights=similar, algorithm="brute")

    def fit(self, X: np.ndarray, y: np.ndarray) -> KNeighborsClassifier:
        return self.best.fit(X, y)


class OneByOne:
    """A model of river with the methods of scikit-learn."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> OneByOne:
        self.classes_ = np.unique(y)
        for i in np.random.default_rng(0).permutation(len(y)):
            self.model.learn_one(self.row(X[i]), y[i].item())
        return self

    @staticmethod
    def row(x: np.ndarray) -> dict[int, float]:
        return dict(enumerate(x.tolist()))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        found = [self.model.predict_proba_one(self.row(x)) for x in X]
        return np.array([[p.get(label.item(), 0.0) for label in self.classes_] for p in found])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def river_models() -> dict[str, Any]:
    """Return models by name; none, if river is not installed."""
    if importlib.util.find_spec("river") is None:
        return {}
    from river import forest, linear_model, preprocessing

    return {
        "river: softmax regression": OneByOne(preprocessing.StandardScaler() | linear_model.SoftmaxRegression()),
        "river: adaptive random forest": OneByOne(forest.ARFClassifier(seed=0)),
    }


def measure(name: str, model: Any, split: Split) -> dict[str, float]:
    """Return quality and processor seconds: to learn, and to answer 1000 rows."""
    X, y, X_test, y_test = split
    learning, clf = seconds(lambda: model.fit(X, y))
    clf.predict(X_test[:1])  # AIR solves when it is asked for the first time: that is not the cost of an answer
    answering, _ = seconds(lambda: clf.predict_proba(X_test[:1000]))
    found = quality(clf, X_test, y_test)
    found |= {"learn s": learning, "answer s": answering * 1000 / min(1000, len(X_test))}
    if name == "nearest neighbours":
        found |= {"state": X.nbytes + y.nbytes, "k": clf.n_neighbors}
    elif name.startswith("AIR"):
        found["state"] = clf.nbytes_
    return found


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def table(results: list[dict[str, Any]]) -> str:
    """Return means over seeds as Markdown."""
    columns = (("accuracy", 100, 1), ("NLL", 1, 2), ("learn s", 1, 2), ("answer s", 1, 3), ("state", 1e-3, 0))
    lines = ["| set | classifier | accuracy | NLL | learn s | 1000 answers s | kept kB |", "|---|---|" + "--:|" * 5]
    for name, classifier in dict.fromkeys((row["set"], row["classifier"]) for row in results):
        rows = [row for row in results if (row["set"], row["classifier"]) == (name, classifier)]
        cells = []
        for key, factor, digits in columns:
            values = [row[key] for row in rows if key in row]
            cells.append(f"{factor * np.mean(values):.{digits}f}" if values else "-")
        lines.append(f"| {name} | {classifier} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banking77", type=Path, nargs=2, metavar=("TRAIN", "TEST"))
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=Path("alternatives.jsonl"))
    arguments = parser.parse_args()
    arguments.cifar100 = arguments.cities = None
    results = read(arguments.results)
    done = {(row["set"], row["seed"], row["classifier"]) for row in results}
    for name, seed, load in sets(arguments):
        if arguments.only not in name or seed >= arguments.seeds or name in ("iris", "wine"):
            continue
        split = load()
        models: dict[str, Any] = {"AIRClassifier()": AIRClassifier(), "nearest neighbours": None}
        if name.startswith("digits"):  # wider rows of more classes take river minutes
            models |= river_models()
        for classifier, model in models.items():
            if (name, seed, classifier) in done:
                continue
            found = measure(classifier, model or Neighbours(*split[:2]), split)
            results.append({"set": name, "seed": seed, "classifier": classifier, **found})
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(results[-1]) + "\n")
            print(json.dumps(results[-1]), flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
