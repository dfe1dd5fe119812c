"""Accuracy and reliability of probabilities before and after calibration, beside logistic regression, on Banking77.

    python benchmarks/calibration.py banking77-train.csv banking77-test.csv [--width 2000]

Rows are wordllama embeddings of norm 1, whole and cut to a tail of 1/100. Accuracy is class-balanced, NLL is averaged
over classes, ECE has 15 bins and is in points. Needs wordllama.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import normalize

from aircl import AIRClassifier, RandomReLU
from aircl.backbones import create_backbone


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the embeddings and categories of a file."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    backbone = create_backbone("wordllama")
    features = backbone.forward(backbone.prepare([row["text"] for row in rows]))
    return normalize(features), np.array([row["category"] for row in rows])


def tail(y: np.ndarray, ratio: float, seed: int = 0) -> np.ndarray:
    """Return rows such that the classes, in random order, have exponentially fewer samples, 100 at the most."""
    classes = np.random.default_rng(seed).permutation(np.unique(y))
    counts = np.maximum(1, (100 * ratio ** (np.arange(len(classes)) / (len(classes) - 1))).round()).astype(int)
    return np.concatenate([np.flatnonzero(y == c)[:n] for c, n in zip(classes, counts, strict=True)])


def measure(clf: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> str:
    """Return a line of the table."""
    start = time.perf_counter()
    log_p = clf.fit(X, y).predict_log_proba(X_test)
    seconds = time.perf_counter() - start
    own = np.searchsorted(clf.classes_, y_test)
    nll = np.mean([-log_p[own == k, k].mean() for k in range(len(clf.classes_))])
    confidence, right = np.exp(log_p.max(axis=1)), log_p.argmax(axis=1) == own
    bins = np.minimum((15 * confidence).astype(int), 14)
    ece = sum(abs(right[bins == i].sum() - confidence[bins == i].sum()) for i in range(15)) / len(right)
    certain = np.mean(confidence.round(6) == 1.0)
    accuracy = balanced_accuracy_score(y_test, clf.predict(X_test))
    expected = f"{100 * clf.expected_accuracy().overall:8.1f}" if getattr(clf, "calibrate", False) else "       -"
    figures = f"{100 * accuracy:8.1f} {nll:6.2f} {100 * ece:6.1f} {100 * certain:8.1f}"
    return f"{figures} {expected} {seconds:8.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--width", type=int, default=2000, help="of the buffer")
    arguments = parser.parse_args()
    (X, y), (X_test, y_test) = read(arguments.train), read(arguments.test)
    buffer = RandomReLU(arguments.width, random_state=0)
    classifiers = {
        "logistic regression": LogisticRegression(class_weight="balanced", C=10, max_iter=1000),
        "AIR": AIRClassifier(expansion=buffer),
        "AIR calibrated": AIRClassifier(expansion=buffer, calibrate=True),
        "shared, calibrated": AIRClassifier(expansion=buffer, store="shared", calibrate=True),
        "calibrated, no buffer": AIRClassifier(calibrate=True),
    }
    print(f"{'':34} accuracy    NLL    ECE  p=1 in % expected  seconds")
    for name, rows in (("whole", np.arange(len(y))), ("tail", tail(y, 1 / 100))):
        for classifier, clf in classifiers.items():
            print(f"{name:6}{len(rows):6} {classifier:22}{measure(clf, X[rows], y[rows], X_test, y_test)}", flush=True)
