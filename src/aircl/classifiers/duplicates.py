"""What a ledger has to say about rows that are to be learned or forgotten."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from aircl.engine import StoreError
from aircl.engine.backend import Array
from aircl.engine.ledger import Ledger, LedgerError, LedgerWarning, Shown

ON_DUPLICATE = ("error", "skip", "replace")

# So many ids or rows are named in a message.
_NAMED = 5


def check_on_duplicate(on_duplicate: Any) -> None:
    """Refuse what is not one of the three."""
    if on_duplicate not in ON_DUPLICATE:
        raise ValueError(f"on_duplicate={on_duplicate!r} is unknown. Choose one of {', '.join(ON_DUPLICATE)}.")


def news(now: Ledger, since: Ledger | None, shown: Shown, ids: list[bytes] | None, on_duplicate: str) -> tuple[Array, Array]:
    """Tell which rows are to be learned, and which of these take the place of others; or refuse them.

    Parameters
    ----------
    now : Ledger
        As it is.
    since : Ledger or None
        As it was when the call began, of which this may be one batch of several; None: it was empty.
    shown : Shown
    ids : list of bytes or None
    on_duplicate : {"error", "skip", "replace"}

    Returns
    -------
    new, changed : arrays of shape (n,), bool
    """
    nothing = np.zeros(len(shown), bool)
    known = nothing if since is None else since.count(shown) > 0
    changed = nothing if since is None else known & ~since.is_same(shown)
    if on_duplicate == "error" and known.any():
        other = f" {changed.sum()} of them had other content, another label or weight." if changed.any() else ""
        raise LedgerError(
            f"{_of(known)} learned already: {name_rows(known, ids)}.{other} on_duplicate=\"skip\" leaves out what was "
            'learned; "replace" learns the new row of an id in the place of the old one.'
        )
    if on_duplicate == "skip" and changed.any():
        raise LedgerError(
            f"{_of(changed)} learned with other content, another label or weight: {name_rows(changed, ids)}. "
            'on_duplicate="skip" leaves out only what is the same; "replace" learns the new row in the place of the old.'
        )
    twice = ~known & (now.count(shown) > 0)
    torn = _differ(shown) | (twice & ~now.is_same(shown))
    if torn.any():
        raise LedgerError(f"an id stands for different rows: {name_rows(torn, ids)}. An id names one row.")
    return ~known | changed, changed


def check_learned(ledger: Ledger, shown: Shown, ids: list[bytes] | None) -> None:
    """Refuse to forget rows that were never learned, or not as they are shown, or not as often."""
    from aircl.engine.ledger import occurrence

    count = ledger.count(shown)
    if (never := count == 0).any():
        raise LedgerError(
            f"{_of(never)} never learned: {name_rows(never, ids)}. Nothing was forgotten. A row is known by its "
            + ("id." if ledger.by_id else "content, its label and its sample weight.")
        )
    if (other := ~ledger.is_same(shown)).any():
        raise LedgerError(
            f"{_of(other)} learned with other content, another label or weight: {name_rows(other, ids)}. Nothing was "
            "forgotten. Show the row as it was learned."
        )
    if (more := occurrence(shown.row[0]) >= count).any():
        raise LedgerError(
            f"{_of(more)} shown more often than learned: {name_rows(more, ids)}. Nothing was forgotten."
        )


def chosen_to_replace(
    ledger: Ledger, shown: Shown, ids: list[bytes], changed: Array, old: Shown | None, old_ids: list[bytes] | None
) -> Array:
    """Return which old rows give way to those that changed; refuse if one of them is not shown as it was learned."""
    wanted = np.unique(shown.row[0][changed])
    if old is None:
        raise LedgerError(
            f"{_of(changed)} learned with other content, another label or weight: {name_rows(changed, ids)}. To "
            "replace them, the old rows have to be shown: replaced={'X': .., 'y': .., 'ids': ..}."
        )
    chosen: Array = np.flatnonzero(np.isin(old.row[0], wanted))
    check_learned(ledger, old.taken(chosen), [old_ids[place] for place in chosen] if old_ids else None)
    present, times = np.unique(old.row[0][chosen], return_counts=True)
    missing = changed & ~np.isin(shown.row[0], present)
    first = old.taken(np.sort(chosen[np.unique(old.row[0][chosen], return_index=True)[1]]))
    if missing.any() or ledger.count(first).sum() > times.sum():
        missing = missing if missing.any() else changed
        raise LedgerError(
            f"the old row is not shown, or not as often as it was learned, of {name_rows(missing, ids)}. Nothing was "
            "replaced."
        )
    return chosen


def check_common(ours: Ledger | None, theirs: Ledger | None) -> None:
    """Refuse to merge what has rows in common; warn if nobody can tell."""
    if (ours is None) != (theirs is None):
        raise StoreError(
            "cannot merge: one of the two has a ledger, the other has none. What was learned without a ledger could "
            "not be told from what was never learned."
        )
    if ours is None or theirs is None or not len(ours) or not len(theirs):
        return
    if ours.by_id != theirs.by_id:
        raise StoreError("cannot merge: one ledger knows rows by their ids, the other by their contents.")
    found, complete = ours.common(theirs)
    if found:
        raise StoreError(f"cannot merge: {found} rows were learned by both, and would be counted twice.")
    if not complete:
        warnings.warn(
            "the ledgers have different keys: nothing tells whether they have rows in common, which would be counted "
            "twice. Learn with one key, ledger=FILE or --ledger-key FILE, to have that checked.",
            LedgerWarning,
            stacklevel=3,
        )


def name_rows(which: Array, ids: list[bytes] | None) -> str:
    """Name the first few rows, by id if they have one."""
    places = np.flatnonzero(which).tolist()
    names = [str(place) for place in places] if ids is None else [repr(ids[place].decode(errors="replace")) for place in places]
    shown = list(dict.fromkeys(names))
    more = ", .." if len(shown) > _NAMED else ""
    return ("ids " if ids is not None else "rows (from 0) ") + ", ".join(shown[:_NAMED]) + more


def _of(which: Array) -> str:
    n = int(which.sum())
    return f"{n} of {len(which)} rows {'was' if n == 1 else 'were'}"


def _differ(shown: Shown) -> Array:
    """Tell which rows have the id of an earlier row of other content."""
    row, content = shown.row[0], shown.content[0]
    _, first, inverse = np.unique(row, return_index=True, return_inverse=True)
    return content != content[first][inverse]  # type: ignore[no-any-return]
