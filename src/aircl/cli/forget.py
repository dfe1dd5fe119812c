"""`aircl forget`: a model as if some classes, or some rows, had never been learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import Reading, print_json, reports_problems, say
from aircl.cli.ledger import Command, LedgerKey, use_key
from aircl.cli.modelfile import (
    changing,
    check_model_output,
    give_backbone,
    give_feature_names,
    load_fitted,
    row_count,
    write_model,
)
from aircl.cli.options import (
    BATCH_ROWS,
    FILE_TYPES,
    BatchRows,
    Device,
    Features,
    Id,
    Image,
    Json,
    Label,
    ModelOutput,
    ModelPath,
    Quiet,
    SampleWeight,
    Text,
)
from aircl.cli.provenance import Note, record
from aircl.cli.sources import Asked, open_rows

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier


@reports_problems
def forget(
    model: ModelPath,
    output: ModelOutput,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES", help=f"Rows to forget ({FILE_TYPES}), as they were learned."),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="LABEL", help="A class to forget whole, instead of files; may be repeated."),
    ] = None,
    label: Label = None,
    features: Features = None,
    text: Text = None,
    image: Image = None,
    id_: Id = None,
    sample_weight: SampleWeight = None,
    ledger_key: LedgerKey = None,
    device: Device = None,
    note: Note = None,
    batch: BatchRows = BATCH_ROWS,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take rows or classes out of a model, exactly. MODEL itself stays as it is, unless --output is the same file."""
    if bool(files) == bool(classes):
        raise typer.BadParameter("give either files of rows to forget, or --class.", param_hint="FILES")
    check_model_output(output, json)
    with changing(output, [model], quiet):
        classifier = load_fitted(model)
        use_key(classifier, False, ledger_key)
        before = row_count(classifier)
        if classes:
            classifier.forget(classes=[to_label(classifier, text) for text in classes])
        else:
            asked = Asked(label, features, sample_weight, id_, tuple(text or ()), image)
            opened = open_rows(files or [], asked, classifier, output=output, device=device)
            command = Command(classifier, opened.columns.get("id") is not None)
            Reading(opened.sources, quiet).feed(command.forget, batch, opened.kind)
            give_feature_names(classifier, opened.names)
            give_backbone(classifier, opened)
        record(classifier, "forgot", note=note, rows=before - row_count(classifier))
        write_model(classifier, output)
    left = row_count(classifier)
    if json:
        print_json(
            {"model": str(output), "forgotten": before - left, "rows": left, "classes": len(classifier.classes_)}
        )
    if not quiet:
        say(
            f"Forgot {before - left:,.10g} rows; {left:,.10g} rows of {len(classifier.classes_)} classes are left, "
            f"in {output}."
        )


def to_label(classifier: AnalyticClassifier, text: str) -> Any:
    """Return a label of the model's type, written as text."""
    known = {str(value): value for value in classifier.classes_.tolist()}
    if text not in known:
        shown = ", ".join(list(known)[:8]) + (", .." if len(known) > 8 else "")
        raise ValueError(f"the model has no class {text!r}. Its {len(known)} classes are {shown}.")
    return known[text]
