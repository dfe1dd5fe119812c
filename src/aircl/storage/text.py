"""Text of others, as it can be shown: on a terminal, and in a table that a spreadsheet opens."""

from __future__ import annotations

import json
from typing import Any

# With these, a spreadsheet takes a cell for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Spaces of all kinds, and what joins letters and emoji, do no harm.
_HARMLESS = {"\u200c", "\u200d", "\u00a0", "\u3000"}


def visible(text: Any) -> str:
    r"""Return text in which control characters are spelt out, so that none of them commands a terminal.

    Examples
    --------
    >>> print(visible("cat\x1b[2J"))
    cat\x1b[2J
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() or c in _HARMLESS else c.encode("unicode_escape").decode() for c in shown)


def json_text(value: Any) -> str:
    """Return JSON for people: letters of all scripts as they are, control characters spelt out."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" or c in _HARMLESS else json.dumps(c)[1:-1] for c in text)


def table_cell(value: Any) -> Any:
    """Return what a csv file has in place of a value: a text that looks like a formula gets a ' in front.

    Examples
    --------
    >>> table_cell("=1+1"), table_cell("cat"), table_cell(-1)
    ("'=1+1", 'cat', -1)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
