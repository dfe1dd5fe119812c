"""`aircl predict`: one label a row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aircl.cli.console import Reading, reports_problems, say
from aircl.cli.modelfile import label_kind, load_fitted, set_priors, take_feature_names
from aircl.cli.options import BATCH_ROWS, BatchRows, Features, Files, ModelPath, PriorsOption, Quiet
from aircl.storage.writing import check_output, is_stdout

if TYPE_CHECKING:
    from aircl.data.arrays import Batch


@reports_problems
def predict(
    model: ModelPath,
    files: Files,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column or array of labels: not a feature, but compared with what is predicted."
        ),
    ] = None,
    features: Features = None,
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
    batch: BatchRows = BATCH_ROWS,
    quiet: Quiet = False,
) -> None:
    """Predict the label of every row, in the order of the files.

    With --confidence or --novelty, a row may have no answer: an empty cell, with the reason beside it.
    """
    from aircl.cli.answers import Answers
    from aircl.cli.output import OUTPUTS, Lines, Predictions
    from aircl.data.arrays import Request, agree_on_labels, expand_patterns, open_files

    if output is not None and is_stdout(output):
        output = None
    if output is not None and output.suffix.lower() not in OUTPUTS:
        raise typer.BadParameter(f"{output} should end in one of {', '.join(OUTPUTS)}.", param_hint="--output")
    paths = expand_patterns(files)
    if output is not None:
        check_output(output, inputs=[*paths, model])
    classifier = load_fitted(model)
    set_priors(classifier, priors)
    if confidence is not None and not classifier.calibrate:
        classifier.set_params(calibrate=True)  # otherwise there is no probability to believe
    names = take_feature_names(classifier)
    sources = open_files(paths, Request(label, features, names), classifier.n_features_in_)
    kind = None if label is None else agree_on_labels(sources, label_kind(classifier))
    reading = Reading(sources, quiet)
    correct = 0
    classes = classifier.classes_
    answers = Answers(classifier, confidence, novelty, top)
    writer: Predictions
    if output is None:
        writer = Lines(classes, proba, raw, answers.columns)
    else:
        writer = OUTPUTS[output.suffix.lower()](output, classes, proba, label is not None, raw, answers.columns)

    def use(part: Batch) -> None:
        nonlocal correct
        prediction, more = answers.of(part.X)
        correct += 0 if part.y is None else int((prediction == part.y).sum())
        writer.write(prediction, part.y, classifier.predict_proba(part.X) if proba else None, more)

    with writer:
        reading.feed(use, batch, kind, show=output is not None or not sys.stdout.isatty())
    if writer.changed and not quiet:
        say(f"Note: {writer.changed:,} cells begin with = + - @ and have a ' in front, unless --raw is given.")
    where = "" if output is None else f", in {output}"
    answered = reading.rows - answers.withheld
    accuracy = "" if label is None or not answered else f": {100 * correct / answered:.1f} % agree with {label}"
    withheld = f", {answers.withheld:,} without an answer" if "reason" in answers.columns else ""
    reading.finish("Predicted", withheld + accuracy + where)
