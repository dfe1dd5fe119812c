"""Which columns of a table are features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from aircl.data.arrays.source import DataError, Request

# pandas keeps a row index that has no name in a column of this name.
_INDEX = re.compile(r"__index_level_\d+__")


def select_columns(path: Path, columns: Sequence[str], request: Request) -> list[str]:
    """Return the columns a request is about: those of `features`, or all but the label and the sample weights.

    Parameters
    ----------
    path : Path
        For messages.
    columns : sequence of str
        All columns of the table.
    request : Request

    Returns
    -------
    selected : list of str
    """
    if repeated := [name for name, times in Counter(columns).items() if name and times > 1]:
        raise DataError(f"{path} has more than one column named {listed(repeated)}. Give every column its own name.")
    if request.label is not None and request.label not in columns:
        raise DataError(f"{path} has no column {request.label!r} for --label. Its columns are {listed(columns)}.")
    if request.weight is not None and (request.weight not in columns or request.weight == request.label):
        raise DataError(
            f"{path} has no column {request.weight!r} beside the label for --sample-weight. Its columns are "
            f"{listed(columns)}."
        )
    others = [name for name in columns if name not in (request.label, request.weight)]
    if request.features is None:
        return [name for name in others if not _INDEX.fullmatch(name)]
    selected: list[str] = []
    for item in map(str.strip, request.features.split(",")):
        if item == request.label:
            raise DataError(f"{path}: the column {item!r} is both the label and a feature. Leave it out of --features.")
        found = [item] if item in others else [name for name in others if fnmatchcase(name, item)]
        if not found:
            raise DataError(
                f"{path} has no column that matches {item!r} of --features. Its columns are {listed(others)}."
            )
        selected += found
    return list(dict.fromkeys(selected))


def align_columns(path: Path, selected: Sequence[str], names: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Bring the selected columns into the order of known names; return them and those that are not known."""
    if names is None:
        chosen, ignored = list(selected), []
    else:
        have, wanted = set(selected), set(names)
        if missing := [name for name in names if name not in have]:
            raise DataError(
                f"{path} lacks {len(missing)} of the {len(names)} features that are known by name: {listed(missing)}. "
                f"It has {listed(selected)}."
            )
        chosen, ignored = list(names), [name for name in selected if name not in wanted]
    if "" in chosen:
        raise DataError(
            f"{path} has a column without a name, perhaps a row index. Say which columns are features with "
            "--features, or write the file without the index."
        )
    if not chosen:
        raise DataError(f"{path} has no columns beside the label, so there are no features.")
    return chosen, ignored


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names for a message, the first few of many."""
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f", .. ({len(names)} in all)" if len(names) > most else "") if names else "none"
