"""Comparisons of methods: means and standard errors over seeds, the best marked, published numbers beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from aircl.report.estimates import Estimate
from aircl.report.experiments import Cost, Experiment, MethodResults
from aircl.report.published import Baseline, Published, PublishedMethod, find_published, read_baseline
from aircl.report.significance import SEEDS_FOR_INTERVAL, TESTED, contrast


@dataclass(frozen=True)
class Column:
    """A column of a comparison.

    Attributes
    ----------
    key : str
        Metric or cost.
    title : str
    description : str
        One line that explains it.
    unit : str
    scale : float
        What values are multiplied with to be in that unit.
    better : {"high", "low", ""}
        Which values are marked as best; "" for a fact that is neither good nor bad.
    extra : bool
        Whether only the page and the CSV file have it, or who asks for it.
    """

    key: str
    title: str
    description: str
    unit: str = "%"
    scale: float = 100.0
    better: Literal["high", "low", ""] = "high"
    extra: bool = False


METRICS = (
    Column("A_avg", "A_avg", "Mean of the accuracies at the ends of the phases"),
    Column("A_last", "A_last", "Accuracy after the last phase"),
    Column("A_auc", "A_auc", "Mean of the accuracies that were measured on the way"),
    Column("forgetting", "forgetting", "How far classes fell below their best earlier accuracy", better=""),
    Column("head", "head", "Last accuracy of classes with more than 100 training samples"),
    Column("middle", "middle", "Last accuracy of classes with 20 to 100 training samples"),
    Column("tail", "tail", "Last accuracy of classes with fewer than 20 training samples"),
    Column(
        "backward_transfer", "BWT", "Backward transfer: last accuracy minus that when it was new", better="", extra=True
    ),
    Column(
        "forward_transfer",
        "FWT",
        "Forward transfer: accuracy before a domain comes, above chance",
        better="",
        extra=True,
    ),
    Column("ECE", "ECE", "Expected calibration error, 15 bins", better="", extra=True),
    Column("NLL", "NLL", "Negative log-likelihood of the test samples", "", 1.0, "", extra=True),
    Column("expected_accuracy", "expected", "Accuracy that the method itself expects", better="", extra=True),
)
COSTS = (
    Column("seconds", "learning", "Wall time of learning and solving, after a warm-up", "s", 1.0, ""),
    Column("predict_seconds", "predicting", "Wall time of predicting the test set, all evaluations", "s", 1.0, ""),
    Column("state_bytes", "state", "What the method saves, without weights of the backbone", "MB", 1e-6, ""),
    Column("peak_memory", "peak memory", "Largest size of the process that ran this job alone", "MB", 1e-6, ""),
    Column("kept", "kept", "Training samples that the method holds", "", 1.0, ""),
    Column("gamma", "gamma", "Ridge of analytic methods, as used at the end", "", 1.0, ""),
    Column("buffer", "buffer", "Width of the random buffer, or number of kernel centres", "", 1.0, ""),
)

# Accuracies of a whole stream, which are measured twice: over samples, and over classes. The others are means over
# classes by their definition.
TWICE = ("A_avg", "A_last", "A_auc")


@dataclass(frozen=True)
class Cell:
    """A number of a table.

    Attributes
    ----------
    value : Estimate
        In the unit of the column.
    text : str
        The mean, as it is shown.
    error : str
        The standard error, as it is shown; "" if there is none.
    place : {0, 1, 2}
        1: best of the column, 2: second best.
    tied : bool
        Whether it is not to be told from the best of the column; the best is itself if another one is.
    """

    value: Estimate
    text: str
    error: str
    place: int = 0
    tied: bool = False


@dataclass(frozen=True)
class Line:
    """A method's row.

    Attributes
    ----------
    method : MethodResults
        Without jobs: only a file of numbers has it.
    cells : mapping of str to Cell
        By key of the column; what is not known is not there.
    published : tuple of PublishedMethod or None
        Numbers of others of the same method, one for each source of the comparison.
    """

    method: MethodResults
    cells: Mapping[str, Cell]
    published: tuple[PublishedMethod | None, ...]

    @property
    def note(self) -> str:
        """What went wrong, if anything did."""
        parts = []
        for status, reason, seeds in self.method.problems:
            which = "" if len(seeds) == len(self.method.jobs) else f" (seed {', '.join(map(str, seeds))})"
            parts.append(f"{status}{which}: {reason}")
        return "; ".join(parts)


@dataclass(frozen=True)
class Comparison:
    """The table of one experiment.

    Attributes
    ----------
    experiment : Experiment
    balanced : bool
        Whether accuracies are means over classes instead of samples.
    columns : tuple of Column
        Those for which any method has a value.
    lines : tuple of Line
    published : tuple of Published or Baseline
        Numbers of others: the paper's, where it has such an experiment, and those of files.
    """

    experiment: Experiment
    balanced: bool
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    published: tuple[Published | Baseline, ...]

    @property
    def brief(self) -> Comparison:
        """The same without the columns that only the page and the CSV file have."""
        return replace(self, columns=tuple(column for column in self.columns if not column.extra))

    @property
    def legend(self) -> str:
        """What ≈ means here; "" if no number is marked so."""
        if not any(cell.tied for line in self.lines for cell in line.cells.values()):
            return ""
        over = "test samples and seeds"
        if max(line.method.n_seeds for line in self.lines) < SEEDS_FOR_INTERVAL:
            over = "test samples alone, as there are fewer than three seeds"
        return f"≈: cannot be told from the best; the 95 % interval of the difference has 0 in it ({over})."


def compare(
    experiment: Experiment, balanced: bool = False, baselines: Sequence[Path] = (), *, extra: bool = False
) -> Comparison:
    """Put the methods of an experiment side by side.

    Parameters
    ----------
    experiment : Experiment
    balanced : bool, default=False
        Means over classes instead of samples, for A_avg, A_last and A_auc.
    baselines : sequence of path, default=()
        CSV files with numbers of others: a column `method`, and metrics in per cent, such as `A_last`.
    extra : bool, default=False
        Also transfer and calibration.

    Returns
    -------
    comparison : Comparison
        Per column, the best and the second best are marked by what is shown of them. Where single test samples are
        known, those that cannot be told from the best are marked as that, see `contrast`. A single method is not
        compared, and bounds are not marked.

    Examples
    --------
    >>> from aircl.benchmark import Row
    >>> from aircl.report import compare, read_experiments
    >>> rows = [
    ...     Row("run", method, "digits", "identity", "cil", "", method, 1, 0, 900, "final", "A_last", value, t, 10**8)
    ...     for method, value, t in (("acil", 0.87, 0.4), ("air", 0.93, 0.5))
    ... ]
    >>> comparison = compare(read_experiments(rows)[0])
    >>> for line in comparison.lines:
    ...     print(line.method.name, line.cells["A_last"].text, line.cells["A_last"].place)
    air 93.00 1
    acil 87.00 2
    """
    values = {method.name: _values(method, balanced) for method in experiment.methods}
    columns = tuple(
        column
        for column in (*METRICS, *COSTS)
        if any(column.key in own for own in values.values()) and (extra or not column.extra)
    )
    cells: dict[str, dict[str, Cell]] = {name: {} for name in values}
    for column in columns:
        shown = {name: _cell(column, own[column.key]) for name, own in values.items() if column.key in own}
        rivals = {name: cell for name, cell in shown.items() if not experiment.method(name).is_bound}
        marked = tie(experiment, column.key, balanced, mark(rivals, column.better))
        for name, cell in {**shown, **marked}.items():
            cells[name][column.key] = cell
    found = [find_published(experiment), *(read_baseline(path, experiment) for path in baselines)]
    published = tuple(source for source in found if source is not None)
    lines = tuple(
        Line(method, cells[method.name], tuple(source.beside(method) for source in published))
        for method in experiment.methods
    )
    return Comparison(experiment, balanced, columns, (*lines, *_lines_of_others(experiment, published)), published)


def _lines_of_others(experiment: Experiment, published: Sequence[Published | Baseline]) -> Iterator[Line]:
    """Yield a line for each method that only files of numbers have; the paper's have a table of their own."""
    files = [source for source in published if isinstance(source, Baseline)]
    ran = [[source.beside(method) for method in experiment.methods] for source in files]
    names = dict.fromkeys(
        row.name for source, own in zip(files, ran, strict=True) for row in source.methods if row not in own
    )
    for other in (MethodResults(name, 0, ()) for name in names):
        yield Line(other, {}, tuple(source.beside(other) if source in files else None for source in published))


def mark(cells: Mapping[str, Cell], better: str) -> dict[str, Cell]:
    """Return cells with the places of the best and the second best, by what is shown of them."""
    if not better or len(cells) < 2:
        return dict(cells)
    numbers = {name: float(cell.text.replace(",", "")) for name, cell in cells.items()}
    ranked = sorted(set(numbers.values()), reverse=better == "high")
    places = dict(zip(ranked, (1, 2), strict=False))
    return {name: replace(cell, place=places.get(numbers[name], 0)) for name, cell in cells.items()}


def tie(experiment: Experiment, key: str, balanced: bool, cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Return cells with those marked as tied that cannot be told from the best of them."""
    best = next((name for name, cell in cells.items() if cell.place == 1), None)
    if best is None or key not in TESTED:
        return dict(cells)
    top = max(cells, key=lambda name: cells[name].value.mean)
    against = {
        name: contrast(experiment.method(top), experiment.method(name), key, balanced) for name in cells if name != top
    }
    tied = {name for name, found in against.items() if found is not None and not found.is_clear}
    tied |= {top} if tied else set()
    return {name: replace(cell, tied=name in tied) for name, cell in cells.items()}


def _values(method: MethodResults, balanced: bool) -> dict[str, Estimate]:
    if not method.n_seeds:  # what half a stream costs compares with nothing
        return {}
    found = {
        column.key: method.final(f"balanced_{column.key}" if balanced and column.key in TWICE else column.key)
        for column in METRICS
    }
    found |= {column.key: method.cost(cast(Cost, column.key)) for column in COSTS}
    return {key: value for key, value in found.items() if value is not None}


def _cell(column: Column, value: Estimate) -> Cell:
    error = value.standard_error
    scaled = Estimate(value.mean * column.scale, None if error is None else error * column.scale, value.n)
    text = format_number(column, scaled.mean)
    show_error = scaled.standard_error is not None and column.unit == "%"  # that of a cost is in the figures
    return Cell(scaled, text, format_number(column, scaled.standard_error or 0.0) if show_error else "")


def format_number(column: Column, value: float) -> str:
    """Return a number as tables show it: two decimals, or what a cost needs."""
    if column.unit in ("%", "s"):
        return f"{round(value, 2) + 0.0:,.2f}"  # no -0.00
    if column.key in ("gamma", "NLL"):
        return f"{value:.4g}"
    if column.key == "state_bytes":  # from a few kB to many GB
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,.0f}"
