"""Comparison tables as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aircl.report.estimates import Estimate
from aircl.report.published import Published
from aircl.report.side_by_side import Change
from aircl.report.tables import COSTS, METRICS, TWICE, Cell, Comparison
from aircl.storage.text import table_cell, visible


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
    | method | seeds | A\_last (%) | learning (s) | state (MB) | kept |
    | --- | ---: | ---: | ---: | ---: | ---: |
    | air | 1 | **93.00** | 0.50 | 100 | 0 |
    | acil | 1 | <u>87.00</u> | 0.40 | 100 | 0 |
    <BLANKLINE>
    """
    parts = []
    for comparison in comparisons:
        kind = "class-balanced" if comparison.balanced else "per sample"
        header, rows = _grid(comparison, _markdown_cell, escape_markdown)
        lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        notes = [f"- {escape_markdown(line.method.name)}: {escape_markdown(line.note)}"
                 for line in comparison.lines if line.note]  # fmt: skip
        parts.append("\n\n".join([
            f"## {escape_markdown(comparison.experiment.title)}, {kind}", table,
            *map(escape_markdown, _published_note(comparison)), *filter(None, [comparison.legend]),
            *map(escape_markdown, comparison.experiment.remarks),
            *(["\n".join(notes)] if notes else []),
        ]))  # fmt: skip
    return "\n\n".join(parts) + "\n"


def changes_to_markdown(changes: Sequence[Change]) -> str:
    """Return the differences between runs as tables in Markdown, one for each experiment; "" if there are none."""
    parts = []
    for experiment in {id(change.experiment): change.experiment for change in changes}.values():
        own = [change for change in changes if change.experiment is experiment]
        metrics = list(dict.fromkeys(change.metric for change in own))
        lines = [["method", "run", *map(escape_markdown, metrics)], ["---"] * (2 + len(metrics))]
        for method, run in dict.fromkeys((change.method, change.run) for change in own):
            texts = {c.metric: c.text for c in own if (c.method, c.run) == (method, run)}
            lines.append([escape_markdown(method), escape_markdown(run), *(texts.get(m, "-") for m in metrics)])
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        note = (
            "Points, against the first run that has the method; 95 % intervals over the same samples; ≈ is not clear."
        )
        parts.append(f"## {escape_markdown(experiment.title)}, differences\n\n{table}\n\n{note}\n")
    return "\n".join([*parts, ""]) if parts else ""


def to_csv(comparisons: Iterable[Comparison]) -> str:
    """Return all numbers, one line an experiment and method, accuracies in per cent.

    A column of metric M is followed by M_se, its standard error; published_M is the paper's number, and FILE:M one of a
    baseline. A name or note that begins with = + - @ has a ' in front, as a spreadsheet would run it.

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
    names = [name for key in keys for name in ((key, f"balanced_{key}") if key in TWICE else (key,))]
    header = ["dataset", "backbone", "scenario", "order", "method", "seeds"]
    header += [name for pair in ((n, f"{n}_se") for n in names) for name in pair]
    header += ["published_backbone", *(f"published_{key}" for key in TWICE), "note", "remarks"]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for comparison in comparisons:
        e = comparison.experiment
        for line in comparison.lines:
            start = (e.dataset, e.backbone, e.scenario, e.order, line.method.name, line.method.n_seeds)
            row = rows.setdefault(start, {})
            for key, cell in line.cells.items():
                name = f"balanced_{key}" if comparison.balanced and key in TWICE else key
                row[name] = f"{cell.value.mean:.10g}"
                row[f"{name}_se"] = "" if cell.value.standard_error is None else f"{cell.value.standard_error:.10g}"
            for source, theirs in zip(comparison.published, line.published, strict=True):
                prefix = "published_" if isinstance(source, Published) else f"{source.label}:"
                if theirs is not None:
                    row |= {f"{prefix}{key}": f"{value.mean:g}" for key, value in theirs.values.items()}
                    if isinstance(source, Published):
                        row["published_backbone"] = source.label.removeprefix("published, ")
            row["note"] = line.note
            row["remarks"] = " ".join(e.remarks)
    texts = {*header[:5], "published_backbone", "note", "remarks"}
    added = dict.fromkeys(name for row in rows.values() for name in row if name not in header)
    header[-2:-2] = list(added)
    out = io.StringIO()
    writer = csv.DictWriter(out, header, restval="", lineterminator="\n")
    writer.writerow({name: table_cell(name) for name in header})
    for start, row in rows.items():
        named = {**dict(zip(header, start, strict=False)), **row}
        # Numbers are texts here, and may be negative; only names and notes may be taken for formulas.
        writer.writerow({name: table_cell(cell) if name in texts else cell for name, cell in named.items()})
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
        method & seeds & A\_last (\%) & learning (s) & state (MB) & kept \\
        \midrule
        air & 1 & \textbf{93.00} & 0.50 & 100 & 0 \\
        acil & 1 & \underline{87.00} & 0.40 & 100 & 0 \\
    <BLANKLINE>
    """
    parts = ["% needs \\usepackage{booktabs}"]
    for comparison in comparisons:
        header, rows = _grid(comparison, _latex_cell, escape_latex)
        kind = "class-balanced" if comparison.balanced else "per sample"
        notes = " ".join([*_published_note(comparison), comparison.legend, *comparison.experiment.remarks])
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
        "≈": "$\\approx$", "·": "$\\cdot$", "<": "\\textless{}", ">": "\\textgreater{}",
    }  # fmt: skip
    return "".join(special.get(c, c) for c in visible(text))


def _grid(
    comparison: Comparison, show: Callable[[Cell], str], escape: Callable[[str], str]
) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table as text."""
    published = comparison.published
    header = ["method", "seeds", *(f"{c.title} ({c.unit})" if c.unit else c.title for c in comparison.columns)]
    header += [f"{metric} ({source.label})" for source in published for metric in source.metrics]
    rows = []
    for line in comparison.lines:
        cells = [line.cells.get(column.key) for column in comparison.columns]
        theirs = [
            None if row is None else row.values.get(metric)
            for source, row in zip(published, line.published, strict=True)
            for metric in source.metrics
        ]
        rows.append([
            escape(line.method.label),
            str(line.method.n_seeds) if line.method.jobs else "-",
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
    notes = [f"Ours: {comparison.experiment.backbone}."] if comparison.published else []
    for source in comparison.published:
        differences = f" Other differences: {'; '.join(source.differences)}." if source.differences else ""
        notes.append(f"{source.label[0].upper()}{source.label[1:]}: {source.source}.{differences}")
    return [" ".join(notes)] if notes else []


def _markdown_cell(cell: Cell) -> str:
    text = "≈" + cell.text if cell.tied else {0: "{}", 1: "**{}**", 2: "<u>{}</u>"}[cell.place].format(cell.text)
    return f"{text} ± {cell.error}" if cell.error else text


def _latex_cell(cell: Cell) -> str:
    number = cell.text.replace(",", "{,}")
    text = {0: "{}", 1: "\\textbf{{{}}}", 2: "\\underline{{{}}}"}[cell.place].format(number)
    text = f"$\\approx${number}" if cell.tied else text
    return f"{text} {{\\tiny$\\pm${cell.error}}}" if cell.error else text


def escape_markdown(text: str) -> str:
    r"""Return text that Markdown shows as it is.

    Examples
    --------
    >>> print(escape_markdown("A_last <b>"))
    A\_last \<b\>
    """
    for character in "\\|*_`<>[]":
        text = text.replace(character, "\\" + character)
    return visible(text.replace("\n", " "))
