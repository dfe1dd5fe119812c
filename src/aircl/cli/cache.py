"""`aircl cache`: what is in the cache of features, and room for more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import print_json, print_rich, reports_problems, say
from aircl.cli.info import size_of
from aircl.cli.options import CacheDirectory, Json
from aircl.storage.text import visible

if TYPE_CHECKING:
    from aircl.backbones.cache import Entry


@reports_problems
def cache(
    directory: CacheDirectory = None,
    clear: Annotated[
        str | None,
        typer.Option(metavar="WHAT", help="Remove entries: `all`, `partial`, or those of a dataset, backbone or key."),
    ] = None,
    json: Json = False,
) -> None:
    """List the features that were extracted and kept, or remove some."""
    from aircl.backbones.cache import FeatureCache

    store = FeatureCache(directory)
    entries = store.entries()
    if clear is not None:
        entries = [entry for entry in entries if _is_meant(entry, clear)]
        if not entries and clear not in ("all", "partial"):
            raise ValueError(f"nothing in {store.directory} matches {clear!r}. `aircl cache` lists what is there.")
        busy = store.clear(entries)
        for entry in busy:
            say(f"Left alone, a process is filling it: {entry.path}")
        entries = [entry for entry in entries if entry not in busy]
    if json:
        rows = list(map(_row, entries))
        print_json({"directory": str(store.directory), "cleared": clear is not None, "entries": rows})
    elif clear is not None:
        typer.echo(f"Removed {len(entries)} of features, {size_of(sum(entry.nbytes for entry in entries))}.")
    else:
        _show(store.directory, entries)


def _is_meant(entry: Entry, what: str) -> bool:
    if what == "all":
        return True
    if what == "partial":
        return not entry.complete
    names = () if entry.about is None else (entry.about.backbone, entry.about.data, entry.about.data.split("/")[0])
    return what in names or (len(what) >= 6 and entry.path.name.startswith(what))


def _row(entry: Entry) -> dict[str, Any]:
    about = entry.about
    return {
        "key": entry.path.name,
        "data": about and about.data,
        "backbone": about and about.backbone,
        "rows": about and about.rows,
        "width": about and about.width,
        "complete": entry.complete,
        "share": entry.chunks / about.n_chunks if about else 0.0,
        "bytes": entry.nbytes,
    }


def _show(directory: Path, entries: list[Entry]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not entries:
        typer.echo(f"{directory} is empty. `aircl features` fills it.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("data", "backbone"):
        table.add_column(name)
    for name in ("rows", "width", "done", "size"):
        table.add_column(name, justify="right")
    table.add_column("key")
    for row in map(_row, entries):
        shape = (f"{row['rows']:,}", str(row["width"])) if row["data"] is not None else ("?", "?")
        names = (Text(visible(row["data"] or "?")), Text(visible(row["backbone"] or "?")))
        table.add_row(*names, *shape, f"{row['share']:.0%}", size_of(row["bytes"]), row["key"][:8])
    print_rich(table)
    say(f"{size_of(sum(entry.nbytes for entry in entries))} in {directory}")
