"""Which columns of a table are what: the label, texts or paths of images, names of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aircl.data.arrays import DataError
from aircl.data.arrays.columns import check_no_ids, listed
from aircl.data.arrays.tables import Table

# A column of one of these names is the label, if there is one of them and nobody says otherwise.
LABEL_NAMES = ("label", "labels", "class", "category", "target", "intent", "y")
# Rows that tell texts from numbers.
_SHOWN = 100


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are read.

    Attributes
    ----------
    label : str or None
    text : tuple of str
        They are joined, in this order.
    image : str or None
        Of paths, relative to the file's folder or to the working directory.
    id, weight : str or None

    Examples
    --------
    >>> from aircl.raw.columns import Columns
    >>> Columns(label="category", text=("subject", "body"), id="ticket").names
    ['subject', 'body', 'category', 'ticket']
    """

    label: str | None = None
    text: tuple[str, ...] = ()
    image: str | None = None
    id: str | None = None
    weight: str | None = None

    @property
    def names(self) -> list[str]:
        """All of them."""
        others = (self.image, self.label, self.weight, self.id)
        return [*self.text, *(name for name in others if name is not None)]

    def check(self, table: Table) -> None:
        """Refuse a table that does not have them, and a column that should be two things."""
        options: list[tuple[str, str | None]] = [("--text", name) for name in self.text]
        options += [
            ("--image", self.image),
            ("--label", self.label),
            ("--sample-weight", self.weight),
            ("--id", self.id),
        ]
        seen: dict[str, str] = {}
        for option, name in options:
            if name is None:
                continue
            if table.columns.count(name) != 1:
                how = "no column" if name not in table.columns else "more than one column"
                raise DataError(f"{table.path} has {how} {name!r} for {option}. It has {listed(table.columns)}.")
            if name in seen:
                raise DataError(f"{table.path}: the column {name!r} is given for both {seen[name]} and {option}.")
            seen[name] = option


def find_label(columns: Sequence[str]) -> str | None:
    """Return the column that is the label by its name, if there is one such column.

    Parameters
    ----------
    columns : sequence of str

    Examples
    --------
    >>> from aircl.raw.columns import find_label
    >>> find_label(["text", "category"]), find_label(["text", "label", "class"])
    ('category', None)
    """
    found = [name for name in columns if name.strip().lower() in LABEL_NAMES]
    return found[0] if len(found) == 1 else None


def find_texts(table: Table, others: Sequence[str | None]) -> tuple[str, ...]:
    r"""Return the columns of texts, if a table has nothing else beside the given columns.

    Parameters
    ----------
    table : Table
    others : sequence of str or None
        Label, weights and ids.

    Returns
    -------
    columns : tuple of str
        Empty if there are columns of something else.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.data.arrays.tables import DelimitedTable
    >>> from aircl.raw.columns import find_texts
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("text,category\nwhere is my card,card\n")
    ...     find_texts(DelimitedTable(Path(folder, "a.csv")), ["category"])
    ('text',)
    """
    left = [name for name in table.columns if name not in others]
    rows = table.head(left, _SHOWN)
    texts = tuple(name for place, name in enumerate(left) if is_text([row[place] for row in rows]))
    if not texts:
        return ()
    check_no_ids(table, left, "--text")
    return texts if len(texts) == len(left) else ()


def is_text(cells: Sequence[Any]) -> bool:
    """Tell whether most of the cells that are not empty are texts, and no numbers."""
    filled = [cell for cell in cells if cell not in (None, "")]
    words = [cell for cell in filled if isinstance(cell, str) and not _is_number(cell)]
    return 2 * len(words) > len(filled)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
