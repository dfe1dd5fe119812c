"""What each of the classifier's defaults adds: the buffer, rows of norm 1, intercept and temperature.

    python benchmarks/defaults.py --banking77 banking77-train.csv banking77-test.csv [--cifar100 FILE.npz]

Of every set: class-balanced accuracy, what is expected of it, NLL averaged over classes, ECE, the share of rows whose
highest probability rounds to 1.000000, and the NLL that the best temperature for the test data would have. Beside it,
balanced logistic regression with C = 1 and 10. The test data choose nothing. FILE is made by `aircl features cifar100
--backbone efficientnet-lite0`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from panel import Split, answer, banking77, cut, features, quality, tail
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from aircl import AIRClassifier, RandomReLU

BUFFER = RandomReLU(2000, random_state=0)
VARIANTS: dict[str, Any] = {
    "logistic regression, C = 1": LogisticRegression(class_weight="balanced", max_iter=1000),
    "logistic regression, C = 10": LogisticRegression(C=10, class_weight="balanced", max_iter=1000),
    "no buffer, not calibrated": AIRClassifier(expansion=None, calibrate=False),
    "no buffer": AIRClassifier(expansion=None),
    "rows of norm 1, no buffer": make_pipeline(Normalizer(), AIRClassifier(expansion=None)),
    "buffer of 2000, not calibrated": AIRClassifier(expansion=BUFFER, calibrate=False),
    "buffer of 2000": AIRClassifier(expansion=BUFFER),
    "rows of norm 1, buffer of 2000": make_pipeline(Normalizer(), AIRClassifier(expansion=BUFFER)),
    "AIRClassifier()": AIRClassifier(),
    'AIRClassifier(store="shared")': AIRClassifier(store="shared"),
}


def sets(arguments: argparse.Namespace) -> Iterator[tuple[str, Split]]:
    """Yield names and rows."""
    texts = banking77(arguments.banking77)
    yield "Banking77", texts
    yield "Banking77, 100 to 1", cut(texts, tail(texts[1], 0.01, 100))
    if arguments.cifar100:
        images = features(arguments.cifar100)
        yield "CIFAR-100, 140 to 1", cut(images, tail(images[1], 1 / 140, 140))
        yield "CIFAR-100, 500 to 1", cut(images, tail(images[1], 1 / 500, 500))


def best_nll(log_p: np.ndarray, own: np.ndarray) -> float:
    """Return the least NLL, averaged over classes, that one temperature gives on the test data."""

    def nll(log_scale: float) -> float:
        scaled = log_softmax(np.exp(log_scale) * log_p, axis=1)
        return float(np.mean([-scaled[own == k, k].mean() for k in np.unique(own)]))

    return float(minimize_scalar(nll, bounds=(-4.0, 4.0), method="bounded").fun)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banking77", type=Path, nargs=2, metavar=("TRAIN", "TEST"), required=True)
    parser.add_argument("--cifar100", type=Path, metavar="FILE")
    print("| set | classifier | accuracy | expected | NLL | at the best T | ECE | p = 1 |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    warnings.simplefilter("ignore")
    for name, (X, y, X_test, y_test) in sets(parser.parse_args()):
        for variant, made in VARIANTS.items():
            clf = made.fit(X, y)
            last = clf[-1] if hasattr(clf, "steps") else clf
            found = quality(clf, X_test, y_test)
            if getattr(last, "calibrate", False):
                found["expected"] = last.expected_accuracy().overall
            least = best_nll(answer(clf, X_test), np.searchsorted(last.classes_, y_test))
            cells = [
                f"{100 * found['accuracy']:.1f}",
                f"{100 * found['expected']:.1f}" if "expected" in found else "-",
                f"{found['NLL']:.2f}",
                f"{least:.2f}",
                f"{100 * found['ECE']:.1f}",
                f"{100 * found['certain']:.1f}",
            ]
            print(f"| {name}, {len(y)} rows | {variant} | {' | '.join(cells)} |", flush=True)
