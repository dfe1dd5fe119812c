"""`aircl predict`: one label per row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import Reading, reports_problems, say
from aircl.cli.export import load_predictor
from aircl.cli.modelfile import set_priors
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
from aircl.cli.sources import Asked, open_rows
from aircl.storage.writing import check_output, is_stdout

if TYPE_CHECKING:
    from aircl.data.arrays import Batch


def check_answers(path: Path, classifier: Any, decides: bool, proba: bool) -> None:
    """Refuse what a classifier cannot tell beside a label, before anything is written."""
    from aircl.classifiers.export import ExportedSolution

    solution: Any = getattr(classifier, "solution", None)
    is_export = isinstance(solution, ExportedSolution)
    if decides and not hasattr(classifier, "decide"):
        what, advice = ("an export", " Use the model itself.") if is_export else (f"a {type(classifier).__name__}", "")
        raise ValueError(f"{path} is {what}, which takes no --confidence, --novelty or --priors.{advice}")
    if proba and (solution.given_temperature is None if is_export else not hasattr(classifier, "predict_proba")):
        raise ValueError(f"{path} has scores but no probabilities: leave out --proba and --top.")


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
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities too, one column per class.")] = False,
    confidence: Annotated[
        float | None,
        typer.Option(metavar="P", min=0.0, max=1.0, help="No answer where no label is as probable as P."),
    ] = None,
    novelty: Annotated[
        float | None,
        typer.Option(
            metavar="A",
            min=0.0,
            max=1.0,
            help="No answer for rows that differ more from what was learned than all but a share A of new rows.",
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
            help="Labels as they are; without it, control characters are escaped on stdout, and csv cells that begin "
            "with = + - @ get a ' in front, as a spreadsheet would run them.",
        ),
    ] = False,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask a service, see `aircl serve`, instead of a model file.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", envvar="AIRCL_TOKEN", help="With --server: the token.")
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

    if output is not None and is_stdout(output):
        output = None
    if output is not None and output.suffix.lower() not in OUTPUTS:
        raise typer.BadParameter(f"{output} should end in one of {', '.join(OUTPUTS)}.", param_hint="--output")
    if output is not None:
        check_output(output, inputs=[model])
    classifier: Any = load_predictor(model) if server is None else ServedModel(server, token)
    if server is not None and priors is not None:
        raise ValueError("a service has priors of its own, and takes no --priors. Use the model itself.")
    check_answers(model, classifier, (confidence, novelty, priors) != (None, None, None), proba or bool(top))
    set_priors(classifier, priors)
    if confidence is not None and not classifier.calibrate:
        classifier.set_params(calibrate=True)  # otherwise there is no probability to believe
    asked = Asked(label, features, None, id_, tuple(text or ()), image, labelled=False)
    opened = open_rows(files, asked, classifier, output=output, device=device)
    sends_raw = server is not None and opened.backbone is not None
    reading = Reading(opened.sources, quiet)
    correct = 0
    classes = classifier.classes_
    answers = Answers(classifier, confidence, novelty, top)
    shape = Columns(classes, proba, label is not None, opened.id_name, answers.columns)
    writer: Predictions = Lines(shape, raw) if output is None else OUTPUTS[output.suffix.lower()](output, shape, raw)

    def use(part: Batch) -> None:
        nonlocal correct
        X = part.raw if sends_raw else part.X
        prediction, more = answers.of(X)
        correct += 0 if part.y is None else int((prediction == part.y).sum())
        writer.write(prediction, part.y, classifier.predict_proba(X) if proba else None, part.ids, more)

    with writer:
        reading.feed(use, batch, opened.kind, show=output is not None or not sys.stdout.isatty())
    if writer.changed and not quiet:
        say(f"Note: {writer.changed:,} cells begin with = + - @ and have a ' in front, unless --raw is given.")
    where = "" if output is None else f", in {output}"
    answered = reading.rows - answers.withheld
    accuracy = "" if label is None or not answered else f": {100 * correct / answered:.1f} % agree with {label}"
    withheld = f", {answers.withheld:,} without an answer" if "reason" in answers.columns else ""
    reading.finish("Predicted", withheld + accuracy + where)
