"""A method on the test set, at one point of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.benchmark.metrics import Labels, calibration, confusion_matrix
from aircl.inputs import Inputs
from aircl.methods import Method

# Test rows that are encoded or predicted at a time: a wide buffer's output would not fit otherwise.
ROWS = 4096


@dataclass(frozen=True)
class Samples:
    """The inputs that a method consumes, and their labels.

    Attributes
    ----------
    inputs : Inputs
    labels : array of shape (n,)
    """

    inputs: Inputs
    labels: Labels


@dataclass(frozen=True)
class Evaluation:
    """What a method made of the test samples of the exposed classes.

    Attributes
    ----------
    classes : array of shape (C,)
        The exposed classes.
    confusion : array of shape (C, C)
    predicted : array of shape (n,)
        Of every test sample; -1 for those of classes that are not exposed.
    """

    classes: Labels
    confusion: npt.NDArray[np.int64]
    predicted: Labels


class TestSet:
    """Test samples, encoded once by a method and predicted as often as asked for.

    Parameters
    ----------
    inputs : Inputs
    labels : array of shape (n,)
    """

    __test__ = False  # no test for pytest to collect

    def __init__(self, inputs: Inputs, labels: Labels) -> None:
        self._inputs, self.labels = inputs, labels
        self._encoded: list[Any] | None = None

    def evaluate(self, method: Method, exposed: Labels) -> Evaluation:
        """Predict the test samples of the exposed classes.

        Raises
        ------
        ValueError
            If the method predicts a class that was never exposed.
        """
        predicted = np.full(len(self.labels), -1, np.int64)
        for encoded, rows in self._parts(method, exposed):
            labels = self.labels[rows]
            answer = np.asarray(method.predict(encoded))
            if answer.shape != labels.shape:
                raise ValueError(f"it predicted an array of shape {answer.shape} for {len(labels)} samples.")
            if len(strange := np.setdiff1d(answer, exposed)):
                raise ValueError(f"it predicted class {strange[0]}, which no training sample had so far.")
            predicted[rows] = answer
        counted = predicted >= 0
        return Evaluation(exposed, confusion_matrix(self.labels[counted], predicted[counted], exposed), predicted)

    def loss_by_class(self, method: Method, exposed: Labels) -> npt.NDArray[np.float64]:
        """Return the mean squared error of each class's test samples, summed over outputs, shape (C,), or empty."""
        parts = ((encoded, self.labels[rows]) for encoded, rows in self._parts(method, exposed))
        total, count = squared_errors(method, parts, exposed)
        return np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0) if len(total) else total

    def calibrate(self, method: Method, exposed: Labels) -> dict[str, float]:
        """Return how far the method's probabilities are from what happens; nothing if it gives none."""
        rows = np.flatnonzero(np.isin(self.labels, exposed))
        parts = []
        for start in range(0, len(rows), ROWS):
            given = method.probabilities(self._inputs[rows[start : start + ROWS]])
            if given is None:
                return {}
            parts.append(np.asarray(given[1], np.float64)[:, np.isin(given[0], exposed)])
        return calibration(self.labels[rows], exposed, np.concatenate(parts)) if parts else {}

    def _parts(self, method: Method, exposed: Labels) -> Iterator[tuple[Any, npt.NDArray[np.intp]]]:
        """Yield the encoded samples of the exposed classes and their places in the test set, in pieces."""
        pieces = [np.arange(start, min(start + ROWS, len(self.labels))) for start in range(0, len(self.labels), ROWS)]
        if self._encoded is None:
            self._encoded = [method.encode(self._inputs[piece]) for piece in pieces]
        for piece, encoded in zip(pieces, self._encoded, strict=True):
            own = np.flatnonzero(np.isin(self.labels[piece], exposed))
            if len(own):
                yield encoded if len(own) == len(piece) else encoded[own], piece[own]


def squared_errors(
    method: Method, parts: Iterator[tuple[Any, Labels]], exposed: Labels
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the squared errors against one-hot targets summed over each class's samples, and how many these are.

    Parameters
    ----------
    method : Method
    parts : iterator of (encoded, labels)
    exposed : array of shape (C,)

    Returns
    -------
    total, count : arrays of shape (C,), or empty ones
        Empty if the method has no scores.
    """
    total, count = np.zeros(len(exposed)), np.zeros(len(exposed))
    for encoded, labels in parts:
        scored = method.scores(encoded)
        if scored is None:
            return total[:0], count[:0]
        classes, scores = scored
        errors = np.square(scores, dtype=np.float64).sum(axis=1)
        own = scores[np.arange(len(labels)), np.searchsorted(classes, labels)].astype(np.float64)
        errors += 1.0 - 2.0 * own  # |s - e_y|^2 = |s|^2 - 2 s_y + 1
        place = np.searchsorted(exposed, labels)
        total += np.bincount(place, errors, minlength=len(exposed))
        count += np.bincount(place, minlength=len(exposed))
    return total, count
