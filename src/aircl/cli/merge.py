"""`aircl merge`: one model that has learned what several have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import print_json, reports_problems, say
from aircl.cli.ledger import doubts_said
from aircl.cli.modelfile import changing, check_model_output, load_model, row_count, write_model
from aircl.cli.options import Json, ModelOutput, Quiet
from aircl.cli.provenance import Note, parent, record
from aircl.storage.errors import InputError, is_refusal

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier


@reports_problems
def merge(
    models: Annotated[list[Path], typer.Argument(metavar="MODELS", help="Two or more models of the same kind.")],
    output: ModelOutput,
    note: Note = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add models up: the result is the model that would have been learned from all their files together."""
    if len(models) < 2:
        raise typer.BadParameter("give at least two models.", param_hint="MODELS")
    check_model_output(output, json)
    with changing(output, models, quiet), doubts_said(quiet):
        merged, parents = merge_all(models)
        record(merged, "merged", note=note, anew=True, parents=parents)
        write_model(merged, output)
    rows, n_classes = row_count(merged), len(getattr(merged, "classes_", ()))
    if json:
        print_json({"model": str(output), "merged": len(models), "rows": rows, "classes": n_classes})
    if not quiet:
        say(f"Merged {len(models)} models: {rows:,.10g} rows, {n_classes} classes, in {output}.")


def merge_all(models: list[Path]) -> tuple[AnalyticClassifier, list[dict[str, Any]]]:
    """Return the sum of all models, and what they were."""
    merged = load_model(models[0])
    parents = [parent(models[0], merged)]
    for path in models[1:]:
        other = load_model(path)
        parents.append(parent(path, other))
        if type(other) is not type(merged):
            raise ValueError(
                f"{path} is of the class {type(other).__name__}, {models[0]} of {type(merged).__name__}. "
                "Only models of one class can be merged."
            )
        try:
            merged.merge(other)
        except ValueError as error:
            if not is_refusal(error):
                raise
            raise InputError(f"{path}: {error}") from error
    return merged, parents
