"""`aircl export-rows`: the flat rows of runs as one table."""

from __future__ import annotations

import csv
from dataclasses import asdict, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from aircl.cli.console import reports_problems, say
from aircl.cli.options import Quiet
from aircl.storage.text import table_cell
from aircl.storage.writing import check_output, check_own, replacing


@reports_problems
def export_rows(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR..", help="Directories that `aircl run` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The table: .csv or .parquet.", show_default="rows.csv"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write all rows of runs, one per measured value, as one table for pandas, R or a spreadsheet."""
    from aircl.benchmark.results import Row, RunDirectory

    header = [field.name for field in fields(Row)]
    if output is None:
        output = Path("rows.csv")
        check_own(output, ",".join(header[:6]))
    if output.suffix not in (".csv", ".parquet"):
        raise typer.BadParameter(f"{output} should end in .csv or .parquet.", param_hint="--output")
    if output.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ValueError("parquet files need pyarrow: pip install 'aircl[parquet]'. Or write a .csv file.")
    check_output(output, [path / name for path in runs for name in ("rows.jsonl", "run.json")])
    rows = []
    for path in runs:
        directory = RunDirectory(path)
        _ = directory.about  # which says so if there is no run
        rows += [asdict(row) for row in directory.rows()]
    with replacing(output) as temporary:
        if output.suffix == ".parquet":
            import pyarrow
            from pyarrow import parquet

            parquet.write_table(pyarrow.Table.from_pylist(rows), temporary)
        else:
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, header, lineterminator="\n")
                writer.writeheader()
                writer.writerows({name: table_cell(value) for name, value in row.items()} for row in rows)
    if not quiet:
        say(f"{len(rows):,} rows in {output}")
