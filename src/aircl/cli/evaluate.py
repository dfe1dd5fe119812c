"""`aircl evaluate`: how good a model is on labelled files, class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aircl.cli.console import Reading, print_json, print_rich, reports_problems, say
from aircl.cli.modelfile import load_fitted, set_priors, whole
from aircl.cli.options import (
    BATCH_ROWS,
    BatchRows,
    Device,
    Features,
    Files,
    Id,
    Image,
    Json,
    Label,
    ModelPath,
    PriorsOption,
    Quiet,
    Text,
)
from aircl.cli.sources import Asked, open_rows
from aircl.storage.text import visible

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier
    from aircl.data.arrays import Batch


@dataclass
class ClassScore:
    """How many rows of a class there were, and how many were recognised.

    Attributes
    ----------
    label : str, int or bool
    training_count : float
    rows, correct : int
    expected : float or None
        The recall that the model expects, if it does.
    """

    label: Any
    training_count: float
    rows: int = 0
    correct: int = 0
    expected: float | None = None

    @property
    def recall(self) -> float:
        """The share of the class's rows that were recognised."""
        return self.correct / self.rows

    @property
    def group(self) -> str:
        """Whether the class is of the head, the middle or the tail, by its training count."""
        return "head" if self.training_count > 100 else "tail" if self.training_count < 20 else "middle"


GROUPS = {"head": "> 100", "middle": "20 to 100", "tail": "< 20"}


@reports_problems
def evaluate(
    model: ModelPath,
    files: Files,
    label: Label = None,
    features: Features = None,
    text: Text = None,
    image: Image = None,
    id_: Id = None,
    device: Device = None,
    priors: PriorsOption = None,
    batch: BatchRows = BATCH_ROWS,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare predictions with labels: accuracy, class-balanced accuracy, and the recall of every class.

    A calibrated model also shows what it expects on new rows, from its statistics alone.
    """
    import numpy as np

    classifier = load_fitted(model)
    set_priors(classifier, priors)
    asked = Asked(label, features, None, id_, tuple(text or ()), image)
    opened = open_rows(files, asked, classifier, device=device)
    reading = Reading(opened.sources, quiet)
    expected = expected_recalls(classifier)
    counts = dict(zip(classifier.classes_.tolist(), classifier.class_count_.tolist(), strict=True))
    scores: dict[Any, ClassScore] = {}

    def use(part: Batch) -> None:
        right = classifier.predict(part.X) == part.y
        labels, place = np.unique(np.asarray(part.y), return_inverse=True)
        rows, correct = np.bincount(place), np.bincount(place[right], minlength=len(labels))
        for truth, n, hits in zip(labels.tolist(), rows.tolist(), correct.tolist(), strict=True):
            score = scores.setdefault(truth, ClassScore(truth, counts.get(truth, 0.0), expected=expected.get(truth)))
            score.rows += n
            score.correct += hits

    reading.feed(use, batch, opened.kind)
    if not scores:
        raise ValueError(f"no rows in {', '.join(files)}, so there is nothing to evaluate.")
    by_label = sorted(scores.values(), key=lambda score: score.label)
    unknown = [score.label for score in by_label if not score.training_count]
    if unknown and not quiet:
        say(f"Note: {len(unknown)} labels were never learned, so their rows count as wrong: {unknown[:8]}.")
    result = summarise(by_label)
    if json:
        print_json(result)
    else:
        show(result)
    reading.finish("Evaluated", "")


def expected_recalls(classifier: AnalyticClassifier) -> dict[Any, float]:
    """Return the recall that a model expects of each class; nothing if it is not calibrated, or knows no scatter.

    Of more than 1024 classes, those that were not simulated have the mean of those that were.
    """
    if not getattr(classifier, "calibrate", False):
        return {}
    found = classifier.expected_accuracy()
    if found.overall != found.overall:
        return {}
    learned = zip(classifier.classes_.tolist(), classifier.class_count_.tolist(), found.per_class.tolist(), strict=True)
    return {label: recall if recall == recall else found.overall for label, count, recall in learned if count > 0.0}


def summarise(scores: Sequence[ClassScore]) -> dict[str, Any]:
    """Return accuracy, class-balanced accuracy, the recall of head, middle and tail, and of every class."""
    rows = sum(score.rows for score in scores)
    # Of classes that were never learned, none is expected to be recognised.
    expects = any(score.expected is not None for score in scores)
    of_class = {score.label: score.expected or 0.0 for score in scores}
    groups = {name: [score.recall for score in scores if score.group == name] for name in GROUPS}
    return {
        "rows": rows,
        "accuracy": sum(score.correct for score in scores) / rows,
        "balanced_accuracy": _mean([score.recall for score in scores]),
        "groups": {
            name: {"training_count": GROUPS[name], "classes": len(recalls), "recall": _mean(recalls)}
            for name, recalls in groups.items()
        },
        "expected_accuracy": sum(score.rows * of_class[score.label] for score in scores) / rows if expects else None,
        "expected_balanced_accuracy": _mean(list(of_class.values())) if expects else None,
        "classes": [
            {
                "label": score.label,
                "training_count": whole(score.training_count),
                "rows": score.rows,
                "recall": score.recall,
                "expected_recall": of_class[score.label] if expects else None,
            }
            for score in scores
        ],
    }


def show(result: dict[str, Any]) -> None:
    """Print a summary as tables."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    overall = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("", "training count", "classes", "recall %"):
        overall.add_column(column, justify="left" if not column else "right")
    for name, group in result["groups"].items():
        recall = "-" if group["recall"] is None else f"{100 * group['recall']:.1f}"
        overall.add_row(name, group["training_count"], str(group["classes"]), recall)
    by_class = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    expects = result["expected_accuracy"] is not None
    for column in ("class", "training count", "rows", "recall %", *["expected %"] * expects):
        by_class.add_column(column, justify="left" if column == "class" else "right")
    for score in result["classes"]:
        count, rows = f"{score['training_count']:.10g}", str(score["rows"])
        recalls = [score["recall"], *[score["expected_recall"]] * expects]
        by_class.add_row(Text(visible(score["label"])), count, rows, *(f"{100 * recall:.1f}" for recall in recalls))
    lines = (
        f"accuracy                 {100 * result['accuracy']:5.1f} %  ({result['rows']:,} rows)\n"
        f"class-balanced accuracy  {100 * result['balanced_accuracy']:5.1f} %"
    )
    if expects:
        first, second = result["expected_accuracy"], result["expected_balanced_accuracy"]
        lines += f"\nexpected by the model     {100 * first:5.1f} %, class-balanced {100 * second:.1f} %"
    print_rich(Group(Text(lines), overall, by_class))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
