"""What the charts of the page are drawn from, as JSON can hold it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.report.estimates import Estimate, Series
from aircl.report.experiments import ClassValue, Experiment, MethodResults
from aircl.report.figures.bars import GROUPS
from aircl.report.significance import contrast

# Whether classes weigh the same, by what the page calls it.
METRICS = {"accuracy": False, "balanced_accuracy": True}
CLASS_VALUES: tuple[ClassValue, ...] = ("weight_norms", "test_loss", "train_loss")


def embed(data: Any) -> str:
    r"""Return JSON that can stand inside a script element, whatever its strings hold.

    Examples
    --------
    >>> print(embed({"name": "</script><b>"}))
    {"name":"\u003c/script\u003e\u003cb\u003e"}
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def experiment_data(experiment: Experiment) -> dict[str, Any]:
    """Return what the charts of an experiment are drawn from, as JSON can hold it; accuracies are in per cent."""
    classes = experiment.classes
    stream = experiment.stream
    return {
        "title": experiment.title,
        "classes": [experiment.name_of(label) for label in classes.tolist()],
        "counts": [_number(experiment.class_counts[label]) for label in classes.tolist()],
        "groups": list(GROUPS),
        "n_test": count_tested(experiment),
        "contrasts": {name: _contrasts(experiment, balanced) for name, balanced in METRICS.items()},
        "stream": None
        if stream is None
        else {
            "classes": [experiment.name_of(label) for label in stream[0].tolist()],
            "phases": len(stream[1]),
            "cells": run_lengths(stream[1]),
        },
        "methods": [
            data for method in experiment.methods if (data := _method_data(method, classes))["phases"]["accuracy"]
        ],
    }


def _method_data(method: MethodResults, classes: npt.NDArray[np.int64]) -> dict[str, Any]:
    metrics = ("accuracy", "balanced_accuracy")
    return {
        "name": method.name,
        "style": method.style,
        "is_bound": method.is_bound,
        "last": {
            "accuracy": _estimate(method.final("A_last"), 100),
            "balanced_accuracy": _estimate(method.final("balanced_A_last"), 100),
        },
        "anytime": {metric: _series(method.anytime(metric), 100) for metric in metrics},
        "phases": {metric: _series(method.phases(metric), 100) for metric in metrics},
        "class_phases": _series(method.class_phases(), 100),
        "groups": [_estimate(method.final(group), 100) for group in GROUPS],
        "expected": _estimate(method.final("expected_accuracy"), 100),
        "seconds": _estimate(method.cost("seconds"), 1),
        "memory": _estimate(method.cost("state_bytes"), 1e-6),
        "confusion": [[seed, run_lengths(confusion)] for seed, confusion in method.confusions(classes).items()],
        **{what: _series(method.per_class(what, classes), 1, x=False) for what in CLASS_VALUES},
    }


def count_tested(experiment: Experiment) -> int:
    """Return how many test samples count in the end, in the first seed that is known; 0 if none is."""
    details = next((details for method in experiment.methods for details in method.details), None)
    return 0 if details is None else int(details.confusion.sum())


def _contrasts(experiment: Experiment, balanced: bool) -> list[list[Any]]:
    """Return differences of A_last between all methods that compete: names, points, interval, is it clear."""
    rivals = [method for method in experiment.methods if not method.is_bound]
    found = ((a, b, contrast(a, b, "A_last", balanced)) for n, a in enumerate(rivals) for b in rivals[n + 1 :])
    return [
        [a.name, b.name, *(_number(100 * value) for value in (c.difference, c.low, c.high)), c.is_clear]
        for a, b, c in found
        if c is not None
    ]


def run_lengths(table: npt.NDArray[np.int64]) -> list[int]:
    """Return the numbers of a table row by row, runs of n zeros as -n: most cells of confusion matrices are zero.

    Examples
    --------
    >>> run_lengths(np.array([[5, 0, 0], [0, 7, 0]]))
    [5, -3, 7, -1]
    """
    flat = table.ravel()
    places = np.flatnonzero(flat)
    gaps = np.diff(places, prepend=-1) - 1
    out: list[int] = []
    for gap, value in zip(gaps.tolist(), flat[places].tolist(), strict=True):
        out += [-gap, value] if gap else [value]
    rest = len(flat) - (int(places[-1]) + 1 if len(places) else 0)
    return [*out, -rest] if rest else out


def _series(series: Series | None, scale: float, x: bool = True) -> dict[str, list[float | None]] | None:
    if series is None or not len(series.mean):
        return None
    data = {"mean": [_number(value * scale) for value in series.mean.tolist()]}
    if not np.isnan(series.standard_error).all():
        data["error"] = [_number(value * scale) for value in series.standard_error.tolist()]
    return {"x": [_number(value) for value in series.x.tolist()], **data} if x else data


def _estimate(value: Estimate | None, scale: float) -> list[float | None] | None:
    if value is None:
        return None
    return [
        _number(value.mean * scale),
        None if value.standard_error is None else _number(value.standard_error * scale),
    ]


def _number(value: float) -> float | None:
    """Return a number of six digits, which no chart can show more of; None for nan."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
