"""`aircl info`: what is in a model file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import print_json, print_rich, reports_problems
from aircl.cli.modelfile import chosen_gamma, load_model, row_count, whole
from aircl.cli.options import Json, ModelPath
from aircl.cli.pictures import write_figure
from aircl.cli.provenance import facts
from aircl.storage.text import visible
from aircl.storage.writing import check_output

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier

# More rows than this, nobody reads; and drawing a table takes longer than making one.
MOST_CLASSES = 2000
# Classes and pairs that are expected to go wrong most often.
WORST = 8


@reports_problems
def info(
    model: ModelPath,
    json: Json = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="IMAGE", help="Draw how gamma was chosen (.png, .svg, .pdf).")
    ] = None,
) -> None:
    """Show what a model has learned: classes, counts and weights, gamma, memory, and where it comes from."""
    if plot is not None:
        check_output(plot, inputs=[model])
    from aircl.classifiers.file import read_header

    header = read_header(model)
    classifier = load_model(model)
    contents = describe(header, classifier)
    if plot is not None:
        draw_gamma(classifier, plot)
    if json:
        print_json({"model": str(model), **contents})
    else:
        show(str(model), contents)


def describe(header: dict[str, Any], classifier: AnalyticClassifier) -> dict[str, Any]:
    """Return everything about a model that is worth knowing, as JSON would hold it."""
    learned = header["learned"] or {}
    fitted, priors = classifier.__sklearn_is_fitted__(), getattr(classifier, "priors", None)
    contents: dict[str, Any] = {
        "class": header["class"],
        "format": header["format"],
        "store": classifier._store_type().name,
        "weighting": header["parameters"].get("weighting", getattr(classifier, "weighting", None)),
        "scale": getattr(classifier, "scale", None),
        "gamma": {
            "parameter": getattr(classifier, "gamma", None),
            "value": chosen_gamma(classifier) if fitted else None,
        },
        "dtype": learned.get("dtype"),
        "features": learned.get("n_features_in"),
        "feature_names": learned.get("feature_names_in"),
        "backbone": learned.get("backbone"),
        "expansion": _expansion(header["expansion"], learned.get("n_features")),
        "bytes": int(classifier.nbytes_) if fitted else 0,
        "lineage": len(learned.get("lineage", ())),
        "rows": row_count(classifier),
        "priors": dict(priors) if isinstance(priors, Mapping) else priors,
        "expected": None,
        "ledger": _ledger(classifier),
        "history": learned.get("history") or [],
        "classes": [],
    }
    if fitted and getattr(classifier, "calibrate", False):
        contents["expected"] = expected(classifier)
    if fitted:
        count = classifier.class_count_
        columns = (classifier.classes_, count, getattr(classifier, "class_weight_", 0 * count + 1))
        contents["classes"] = [
            {"label": label, "count": whole(count), "weight": weight}
            for label, count, weight in zip(*(column.tolist() for column in columns), strict=True)
        ]
    return contents


def expected(classifier: AnalyticClassifier) -> dict[str, Any] | None:
    """Return the accuracy to expect, worst classes first, and the pairs most confused; None if nothing is known."""
    found = classifier.expected_accuracy()
    if found.overall != found.overall:
        return None
    recalls = zip(classifier.classes_.tolist(), found.per_class.tolist(), strict=True)
    worst = sorted((pair for pair in recalls if pair[1] == pair[1]), key=lambda pair: pair[1])
    return {
        "accuracy": found.overall,
        "classes": [{"label": label, "recall": recall} for label, recall in worst],
        "confusions": [
            {"label": label, "taken_for": other, "share": share}
            for label, other, share in found.confusions[:MOST_CLASSES]
        ],
    }


def show(path: str, contents: dict[str, Any]) -> None:
    """Print a description as tables."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, value in _facts(path, contents):
        table.add_row(name, Text(visible(value)))
    classes = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    classes.add_column("class")
    classes.add_column("count", justify="right")
    classes.add_column("weight", justify="right")
    for row in contents["classes"][:MOST_CLASSES]:
        classes.add_row(Text(visible(row["label"])), f"{row['count']:.10g}", f"{row['weight']:.4g}")
    more = len(contents["classes"]) - MOST_CLASSES
    print_rich(
        Group(
            table,
            *expected_tables(contents["expected"]),
            classes,
            *([Text(f"and {more:,} more; --json has all.")] if more > 0 else []),
        )
    )


def expected_tables(found: dict[str, Any] | None) -> list[Any]:
    """Return the classes that are expected to be recognised least, and the pairs most confused, as tables."""
    if found is None:
        return []
    from rich import box
    from rich.table import Table
    from rich.text import Text

    worst = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("least recognised", "expected %", "most often taken for", "expected % "):
        worst.add_column(column, justify="right" if "%" in column else "left")
    pairs = found["confusions"][:WORST]
    for i, entry in enumerate(found["classes"][:WORST]):
        pair = pairs[i] if i < len(pairs) else None
        names = "" if pair is None else f"{visible(pair['label'])} -> {visible(pair['taken_for'])}"
        share = "" if pair is None else f"{100 * pair['share']:.1f}"
        worst.add_row(Text(visible(entry["label"])), f"{100 * entry['recall']:.1f}", Text(names), share)
    return [worst]


def draw_gamma(classifier: AnalyticClassifier, path: Path) -> None:
    """Write a figure of the criterion that gamma was chosen by."""
    gamma = getattr(classifier, "gamma", None)
    if gamma != "auto" or not classifier.__sklearn_is_fitted__():
        raise ValueError(
            f"there is no choice of gamma to draw: gamma={gamma!r}, "
            f"{'' if classifier.__sklearn_is_fitted__() else 'nothing '}learned. --plot is for --gamma auto."
        )
    from matplotlib.figure import Figure

    from aircl.report.figures import plot_gamma_path

    figure = Figure(figsize=(6, 4), layout="constrained")
    plot_gamma_path(classifier, figure.subplots())
    write_figure(figure, path, "aircl info")


def _facts(path: str, contents: dict[str, Any]) -> list[tuple[str, str]]:
    names, expansion, gamma = contents["feature_names"], contents["expansion"], contents["gamma"]
    features = "none yet" if contents["features"] is None else str(contents["features"])
    if names:
        features += f" ({', '.join(names[:3])}{', ..' if len(names) > 3 else ''})"
    if contents["backbone"]:
        features += f" of {contents['backbone']['name']}"
    if expansion:
        parameters = ", ".join(f"{name}={value!r}" for name, value in expansion["parameters"].items())
        features += f", expanded to {expansion['width']} by {expansion['name']}({parameters})"
    ledger = contents["ledger"]
    keys = ", ".join(
        f"key {key['id']} ({'in the model' if key['in_model'] else 'kept elsewhere'})"
        for key in (ledger or {"keys": ()})["keys"]
    )
    chosen = "not chosen yet" if gamma["value"] is None else f"{gamma['value']:.4g}"
    chosen += " (auto)" if gamma["parameter"] == "auto" else ""
    weighed = [
        ("weighting", f"{contents['weighting']}, scale {contents['scale']}"),
        ("priors", "by label" if isinstance(contents["priors"], dict) else contents["priors"] or "as weighted"),
    ]
    weighed = [] if contents["weighting"] is None else weighed
    expects = []
    if contents["expected"] is not None:
        expects = [("expected", f"{100 * contents['expected']['accuracy']:.1f} % of new rows are right")]
    return [
        ("model", path),
        ("class", f"{contents['class']} (format {contents['format']})"),
        ("store", f"{contents['store']}, {contents['dtype'] or 'empty'}, {size_of(contents['bytes'])}"),
        ("features", features),
        *([] if gamma["parameter"] is None else [("gamma", chosen)]),
        *weighed,
        *expects,
        ("rows", f"{contents['rows']:,.10g} of {len(contents['classes'])} classes"),
        ("lineage", f"{contents['lineage']} learner{'s' * (contents['lineage'] != 1)}"),
        *([] if ledger is None else [("ledger", f"{ledger['rows']:,} rows by {ledger['by']}, {keys}")]),
        *facts(contents["history"]),
    ]


def _ledger(classifier: AnalyticClassifier) -> dict[str, Any] | None:
    """Return what rows are known by, how many there are, under which keys."""
    ledger = classifier._learner.state.ledger if hasattr(classifier, "_learner") else None
    if ledger is None:
        return None
    rows = [sum(len(run) for run in ledger.runs if run.number == number) for number in range(len(ledger.keys))]
    keys = [
        {"id": key.id, "in_model": key.secret is not None, "rows": n} for key, n in zip(ledger.keys, rows, strict=True)
    ]
    return {"by": "id" if ledger.by_id else "content", "rows": len(ledger), "keys": keys}


def _expansion(packed: dict[str, Any] | None, width: int | None) -> dict[str, Any] | None:
    if packed is None:
        return None
    return {"name": packed["kind"], "parameters": packed.get("parameters", {}), "width": width}


def size_of(n_bytes: int) -> str:
    """Return a number of bytes as people read it."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
