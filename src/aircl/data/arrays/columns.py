"""Which columns of a table are features."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aircl.data.arrays.source import DataError, Request

if TYPE_CHECKING:
    from aircl.data.arrays.tables import Table

# pandas keeps a row index that has no name in a column of this name.
_INDEX = re.compile(r"__index_level_\d+__")

# "id", "Customer ID", "user_id", "ticketId", "uuid"; an index alone, as a body mass index is none.
_ID = re.compile(
    r"(?:.*[^a-z0-9])?(?:id|uuid|guid)|index|idx|row[_ ]?(?:id|no|nr|number)|unnamed: \d+|.*[a-z](?-i:I[dD])",
    re.IGNORECASE,
)
# A column of whole numbers that grow from row to row over so many rows is taken for an id.
COUNTED_ROWS = 100


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
    if request.id is not None and (request.id not in columns or request.id in (request.label, request.weight)):
        raise DataError(
            f"{path} has no column {request.id!r} beside the label for --id. Its columns are {listed(columns)}."
        )
    others = [name for name in columns if name not in (request.label, request.weight, request.id)]
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


def check_no_ids(table: Table, columns: Sequence[str], option: str = "--features") -> None:
    """Refuse columns that nobody has called features and that look like names of rows: a model would learn the order.

    Parameters
    ----------
    table : Table
    columns : sequence of str
        What is about to be taken for features.
    option : str
        What says which columns are.
    """
    for name in columns:
        if _ID.fullmatch(name):
            raise _looks_like_id(table.path, name, "is named like an id", option)
    left, before = list(columns), [-math.inf] * len(columns)
    rows = 0
    for row in table.head(columns, COUNTED_ROWS):
        values = dict(zip(columns, row, strict=True))
        now = [_whole_number(values[name]) for name in left]
        going_on = [i for i, (old, new) in enumerate(zip(before, now, strict=True)) if new is not None and new > old]
        left, before = [left[i] for i in going_on], [now[i] for i in going_on]  # type: ignore[misc]
        rows += 1
        if not left:
            return
    if rows == COUNTED_ROWS:
        raise _looks_like_id(table.path, left[0], f"counts up over {rows} rows, as an id does", option)


def _looks_like_id(path: Path, name: str, why: str, option: str) -> DataError:
    return DataError(
        f"{path}: column {name!r} {why}, and would be learned as a feature. If it names the rows: --id {name!r}. "
        f"If not, say which columns count with {option}."
    )


def _whole_number(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names for a message, the first few of many."""
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f", .. ({len(names)} in all)" if len(names) > most else "") if names else "none"
