"""Comparison tables: means and standard errors over seeds, as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from aircl.report.experiments import Estimate, Experiment, MethodResults
from aircl.report.published import Published, PublishedMethod, find_published


@dataclass(frozen=True)
class Column:
    """A column of a comparison.

    Attributes
    ----------
    key : str
        Metric or cost.
    title : str
    description : str
        One line for whoever asks what it is.
    unit : str
    scale : float
        What values are multiplied with to be in that unit.
    better : {"high", "low", ""}
        Which values are marked as best; "" for a fact that is neither good nor bad.
    """

    key: str
    title: str
    description: str
    unit: str = "%"
    scale: float = 100.0
    better: Literal["high", "low", ""] = "high"


METRICS = (
    Column("A_avg", "A_avg", "Mean of the accuracies at the ends of the phases"),
    Column("A_last", "A_last", "Accuracy after the last phase"),
    Column("A_auc", "A_auc", "Mean of the accuracies that were measured on the way"),
    Column("forgetting", "forgetting", "How far classes fell below their best earlier accuracy", better="low"),
    Column("head", "head", "Last accuracy of classes with more than 100 training samples"),
    Column("middle", "middle", "Last accuracy of classes with 20 to 100 training samples"),
    Column("tail", "tail", "Last accuracy of classes with fewer than 20 training samples"),
)
COSTS = (
    Column("seconds", "time", "Wall time of learning", "s", 1.0, "low"),
    Column("peak_memory", "memory", "Peak memory of the process", "MB", 1e-6, "low"),
    Column("kept", "kept", "Training samples that the method holds", "", 1.0, ""),
    Column("gamma", "gamma", "Ridge of analytic methods, as used at the end", "", 1.0, ""),
    Column("buffer", "buffer", "Width of the random ReLU buffer", "", 1.0, ""),
)

# Accuracies of a whole stream, which are measured twice: over samples, and over classes. The others are means over
# classes by their definition.
_TWICE = ("A_avg", "A_last", "A_auc")

_Cost = Literal["seconds", "peak_memory", "kept", "gamma", "buffer"]


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
    """

    value: Estimate
    text: str
    error: str
    place: int = 0


@dataclass(frozen=True)
class Line:
    """A method's row.

    Attributes
    ----------
    method : MethodResults
    cells : mapping of str to Cell
        By key of the column; what is not known is not there.
    published : PublishedMethod or None
        The paper's numbers of the same method.
    """

    method: MethodResults
    cells: Mapping[str, Cell]
    published: PublishedMethod | None

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
    published : Published or None
    """

    experiment: Experiment
    balanced: bool
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    published: Published | None


def compare(experiment: Experiment, balanced: bool = False) -> Comparison:
    """Put the methods of an experiment side by side.

    Parameters
    ----------
    experiment : Experiment
    balanced : bool, default=False
        Means over classes instead of samples, for A_avg, A_last and A_auc.

    Returns
    -------
    comparison : Comparison
        Per column, the best and the second best are marked; numbers that look the same are as good. A single method
        is not compared.

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
    columns = tuple(column for column in (*METRICS, *COSTS) if any(column.key in own for own in values.values()))
    cells: dict[str, dict[str, Cell]] = {name: {} for name in values}
    for column in columns:
        shown = {name: _cell(column, own[column.key]) for name, own in values.items() if column.key in own}
        for name, cell in mark(shown, column.better).items():
            cells[name][column.key] = cell
    published = find_published(experiment)
    lines = tuple(
        Line(method, cells[method.name], None if published is None else published.beside(method))
        for method in experiment.methods
    )
    return Comparison(experiment, balanced, columns, lines, published)


def mark(cells: Mapping[str, Cell], better: str) -> dict[str, Cell]:
    """Return cells with the places of the best and the second best, by what is shown of them."""
    if not better or len(cells) < 2:
        return dict(cells)
    numbers = {name: float(cell.text.replace(",", "")) for name, cell in cells.items()}
    ranked = sorted(set(numbers.values()), reverse=better == "high")
    places = dict(zip(ranked, (1, 2), strict=False))
    return {name: Cell(cell.value, cell.text, cell.error, places.get(numbers[name], 0)) for name, cell in cells.items()}


def _values(method: MethodResults, balanced: bool) -> dict[str, Estimate]:
    if not method.n_seeds:  # what half a stream costs compares with nothing
        return {}
    found = {
        column.key: method.final(f"balanced_{column.key}" if balanced and column.key in _TWICE else column.key)
        for column in METRICS
    }
    found |= {column.key: method.cost(cast(_Cost, column.key)) for column in COSTS}
    return {key: value for key, value in found.items() if value is not None}


def _cell(column: Column, value: Estimate) -> Cell:
    error = value.standard_error
    scaled = Estimate(value.mean * column.scale, None if error is None else error * column.scale, value.n)
    text = format_number(column, scaled.mean)
    show_error = scaled.standard_error is not None and column.unit == "%"  # that of a cost is in the figures
    return Cell(scaled, text, format_number(column, scaled.standard_error or 0.0) if show_error else "")


def format_number(column: Column, value: float) -> str:
    """Return a number as tables show it: two decimals, or what a cost needs."""
    if column.unit == "%" or column.key == "seconds":
        return f"{round(value, 2) + 0.0:,.2f}"  # no -0.00
    if column.key == "gamma":
        return f"{value:.4g}"
    return f"{value:,.0f}"


# -- Markdown, CSV, LaTeX --


def to_markdown(comparisons: Iterable[Comparison]) -> str:
    r"""Return tables in Markdown, best in bold and second best underlined, published numbers in columns of their own.

    Parameters
    ----------
    comparisons : iterable of Comparison
        As `compare` returns them, one a table.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from aircl.benchmark import Row
    >>> from aircl.report import compare, read_experiments, to_markdown
    >>> rows = [
    ...     Row("run", method, "digits", "identity", "cil", "", method, 1, 0, 900, "final", "A_last", value, t, 10**8)
    ...     for method, value, t in (("acil", 0.87, 0.4), ("air", 0.93, 0.5))
    ... ]
    >>> print(to_markdown(map(compare, read_experiments(rows))))
    ## digits · cil · identity, per sample
    <BLANKLINE>
    | method | seeds | A\_last (%) | time (s) | memory (MB) | kept |
    | --- | ---: | ---: | ---: | ---: | ---: |
    | air | 1 | **93.00** | <u>0.50</u> | **100** | 0 |
    | acil | 1 | <u>87.00</u> | **0.40** | **100** | 0 |
    <BLANKLINE>
    """
    parts = []
    for comparison in comparisons:
        kind = "class-balanced" if comparison.balanced else "per sample"
        header, rows = _grid(comparison, _markdown_cell, _escape_markdown)
        lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        notes = [f"- {_escape_markdown(line.method.name)}: {_escape_markdown(line.note)}"
                 for line in comparison.lines if line.note]  # fmt: skip
        parts.append("\n\n".join([
            f"## {_escape_markdown(comparison.experiment.title)}, {kind}", table, *_published_note(comparison),
            *(["\n".join(notes)] if notes else []),
        ]))  # fmt: skip
    return "\n\n".join(parts) + "\n"


def to_csv(comparisons: Iterable[Comparison]) -> str:
    """Return all numbers, one line an experiment and method, accuracies in per cent.

    A column of metric M is followed by M_se, its standard error; published_M is the paper's number.

    Parameters
    ----------
    comparisons : iterable of Comparison
        As `compare` returns them; per sample and class-balanced ones of an experiment share a line.

    Returns
    -------
    text : str

    Examples
    --------
    >>> import csv
    >>> from aircl.benchmark import Row
    >>> from aircl.report import compare, read_experiments, to_csv
    >>> rows = [
    ...     Row("run", method, "digits", "identity", "cil", "", method, 1, 0, 900, "final", "A_last", value, t, 10**8)
    ...     for method, value, t in (("acil", 0.87, 0.4), ("air", 0.93, 0.5))
    ... ]
    >>> text = to_csv(map(compare, read_experiments(rows)))
    >>> [(line["method"], line["A_last"], line["seconds"]) for line in csv.DictReader(text.splitlines())]
    [('air', '93', '0.5'), ('acil', '87', '0.4')]
    """
    keys = [column.key for column in (*METRICS, *COSTS)]
    names = [name for key in keys for name in ((key, f"balanced_{key}") if key in _TWICE else (key,))]
    header = ["dataset", "backbone", "scenario", "order", "method", "seeds"]
    header += [name for pair in ((n, f"{n}_se") for n in names) for name in pair]
    header += ["published_backbone", *(f"published_{key}" for key in _TWICE), "note"]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for comparison in comparisons:
        e = comparison.experiment
        for line in comparison.lines:
            start = (e.dataset, e.backbone, e.scenario, e.order, line.method.name, line.method.n_seeds)
            row = rows.setdefault(start, {})
            for key, cell in line.cells.items():
                name = f"balanced_{key}" if comparison.balanced and key in _TWICE else key
                row[name] = f"{cell.value.mean:.10g}"
                row[f"{name}_se"] = "" if cell.value.standard_error is None else f"{cell.value.standard_error:.10g}"
            if line.published is not None and comparison.published is not None:
                row["published_backbone"] = comparison.published.label.removeprefix("published, ")
                row |= {f"published_{key}": f"{value.mean:g}" for key, value in line.published.values.items()}
            row["note"] = line.note
    out = io.StringIO()
    writer = csv.DictWriter(out, header, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({**dict(zip(header, start, strict=False)), **row} for start, row in rows.items())
    return out.getvalue()


def to_latex(comparisons: Iterable[Comparison]) -> str:
    r"""Return one table an experiment for LaTeX, with \usepackage{booktabs}.

    Parameters
    ----------
    comparisons : iterable of Comparison
        As `compare` returns them, one a table.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from aircl.benchmark import Row
    >>> from aircl.report import compare, read_experiments, to_latex
    >>> rows = [
    ...     Row("run", method, "digits", "identity", "cil", "", method, 1, 0, 900, "final", "A_last", value, t, 10**8)
    ...     for method, value, t in (("acil", 0.87, 0.4), ("air", 0.93, 0.5))
    ... ]
    >>> text = to_latex(map(compare, read_experiments(rows)))
    >>> print(text[text.index("    method") : text.index("    \\bottomrule")])
        method & seeds & A\_last (\%) & time (s) & memory (MB) & kept \\
        \midrule
        air & 1 & \textbf{93.00} & \underline{0.50} & \textbf{100} & 0 \\
        acil & 1 & \underline{87.00} & \textbf{0.40} & \textbf{100} & 0 \\
    <BLANKLINE>
    """
    parts = ["% needs \\usepackage{booktabs}"]
    for comparison in comparisons:
        header, rows = _grid(comparison, _latex_cell, escape_latex)
        kind = "class-balanced" if comparison.balanced else "per sample"
        notes = " ".join(_published_note(comparison)).replace("**", "")
        caption = escape_latex(f"{comparison.experiment.title}: accuracies in per cent, {kind}. {notes}".strip())
        parts.append("\n".join([
            "\\begin{table}", "  \\centering", "  \\small",
            f"  \\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", "    \\toprule",
            f"    {' & '.join(header)} \\\\", "    \\midrule",
            *(f"    {' & '.join(row)} \\\\" for row in rows),
            "    \\bottomrule", "  \\end{tabular}", f"  \\caption{{{caption}}}", "\\end{table}",
        ]))  # fmt: skip
    return "\n\n".join(parts) + "\n"


def escape_latex(text: str) -> str:
    r"""Return text that LaTeX shows as it is.

    Examples
    --------
    >>> print(escape_latex("A_last ± 5 % of {x}"))
    A\_last $\pm$ 5 \% of \{x\}
    """
    special = {c: f"\\{c}" for c in "&%$#_{}"} | {
        "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$",
        "·": "$\\cdot$", "<": "\\textless{}", ">": "\\textgreater{}",
    }  # fmt: skip
    return "".join(special.get(c, c) for c in text)


def _grid(
    comparison: Comparison, show: Callable[[Cell], str], escape: Callable[[str], str]
) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table as text."""
    published = comparison.published
    header = ["method", "seeds", *(f"{c.title} ({c.unit})" if c.unit else c.title for c in comparison.columns)]
    metrics: Sequence[str] = () if published is None else published.metrics
    if published is not None:
        header += [f"{metric} ({published.label})" for metric in metrics]
    rows = []
    for line in comparison.lines:
        cells = [line.cells.get(column.key) for column in comparison.columns]
        theirs = [None if line.published is None else line.published.values.get(metric) for metric in metrics]
        rows.append([
            escape(line.method.name),
            str(line.method.n_seeds),
            *("-" if cell is None else show(cell) for cell in cells),
            *("-" if value is None else escape(format_estimate(value)) for value in theirs),
        ])  # fmt: skip
    return [escape(title) for title in header], rows


def format_estimate(value: Estimate) -> str:
    """Return a published accuracy as text.

    Examples
    --------
    >>> format_estimate(Estimate(79.7, 0.06, 7))
    '79.70 ± 0.06'
    """
    error = "" if value.standard_error is None else f" ± {value.standard_error:.2f}"
    return f"{value.mean:.2f}{error}"


def _published_note(comparison: Comparison) -> list[str]:
    if comparison.published is None:
        return []
    ours = f"Ours: {comparison.experiment.backbone}."
    theirs = f"P{comparison.published.label[1:]}: table {comparison.published.preset.table} of the paper."
    differences = "; ".join(comparison.published.differences)
    return [f"{ours} {theirs}" + (f" Apart from the backbone: {differences}." if differences else "")]


def _markdown_cell(cell: Cell) -> str:
    text = {0: "{}", 1: "**{}**", 2: "<u>{}</u>"}[cell.place].format(cell.text)
    return f"{text} ± {cell.error}" if cell.error else text


def _latex_cell(cell: Cell) -> str:
    number = cell.text.replace(",", "{,}")
    text = {0: "{}", 1: "\\textbf{{{}}}", 2: "\\underline{{{}}}"}[cell.place].format(number)
    return f"{text} {{\\tiny$\\pm${cell.error}}}" if cell.error else text


def _escape_markdown(text: str) -> str:
    for character in "\\|*_`<>[]":
        text = text.replace(character, "\\" + character)
    return text.replace("\n", " ")
