"""`aircl diff`: how two models differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import print_json, print_rich, reports_problems
from aircl.cli.info import MOST_CLASSES
from aircl.cli.modelfile import load_model, row_count, whole
from aircl.cli.options import Json
from aircl.storage.text import visible

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier


@reports_problems
def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="A model.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    json: Json = False,
) -> None:
    """Say how model B differs from model A: settings, classes and their counts, expected accuracy, and weights."""
    from aircl.classifiers.file import read_header

    difference = compare(*((read_header(path), load_model(path)) for path in (first, second)))
    if json:
        print_json({"a": str(first), "b": str(second), **difference})
    else:
        show(str(first), str(second), difference)


def compare(
    first: tuple[dict[str, Any], AnalyticClassifier], second: tuple[dict[str, Any], AnalyticClassifier]
) -> dict[str, Any]:
    """Return what differs between two models, each a header and what was read.

    Parameters
    ----------
    first, second : pair of dict and classifier

    Returns
    -------
    difference : dict
        `settings`: pairs of what is not the same; `rows` and `expected_accuracy`: pairs; `classes`: counts where they
        differ; `weights`: the relative distance of the weights of the classes that both have, if they can be compared.
    """
    settings = _pairs(*(_settings(header, model) for header, model in (first, second)))
    models = first[1], second[1]
    counts = [_counts(model) for model in models]
    classes = [
        {"label": label, "a": a, "b": b}
        for label in sorted({*counts[0], *counts[1]}, key=lambda label: (str(type(label)), label))
        if (a := counts[0].get(label, 0)) != (b := counts[1].get(label, 0))
    ]
    return {
        "settings": settings,
        "rows": [row_count(model) for model in models],
        "n_classes": [len(count) for count in counts],
        "classes": classes,
        "expected_accuracy": [_expected(model) for model in models],
        "weights": _distance(*models),
        "is_related": bool(set(_lineage(first[0])) & set(_lineage(second[0]))),
    }


def _lineage(header: dict[str, Any]) -> list[str]:
    return list((header["learned"] or {}).get("lineage", ()))


def _settings(header: dict[str, Any], model: AnalyticClassifier) -> dict[str, Any]:
    learned = header["learned"] or {}
    names = ("n_features_in", "feature_names_in", "n_features", "dtype", "backbone", "columns")
    fitted = model.__sklearn_is_fitted__()
    return {
        "class": header["class"],
        **header["parameters"],
        "expansion": header["expansion"],
        **{name: learned.get(name) for name in names},
        "ledger rows": _ledger_rows(model),
        "chosen gamma": float(model.gamma_) if fitted and hasattr(model, "gamma_") else None,
    }


def _ledger_rows(model: AnalyticClassifier) -> int | None:
    ledger = model._learner.state.ledger if hasattr(model, "_learner") else None
    return None if ledger is None else len(ledger)


def _pairs(a: dict[str, Any], b: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: [a.get(name), b.get(name)] for name in {**a, **b} if a.get(name) != b.get(name)}


def _counts(model: AnalyticClassifier) -> dict[Any, int | float]:
    if not model.__sklearn_is_fitted__():
        return {}
    pairs = zip(model.classes_.tolist(), model.class_count_.tolist(), strict=True)
    return {label: whole(count) for label, count in pairs}


def _expected(model: AnalyticClassifier) -> float | None:
    """Return the accuracy that the statistics let expect, of a model that is calibrated."""
    import numpy as np

    if not getattr(model, "calibrate", False) or not model.__sklearn_is_fitted__():
        return None
    accuracy = model.expected_accuracy().overall
    return None if np.isnan(accuracy) else accuracy


def _distance(first: AnalyticClassifier, second: AnalyticClassifier) -> float | None:
    """Return |W_b - W_a| / |W_a| over the classes that both have; None if they have no features in common."""
    import numpy as np

    if not (first.__sklearn_is_fitted__() and second.__sklearn_is_fitted__()):
        return None
    if not (hasattr(first, "coef_") and hasattr(second, "coef_")) or first.coef_.shape[1] != second.coef_.shape[1]:
        return None
    if first.classes_.dtype.kind != second.classes_.dtype.kind:
        return None
    _, here, there = np.intersect1d(first.classes_, second.classes_, return_indices=True)
    size = float(np.linalg.norm(first.coef_[here]))
    if not size:
        return None
    return float(np.linalg.norm(second.coef_[there] - first.coef_[here])) / size


def show(first: str, second: str, difference: dict[str, Any]) -> None:
    """Print a difference as tables."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    facts = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", visible(first), visible(second)):
        facts.add_column(Text(name))
    rows, n_classes = difference["rows"], difference["n_classes"]
    facts.add_row("rows", *(f"{n:,.10g}" for n in rows))
    facts.add_row("classes", *map(str, n_classes))
    if any(value is not None for value in difference["expected_accuracy"]):
        shares = ("-" if value is None else f"{100 * value:.1f} %" for value in difference["expected_accuracy"])
        facts.add_row("expected accuracy", *shares)
    for name, pair in difference["settings"].items():
        facts.add_row(Text(name), *(Text(visible(_short(value))) for value in pair))
    classes = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    classes.add_column("class")
    for name in ("count in A", "count in B", "change"):
        classes.add_column(name, justify="right")
    for row in difference["classes"][:MOST_CLASSES]:
        change = row["b"] - row["a"]
        classes.add_row(Text(visible(str(row["label"]))), f"{row['a']:.10g}", f"{row['b']:.10g}", f"{change:+.10g}")
    more = len(difference["classes"]) - MOST_CLASSES
    parts: list[Any] = [facts]
    parts += [classes] if difference["classes"] else [Text("The counts of all classes are the same.")]
    parts += [Text(f"and {more:,} more; --json has all.")] if more > 0 else []
    if difference["weights"] is not None:
        parts.append(Text(f"Weights of common classes: {100 * difference['weights']:.3g} % apart."))
    print_rich(Group(*parts))


def _short(value: Any) -> str:
    text = "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else text[:57] + ".."
