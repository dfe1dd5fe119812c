"""What would help on CIFAR-100, judged by training images that were held out; the test images take no part.

    python benchmarks/held_out_images.py FILE.npz [--tail 1.0 0.01]

The file is made by `aircl features cifar100 --backbone efficientnet-lite0`. 200 images of the largest class are
learned, as in panel.py, and 30 others of every class judged: the features as they are, rows of norm 1, signed square
roots, both of these, square roots of randomly rotated features, which have both signs, a random ReLU layer, and half a
decade and a decade less than the gamma that is chosen. "best" is the NLL, over rows, of the best temperature on the
judged rows. The last lines have a second parameter A, chosen on the simulated scores with T: log-probabilities l become
-A log(1 - l / A), so that those of unlikely classes differ less; and how often answers of a probability are right, in
the simulated and in the judged rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from panel import features, quality, tail
from scipy.optimize import minimize
from scipy.special import log_softmax

from aircl import AIRClassifier, RandomReLU

LEARNED, JUDGED = 200, slice(400, 430)


def unit(X: np.ndarray) -> np.ndarray:
    """Return rows of norm 1."""
    return X / np.linalg.norm(X, axis=1, keepdims=True).clip(min=1e-12)


def root(X: np.ndarray) -> np.ndarray:
    """Return signed square roots."""
    return np.sign(X) * np.sqrt(np.abs(X))


def describe(clf: Any, X: np.ndarray, y: np.ndarray) -> str:
    """Return accuracy, NLL and ECE, and the NLL of the best temperature."""
    found, scores, rows = quality(clf, X, y), clf.decision_function(X), np.arange(len(y))
    own = np.searchsorted(clf.classes_, y)
    best = min(
        -log_softmax(scores / (clf.temperature_ * t), axis=1)[rows, own].mean() for t in np.geomspace(0.4, 2.5, 23)
    )
    return (
        f"accuracy {100 * found['accuracy']:5.1f} expected {100 * found['expected']:5.1f} NLL {found['NLL']:.3f} "
        f"ECE {100 * found['ECE']:4.1f} best {best:.3f}"
    )


def compressed(scores: np.ndarray, T: float, A: float) -> np.ndarray:
    """Return log-probabilities with the second parameter."""
    return log_softmax(-A * np.log1p(-log_softmax(scores / T, axis=-1) / A), axis=-1)


def second_parameter(clf: Any, X: np.ndarray, y: np.ndarray) -> str:
    """Return NLL and ECE with T and A of least log-loss on the simulated scores, and how often answers are right."""
    found, own = clf._solution().calibration, np.searchsorted(clf.classes_, y)
    simulated = found.scores + found.b[found.rivals][:, None, :]

    def loss(at: np.ndarray) -> float:
        return -float(found.share @ compressed(simulated, *np.exp(at))[:, :, 0].mean(axis=1))

    start = np.log([found.temperature, 5.0])
    T, A = np.exp(minimize(loss, start, method="Nelder-Mead", options={"maxiter": 60, "xatol": 0.02}).x)
    log_p = compressed(clf.decision_function(X), T, A)
    nll = np.mean([-log_p[own == k, k].mean() for k in np.unique(own)])
    lines = [f"with A = {A:.1f}: NLL {nll:.3f} ECE {ece(log_p, own):.1f}"]
    real, drawn = clf.predict_log_proba(X), log_softmax(simulated / found.temperature, axis=2)
    drawn = drawn.reshape(-1, drawn.shape[2])
    for low in (0.1, 0.4, 0.9):
        right = []
        for p, first in ((drawn, np.zeros(len(drawn), int)), (real, own)):
            within = (np.exp(p.max(axis=1)) >= low) & (np.exp(p.max(axis=1)) < low + 0.1)
            right.append(100 * np.mean(p[within].argmax(axis=1) == first[within]))
        lines.append(
            f"of a probability of {low} to {low + 0.1:.1f}: simulated {right[0]:.0f} %, judged {right[1]:.0f} %"
        )
    return "\n".join(lines)


def ece(log_p: np.ndarray, own: np.ndarray) -> float:
    """Return the expected calibration error in points, as panel.py does."""
    right, confidence = log_p.argmax(axis=1) == own, np.exp(log_p.max(axis=1))
    bins = np.minimum((15 * confidence).astype(int), 14)
    return 100 * sum(abs(float(right[bins == i].sum() - confidence[bins == i].sum())) for i in range(15)) / len(own)


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--tail", type=float, nargs="*", default=[1.0, 0.01])
    arguments = parser.parse_args()
    X, y, _, _ = features(arguments.file)
    judged = np.concatenate([np.flatnonzero(y == label)[JUDGED] for label in np.unique(y)])
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1], X.shape[1])))[0].astype(X.dtype)
    made: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Any]] = {
        "as they are": (lambda X: X, None),
        "norm 1": (unit, None),
        "root": (root, None),
        "root, norm 1": (lambda X: unit(root(X)), None),
        "rotated": (lambda X: X @ Q, None),
        "rotated, root": (lambda X: root(X @ Q), None),
        "norm 1, random ReLU 2048": (unit, RandomReLU(2048, random_state=0)),
    }
    for ratio in arguments.tail:
        rows = tail(y, ratio, LEARNED)
        for name, (change, expansion) in made.items():
            clf, Z = AIRClassifier(expansion=expansion).fit(change(X[rows]), y[rows]), change(X[judged])
            print(f"{ratio:<5} {name:32} {describe(clf, Z, y[judged])}", flush=True)
            if name != "as they are":
                continue
            print(second_parameter(clf, Z, y[judged]), flush=True)
            gamma = clf.gamma_
            for factor in (10**-0.5, 0.1):
                clf.set_params(gamma=gamma * factor)
                print(f"{ratio:<5} {f'gamma times {factor:.2f}':32} {describe(clf, Z, y[judged])}", flush=True)


if __name__ == "__main__":
    main()
