"""`aircl export`: what prediction needs, without the statistics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import print_json, reports_problems, say
from aircl.cli.modelfile import load_fitted
from aircl.cli.options import Json, ModelPath, Quiet
from aircl.storage.writing import check_output, is_stdout

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier


@reports_problems
def export(
    model: ModelPath,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write: ONNX if it ends in .onnx, safetensors otherwise."
        ),
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write what prediction needs: weights, labels, and how features are made. It cannot learn, merge or forget."""
    if is_stdout(output) and json:
        raise typer.BadParameter("the export goes to stdout already: --json would be in it.", param_hint="--json")
    check_output(output, inputs=[model])
    classifier = load_fitted(model)
    classifier.export(output)
    size = None if is_stdout(output) else output.stat().st_size
    facts = {"export": str(output), "classes": len(classifier.classes_), "features": classifier.n_features_in_}
    if json:
        print_json({**facts, "bytes": size})
    if not quiet:
        sized = "" if size is None else f" ({size:,} bytes)"
        say(f"Exported {facts['classes']} classes, {facts['features']} features, to {output}{sized}.")


def load_predictor(path: Path) -> AnalyticClassifier:
    """Read a model that has learned something, or an export: both predict."""
    from aircl.classifiers.export import is_export, read_export

    if not is_export(path):
        return load_fitted(path)
    predictor: Any = read_export(path)
    return predictor  # type: ignore[no-any-return]  # as far as predictions go, it is one
