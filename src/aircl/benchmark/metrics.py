"""Accuracies and their summaries, as the protocol defines them. All are shares from 0 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Head classes have more training samples than the first number, tail classes fewer than the second.
HEAD, TAIL = 100, 20


def confusion_matrix(true: Labels, predicted: Labels, classes: Labels) -> npt.NDArray[np.int64]:
    """Return how many samples of each class (row) were taken for each class (column), shape (C, C).

    Parameters
    ----------
    true, predicted : arrays of shape (n,)
        Of `classes` only.
    classes : array of shape (C,)
        Sorted.

    Examples
    --------
    >>> confusion_matrix(np.array([3, 3, 7]), np.array([3, 7, 7]), np.array([3, 7]))
    array([[1, 1],
           [0, 1]])
    """
    row, column = np.searchsorted(classes, true), np.searchsorted(classes, predicted)
    size = len(classes)
    return np.bincount(row * size + column, minlength=size * size).reshape(size, size)


def class_accuracy(confusion: npt.NDArray[np.int64]) -> Floats:
    """Return the share of each class's samples that were recognised, shape (C,); nan for a class without any."""
    total = confusion.sum(axis=1)
    out: Floats = np.full(len(total), np.nan)
    np.divide(np.diag(confusion), total, out=out, where=total > 0)
    return out


def accuracy(confusion: npt.NDArray[np.int64]) -> float:
    """Return the share of all samples that were recognised; nan if there are none."""
    total = int(confusion.sum())
    return float(np.trace(confusion)) / total if total else float("nan")


def balanced_accuracy(confusion: npt.NDArray[np.int64]) -> float:
    """Return the mean of the accuracies of the classes that have test samples; nan if none has."""
    by_class = class_accuracy(confusion)
    return float(np.mean(by_class[~np.isnan(by_class)])) if not np.all(np.isnan(by_class)) else float("nan")


def forgetting(by_phase: Floats) -> float:
    """Return by how much classes were recognised better at an earlier phase end than in the end, on average.

    Parameters
    ----------
    by_phase : array of shape (phases, C)
        Accuracy of each class after each phase; nan before it was exposed, and for a class without test samples.

    Returns
    -------
    forgetting : float
        The mean over the classes that were exposed before the last phase; 0 if there are none. It can be negative.
    """
    earlier, final = by_phase[:-1], by_phase[-1]
    known = ~np.all(np.isnan(earlier), axis=0) & ~np.isnan(final)
    if not known.any():
        return 0.0
    return float(np.mean(np.nanmax(earlier[:, known], axis=0) - final[known]))


def backward_transfer(by_phase: Floats) -> float:
    """Return by how much classes are recognised better in the end than when they were new, on average.

    Parameters
    ----------
    by_phase : array of shape (phases, C)
        Accuracy of each class, or domain, after each phase; nan before it was learned, and without test samples.

    Returns
    -------
    transfer : float
        The mean over those that were learned before the last phase; 0 if there are none. Negative: they were forgotten.

    Examples
    --------
    >>> backward_transfer(np.array([[0.9, np.nan], [0.7, 0.8]]))
    -0.20000000000000007
    """
    learned = ~np.isnan(by_phase)
    known = learned[:-1].any(axis=0) & learned[-1]
    if not known.any():
        return 0.0
    first = learned.argmax(axis=0)[known]
    return float(np.mean(by_phase[-1, known] - by_phase[first, np.flatnonzero(known)]))


def forward_transfer(by_phase: Floats, chance: float) -> float:
    """Return by how much domains are recognised better than by chance, right before they come, on average.

    Parameters
    ----------
    by_phase : array of shape (phases, phases)
        Accuracy after phase i (row) on the domain of phase j (column); nan without test samples.
    chance : float

    Examples
    --------
    >>> round(forward_transfer(np.array([[0.9, 0.6], [0.8, 0.9]]), chance=0.5), 2)
    0.1
    """
    before = np.diagonal(by_phase, 1)
    before = before[~np.isnan(before)]
    return float(np.mean(before) - chance) if len(before) else float("nan")


def calibration(true: Labels, classes: Labels, probabilities: Floats, bins: int = 15) -> dict[str, float]:
    """Return how far probabilities are from what happens.

    Parameters
    ----------
    true : array of shape (n,)
        Of `classes` only.
    classes : array of shape (C,)
        Sorted.
    probabilities : array of shape (n, C)
    bins : int, default=15

    Returns
    -------
    values : dict
        "ECE", the expected calibration error over bins of equal width; "NLL", the mean negative log-likelihood;
        "expected_accuracy", what the method itself expects: the mean of its largest probabilities.

    Examples
    --------
    >>> sure = np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.9, 0.1]])
    >>> found = calibration(np.array([0, 0, 1, 1]), np.array([0, 1]), sure)
    >>> {name: round(value, 3) for name, value in found.items()}
    {'ECE': 0.225, 'NLL': 0.684, 'expected_accuracy': 0.875}
    """
    place = np.searchsorted(classes, true)
    own = probabilities[np.arange(len(true)), place]
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == place
    bin_of = np.minimum((confidence * bins).astype(np.intp), bins - 1)
    gap = np.bincount(bin_of, right - confidence, minlength=bins)
    return {
        "ECE": float(np.abs(gap).sum() / len(true)),
        "NLL": float(-np.log(np.maximum(own, 1e-12)).mean()),
        "expected_accuracy": float(confidence.mean()),
    }


def group_accuracies(by_class: Floats, counts: npt.NDArray[Any]) -> dict[str, float]:
    """Return the mean accuracy of head, middle and tail classes, those groups that there are.

    Parameters
    ----------
    by_class : array of shape (C,)
        Accuracy of each class, nan for one without test samples.
    counts : array of shape (C,)
        Training samples of each class.

    Examples
    --------
    >>> group_accuracies(np.array([0.9, 0.5, 0.2]), np.array([500, 20, 1]))
    {'head': 0.9, 'middle': 0.5, 'tail': 0.2}
    """
    groups = {"head": counts > HEAD, "middle": (counts >= TAIL) & (counts <= HEAD), "tail": counts < TAIL}
    tested = ~np.isnan(by_class)
    return {name: float(by_class[group & tested].mean()) for name, group in groups.items() if (group & tested).any()}


def mean_and_standard_error(values: npt.ArrayLike) -> tuple[float, float]:
    """Return the mean over repetitions and its standard error, nan for a single one.

    Examples
    --------
    >>> mean_and_standard_error([0.4, 0.6])
    (0.5, 0.09999999999999998)
    """
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        return float(array.mean()), float("nan")
    return float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array)))
