"""`aircl list`: which datasets, scenarios, backbones and methods there are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from aircl.cli.console import print_json, print_rich, reports_problems
from aircl.cli.options import DataDirectory, Json
from aircl.storage.text import visible

What = Literal["datasets", "scenarios", "backbones", "methods"]

COLUMNS = ("name", "aliases", "kind", "kinds", "description", "options", "needs", "available", "missing")


@reports_problems
def list_(
    what: Annotated[What, typer.Argument(help="What to list.")],
    data: DataDirectory = None,
    json: Json = False,
) -> None:
    """List the datasets, scenarios, backbones or methods that other commands know by name."""
    entries = [
        {column: getattr(entry, column) for column in COLUMNS if hasattr(entry, column)}
        for entry in find_entries(what, data)
    ]
    if json:
        print_json({what: entries})
    else:
        show(entries)


def find_entries(what: What, data: str | None) -> list[Any]:
    """Return what there is, each with a name, a description and perhaps more; `data` is where datasets are sought."""
    if what == "datasets":
        from aircl.data import list_datasets

        return list(list_datasets(data))
    if what == "scenarios":
        from aircl.scenarios import list_scenarios

        return list(list_scenarios())
    if what == "methods":
        from aircl.methods import describe_method, list_methods

        return [describe_method(name) for name in list_methods()]
    from aircl.backbones import list_backbones

    return list(list_backbones())


def show(entries: list[dict[str, Any]]) -> None:
    """Print entries as a table, one per row."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns = [column for column in COLUMNS if any(column in entry for entry in entries)]
    if "available" in columns:  # it says what is missing, which is what is needed
        columns = [column for column in columns if column not in ("needs", "missing")]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column == "name")
    for entry in entries:
        table.add_row(*(Text(visible(_cell(entry, column))) for column in columns))
    print_rich(table)


def _cell(entry: dict[str, Any], column: str) -> str:
    value = entry.get(column, "")
    if column == "available":
        missing = entry.get("missing") or f"needs {entry.get('needs')}"
        return "yes" if value else f"no: {missing}"
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
