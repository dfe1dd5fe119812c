"""Where a model comes from: what each command did to it, when, by which version, with which files.

It is written by the command line only, so that the same rows give the same bits in Python. `SOURCE_DATE_EPOCH`, seconds
since 1970, takes the place of the clock.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl import __version__
from aircl.cli.modelfile import change_inputs, inputs_of, row_count

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier
    from aircl.data.arrays import Source

Note = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="A remark that stays in the model, for `aircl info`.")
]


def now() -> str:
    """Return the time in UTC, to the second."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is not None and not text.isdecimal():
        raise ValueError(f"SOURCE_DATE_EPOCH={text!r} should be a number of seconds since 1970.")
    time = datetime.now(UTC) if text is None else datetime.fromtimestamp(int(text), UTC)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def sha256(path: Path) -> str | None:
    """Return what `sha256sum` says of a file; None of what is no file."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_read(sources: Sequence[Source], counts: Sequence[int]) -> list[dict[str, Any]]:
    """Return name, rows and digest of what was read. Of paths, only the last part: the others are nobody's business."""
    files: dict[Path, int] = {}
    for source, rows in zip(sources, counts, strict=True):
        files[source.path] = files.get(source.path, 0) + (rows or source.n_rows or 0)
    return [{"name": path.name, "rows": rows, "sha256": sha256(path)} for path, rows in files.items()]


def parent(path: Path, model: AnalyticClassifier) -> dict[str, Any]:
    """Return name, rows and digest of a model that goes into a merged one."""
    return {"name": path.name, "rows": row_count(model), "sha256": sha256(path)}


def record(model: AnalyticClassifier, did: str, *, note: str | None = None, anew: bool = False, **facts: Any) -> None:
    """Note in a model what a command did to it.

    Parameters
    ----------
    model : AnalyticClassifier
    did : {"learned", "merged", "forgot"}
    note : str or None
    anew : bool, default=False
        Whether what was noted before is left out: the parents of a merged model have it.
    **facts : object
        What else there is to know, as JSON can hold it.
    """
    event = {"did": did, "time": now(), "version": __version__, **facts, **({} if note is None else {"note": note})}
    history = [] if anew else list(getattr(inputs_of(model), "history_", None) or [])
    change_inputs(model, lambda inputs: inputs.with_(history_=[*history, event]))


def facts(history: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what is noted in a model as lines of a table."""
    if not history:
        return []
    lines = [(name, f"{_when(event)}, by aircl {event['version']}") for name, event in _ends(history)]
    for event in history:
        for kind in ("files", "parents"):
            for file in event.get(kind, ()):
                digest = "" if file["sha256"] is None else f", sha256 {file['sha256'][:12]}.."
                name = {"files": "learned", "parents": "merged"}[kind]
                lines.append((name, f"{file['name']}: {file['rows']:,.10g} rows{digest}"))
        if event["did"] == "forgot":
            lines.append(("forgot", f"{event.get('rows', 0):,.10g} rows"))
        if "note" in event:
            lines.append(("note", event["note"]))
    return lines


def _ends(history: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    ends = [("created", history[0]), ("changed", history[-1])]
    return ends if len(history) > 1 else ends[:1]


def _when(event: dict[str, Any]) -> str:
    return str(event["time"]).replace("T", " ").replace("Z", " UTC")
