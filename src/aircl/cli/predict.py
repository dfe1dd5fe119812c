"""`aircl predict`: one label a row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import Reading, reports_problems, say
from aircl.cli.export import load_predictor
from aircl.cli.modelfile import label_kind, set_priors, take_backbone, take_feature_names
from aircl.cli.options import (
    BATCH_ROWS,
    FILES_HELP,
    BatchRows,
    Device,
    Features,
    Id,
    Image,
    PriorsOption,
    Quiet,
    Text,
)
from aircl.cli.served import ServedModel
from aircl.cli.sources import Asked, input_paths, open_sources
from aircl.storage.writing import check_output, is_stdout

if TYPE_CHECKING:
    from aircl.data.arrays import Batch


@reports_problems
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file; with --server, there is none.")],
    files: Annotated[list[str] | None, typer.Argument(metavar="FILES", help=FILES_HELP)] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column or array of labels: not a feature, but compared with what is predicted."
        ),
    ] = None,
    features: Features = None,
    text: Text = None,
    image: Image = None,
    id_: Id = None,
    device: Device = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities too, one column a class.")] = False,
    confidence: Annotated[
        float | None,
        typer.Option(metavar="P", min=0.0, max=1.0, help="No answer where no label is as probable as P."),
    ] = None,
    novelty: Annotated[
        float | None,
        typer.Option(
            metavar="A", min=0.0, max=1.0, help="No answer for rows more unlike what was learned than a share A of it."
        ),
    ] = None,
    top: Annotated[int | None, typer.Option(metavar="K", min=1, help="The K most probable labels.")] = None,
    priors: PriorsOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="A .csv, .parquet or .npz file.", show_default="stdout"),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Labels as they are; without it, control characters are spelt out on stdout, and csv cells that begin "
            "with = + - @ get a ' in front, as a spreadsheet would run them.",
        ),
    ] = False,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask a service, see `aircl serve`, instead of a model file.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", envvar="AIRCL_TOKEN", help="With --server: who asks.")
    ] = None,
    batch: BatchRows = BATCH_ROWS,
    quiet: Quiet = False,
) -> None:
    """Predict the label of every row, in the order of the files; rows that have names keep them.

    With --confidence or --novelty, a row may have no answer: an empty cell, with the reason beside it.
    """
    if server is not None:
        files = [str(model), *(files or [])]
    if not files:
        raise typer.BadParameter("say which files to predict.", param_hint="FILES")
    from aircl.cli.answers import Answers
    from aircl.cli.output import OUTPUTS, Columns, Lines, Predictions
    from aircl.data.arrays import agree_on_labels

    if output is not None and is_stdout(output):
        output = None
    if output is not None and output.suffix.lower() not in OUTPUTS:
        raise typer.BadParameter(f"{output} should end in one of {', '.join(OUTPUTS)}.", param_hint="--output")
    if output is not None:
        check_output(output, inputs=[model])
    classifier: Any = load_predictor(model) if server is None else ServedModel(server, token)
    if not hasattr(classifier, "decide") and (confidence, novelty, priors) != (None, None, None):
        what = f"{model} is an export" if server is None else "a service answers by itself"
        raise ValueError(f"{what}, which takes no --confidence, --novelty or --priors. Use the model itself.")
    set_priors(classifier, priors)
    if confidence is not None and not classifier.calibrate:
        classifier.set_params(calibrate=True)  # otherwise there is no probability to believe
    asked = Asked(label, features, None, id_, tuple(text or ()), image, take_feature_names(classifier), labelled=False)
    opened = open_sources(files, asked, classifier, device=device)
    sources = opened.sources
    if output is not None:
        check_output(output, inputs=input_paths(files, sources))
    take_backbone(classifier)
    kind = None if label is None else agree_on_labels(sources, label_kind(classifier))
    reading = Reading(sources, quiet)
    correct = 0
    classes = classifier.classes_
    answers = Answers(classifier, confidence, novelty, top)
    shape = Columns(classes, proba, label is not None, opened.id_name, answers.columns)
    writer: Predictions = Lines(shape, raw) if output is None else OUTPUTS[output.suffix.lower()](output, shape, raw)

    def use(part: Batch) -> None:
        nonlocal correct
        prediction, more = answers.of(part.X)
        correct += 0 if part.y is None else int((prediction == part.y).sum())
        writer.write(prediction, part.y, classifier.predict_proba(part.X) if proba else None, part.ids, more)

    with writer:
        reading.feed(use, batch, kind, show=output is not None or not sys.stdout.isatty())
    if writer.changed and not quiet:
        say(f"Note: {writer.changed:,} cells begin with = + - @ and have a ' in front, unless --raw is given.")
    where = "" if output is None else f", in {output}"
    answered = reading.rows - answers.withheld
    accuracy = "" if label is None or not answered else f": {100 * correct / answered:.1f} % agree with {label}"
    withheld = f", {answers.withheld:,} without an answer" if "reason" in answers.columns else ""
    reading.finish("Predicted", withheld + accuracy + where)
