"""What a ledger has to say about rows that are to be learned or forgotten."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aircl.classifiers.inputs import Inputs
from aircl.classifiers.rows import check_ids, contents, read_keys
from aircl.engine import StoreError
from aircl.engine.backend import Array
from aircl.engine.ledger import Ledger, LedgerError, LedgerWarning, Shown, occurrence
from aircl.inputs import raw_samples

if TYPE_CHECKING:
    from aircl.classifiers.stream import StreamClassifier

ON_DUPLICATE = ("error", "skip", "replace")

# So many ids or rows are named in a message.
_NAMED = 5


@dataclass(frozen=True)
class Naming:
    """What a call says about its rows to the ledger.

    Attributes
    ----------
    ids : list of bytes or None
        One per row, as given until it was `validated`.
    on_duplicate : {"error", "skip", "replace"}
    replaced : mapping or None
        The old rows of ids that are to be replaced: "X", "y" and "ids", perhaps "sample_weight".
    since : Ledger or None
        As it was when a call began that hands over its rows in several batches; None: as it is.
    raw : sequence or None
        What the features were made of, if that is what rows are known by.
    keys : tuple of bytes
        Of the classifier, if it names files of some.
    """

    ids: Any = None
    on_duplicate: str = "error"
    replaced: Any = None
    since: Ledger | None = None
    raw: Any = None
    keys: tuple[bytes, ...] = ()

    def of(self, given: Any, inputs: Inputs) -> Naming:
        """Return the same for what was given: where a backbone makes the features, a row is what it makes them of."""
        if self.raw is not None or inputs.embedder_ is None:
            return self
        samples = raw_samples(given)
        if isinstance(samples, list) and "texts" not in inputs.embedder_.backbone_.kinds:
            samples = [Path(sample) if isinstance(sample, str) else sample for sample in samples]
        return replace(self, raw=samples)

    def validated(self, classifier: StreamClassifier, n: int, weight: Array | None) -> Naming:
        """Return the same for the rows that weigh something, or say what is wrong with it."""
        check_ledger(classifier)
        if self.on_duplicate not in ON_DUPLICATE:
            names = ", ".join(map(repr, ON_DUPLICATE))
            raise ValueError(f"on_duplicate={self.on_duplicate!r} is unknown. Choose one of {names}.")
        if classifier._ledger() is False:
            for name, value, usual in (
                ("ids", self.ids, None), ("replaced", self.replaced, None), ("on_duplicate", self.on_duplicate, "error")
            ):  # fmt: skip
                if value is not usual and value != usual:
                    raise ValueError(
                        f"{name}= is for classifiers that keep a ledger: {_name(classifier)}(ledger=True)."
                    )
        if self.replaced is not None and (
            self.on_duplicate != "replace" or not {"X", "y", "ids"} <= set(self.replaced)
        ):
            raise ValueError(
                "replaced= is for on_duplicate='replace', and has the old rows: {'X': .., 'y': .., 'ids': ..}."
            )
        ids, keys = None if self.ids is None else check_ids(self.ids, n), read_keys(classifier._ledger())
        if weight is None or np.all(weight > 0):
            return replace(self, ids=ids, keys=keys)
        kept, raw = np.flatnonzero(weight > 0), self.raw
        if raw is not None:
            raw = raw[kept] if isinstance(raw, np.ndarray) else [raw[place] for place in kept.tolist()]
        ids = None if ids is None else [ids[place] for place in kept.tolist()]
        return replace(self, ids=ids, raw=raw, keys=keys)

    def shown(self, ledger: Ledger | None, X: Any, labels: Array, weight: Array | None) -> Shown | None:
        """Return the rows, hashed; None if there is no ledger to show them to."""
        if ledger is None:
            return None
        if len(labels) and (self.ids is not None) != ledger.by_id:
            raise LedgerError(
                "the ledger knows rows by their ids: give ids=, or --id."
                if ledger.by_id
                else "the ledger knows rows by their contents, as the first had no ids: leave out ids=, or --id."
            )
        ids = self.ids if len(labels) else [] if ledger.by_id else None  # no rows have all ids that they need
        return ledger.shown(contents(X if self.raw is None else self.raw, labels, weight), ids, self.keys)


def check_ledger(classifier: StreamClassifier) -> None:
    """Refuse a ledger where one has learned without, and none where one has learned with."""
    wanted = classifier._ledger()
    if classifier._has_learned() and (wanted is not False) != (classifier._learner.state.ledger is not None):
        raise ValueError(
            f"ledger={wanted!r}, but this learner has learned {'with' if wanted is False else 'without'} a ledger. It "
            "is kept from the first row on or not at all: set it back, or fit again."
        )


def new_ledger(classifier: StreamClassifier, naming: Naming) -> Ledger | None:
    """Return a ledger without rows, if the classifier is to keep one."""
    wanted = classifier._ledger()
    key = next(iter(read_keys(wanted)), None)
    return None if wanted is False else Ledger.begun(by_id=naming.ids is not None, key=key)


def news(now: Ledger, naming: Naming, shown: Shown) -> tuple[Array, Array]:
    """Tell which rows are to be learned, and which of these take the place of others; or refuse them.

    Parameters
    ----------
    now : Ledger
    naming : Naming
    shown : Shown

    Returns
    -------
    new, changed : arrays of shape (n,), bool
    """
    since, ids = now if naming.since is None else naming.since, naming.ids
    nothing, is_now = np.zeros(len(shown), bool), now.is_same(shown)
    known = since.count(shown) > 0 if len(since) else nothing
    changed = known & ~since.is_same(shown) if len(since) else nothing
    if naming.on_duplicate == "error" and known.any():
        other = f" {changed.sum()} of them had other content, another label or weight." if changed.any() else ""
        raise LedgerError(
            f'{_of(known)} learned already: {name_rows(known, ids)}.{other} on_duplicate="skip" leaves out what was '
            'learned; "replace" learns the new row of an id in place of the old one.'
        )
    if naming.on_duplicate == "skip" and changed.any():
        raise LedgerError(
            f"{_of(changed)} learned with other content, another label or weight: {name_rows(changed, ids)}. "
            'on_duplicate="skip" leaves out only what is the same; "replace" learns new rows in place of old ones.'
        )
    # Of one call, all rows of an id are the same, also those of earlier batches.
    torn = _differ(shown) | (now.count(shown) > 0) & ~is_now & ~changed
    if torn.any():
        raise LedgerError(f"an id stands for different rows: {name_rows(torn, ids)}. An id names one row.")
    return ~known | changed, changed & ~is_now


def check_learned(ledger: Ledger, shown: Shown, ids: list[bytes] | None) -> None:
    """Refuse to forget rows that were never learned, or not as they are shown, or not as often."""
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
        raise LedgerError(f"{_of(more)} shown more often than learned: {name_rows(more, ids)}. Nothing was forgotten.")


def chosen_to_replace(
    ledger: Ledger, naming: Naming, shown: Shown, changed: Array, old_naming: Naming, old: Shown
) -> Array:
    """Return which old rows give way to those that changed; refuse if one is not shown as it was learned."""
    chosen: Array = np.flatnonzero(np.isin(old.row[0], shown.row[0][changed]))
    gone = old.taken(chosen)
    check_learned(ledger, gone, [old_naming.ids[place] for place in chosen.tolist()])
    present, times = np.unique(gone.row[0], return_counts=True)
    enough = present[times == ledger.count(gone.taken(np.unique(gone.row[0], return_index=True)[1]))]
    if (missing := changed & ~np.isin(shown.row[0], enough)).any():
        raise LedgerError(
            f"the old row is not shown, or not as often as it was learned, of {name_rows(missing, naming.ids)}. "
            "Nothing was replaced."
        )
    return chosen


def old_rows_missing(naming: Naming, changed: Array) -> LedgerError:
    """Return the error that rows are to be replaced of which the old ones are not shown."""
    return LedgerError(
        f"{_of(changed)} learned with other content, another label or weight: {name_rows(changed, naming.ids)}. To "
        "replace them, the old rows have to be shown: replaced={'X': .., 'y': .., 'ids': ..}, or --replaced FILE."
    )


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
    names = (
        [str(place) for place in places]
        if ids is None
        else [repr(ids[place].decode(errors="replace")) for place in places]
    )
    shown = list(dict.fromkeys(names))
    more = ", .." if len(shown) > _NAMED else ""
    return ("ids " if ids is not None else "rows (from 0) ") + ", ".join(shown[:_NAMED]) + more


def _name(classifier: StreamClassifier) -> str:
    return type(classifier).__name__


def _of(which: Array) -> str:
    n = int(which.sum())
    return f"{n} of {len(which)} rows {'was' if n == 1 else 'were'}"


def _differ(shown: Shown) -> Array:
    """Tell which rows have the id of an earlier row of other content."""
    row, content = shown.row[0], shown.content[0]
    _, first, inverse = np.unique(row, return_index=True, return_inverse=True)
    return content != content[first][inverse]  # type: ignore[no-any-return]
