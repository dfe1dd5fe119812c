"""The ledger of a model on the command line: one command is one call, however many batches it reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from aircl.cli.console import say

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier
    from aircl.data.arrays import Batch, LabelKind, Source
    from aircl.engine.backend import Array

OnDuplicate = Annotated[
    Literal["error", "skip", "replace"] | None,
    typer.Option(
        "--on-duplicate",
        help="Rows that the ledger has already: refuse them, leave them out, or learn the new row of an id in the "
        "place of the old one, which --replaced has to contain.",
        show_default="error",
    ),
]
LedgerKey = Annotated[
    list[Path] | None,
    typer.Option(
        "--ledger-key",
        metavar="FILE",
        help="The key of the ledger, at least 16 random bytes, which stays out of the model; after a merge of models "
        "of two keys, both.",
        show_default="random, kept in the model",
    ),
]


class Command:
    """Rows of one command, to be learned or forgotten batch after batch as if by one call.

    Parameters
    ----------
    model : AnalyticClassifier
    by_id : bool
        Whether a column of ids was named: files of images have names, but rows are known by those no longer than they
        stay where they are.
    on_duplicate : {"error", "skip", "replace"} or None
    replaced : dict or None
        The old rows of ids.
    """

    def __init__(
        self,
        model: AnalyticClassifier,
        by_id: bool,
        on_duplicate: str | None = None,
        replaced: dict[str, Any] | None = None,
    ) -> None:
        from aircl.classifiers.rows import read_keys
        from aircl.engine import Ledger

        self.model, self.by_id, self.on_duplicate, self.replaced = model, by_id, on_duplicate or "error", replaced
        known = model._learner.state.ledger if hasattr(model, "_learner") else None
        self.since = Ledger(by_id=False, books=()) if known is None else known
        self.since.check_keys(read_keys(model._ledger()))  # before the features of any row are made

    def learn(self, part: Batch, X: Array) -> None:
        """Learn a batch, whose features may have been given another precision."""
        from aircl.classifiers.duplicates import Naming
        from aircl.classifiers.learning import learn

        if self.model._ledger() is False and self.on_duplicate == "error":
            weight: dict[str, Any] = {} if part.weight is None else {"sample_weight": part.weight}
            self.model.partial_fit(X, part.y, **weight)
            return
        raw = part.X if part.raw is None else part.raw  # a row is what was read, whatever precision it is learned in
        naming = Naming(part.ids if self.by_id else None, self.on_duplicate, self.replaced, self.since, raw)
        with in_options():
            learn(self.model, X, part.y, None, part.weight, naming)

    def forget(self, part: Batch) -> None:
        """Forget a batch."""
        from aircl.classifiers.duplicates import Naming
        from aircl.classifiers.learning import forget_rows

        naming = Naming() if self.model._ledger() is False else Naming(part.ids if self.by_id else None, raw=part.raw)
        forget_rows(self.model, part.X, part.y, part.weight, naming)

    def known(self, rows: int) -> int | None:
        """Return how many of the rows that were read the ledger had already; None without one."""
        if self.model._ledger() is False or not hasattr(self.model, "_learner"):
            return None
        ledger = self.model._learner.state.ledger
        return None if ledger is None else rows - (len(ledger) - len(self.since))


@contextmanager
def in_options() -> Iterator[None]:
    """Say what to do in the words of the command line."""
    from aircl.engine import LedgerError
    from aircl.storage.errors import InputError

    try:
        yield
    except (LedgerError, InputError) as error:
        text = str(error).replace('on_duplicate="skip"', "--on-duplicate skip")
        raise type(error)(text) from error


def check_usage(on_duplicate: str | None, replaced: list[str] | None, engine: str | None) -> None:
    """Refuse options that contradict each other."""
    if engine is not None and on_duplicate == "replace":
        raise typer.BadParameter(
            "old rows are taken out by one process: leave --engine out.", param_hint="--on-duplicate replace"
        )
    if replaced and on_duplicate != "replace":
        raise typer.BadParameter("it has the old rows for --on-duplicate replace.", param_hint="--replaced")


def use_key(model: AnalyticClassifier, ledger: bool, keys: list[Path] | None, on_duplicate: str | None = None) -> None:
    """Give a model the keys of its ledger, or say in the words of the command line that it has none."""
    has_ledger = model._ledger() is not False
    asked = {"--ledger": ledger, "--ledger-key": keys, "--on-duplicate": on_duplicate}
    option = next((option for option, value in asked.items() if value), None)
    if option is not None and model._has_learned() and not has_ledger:
        raise ValueError(
            f"the model has learned without a ledger, and {option} comes too late: what is not in a ledger counts as "
            f"never learned. Leave {option} out, or learn all again with --ledger."
        )
    if on_duplicate and not (has_ledger or ledger or keys):
        raise ValueError("--on-duplicate asks a ledger, and there is none: --ledger keeps one.")
    if keys:
        model.set_params(ledger=keys)
    elif ledger and not has_ledger:
        model.set_params(ledger=True)


def read_rows(sources: Sequence[Source], batch: int, kind: LabelKind) -> dict[str, Any]:
    """Return all rows of some files, which are to be replaced."""
    import numpy as np

    parts = [part for source in sources for part in source.batches(batch, kind)]
    if any(part.ids is None for part in parts) or not parts:
        raise ValueError("--on-duplicate replace knows rows by their ids: --id COL names the column.")
    whole: dict[str, Any] = {
        "X": np.concatenate([part.X for part in parts]),
        "y": np.concatenate([part.y for part in parts if part.y is not None]),
        "ids": [name for part in parts for name in part.ids or ()],
    }
    if parts[0].weight is not None:
        whole["sample_weight"] = np.concatenate([part.weight for part in parts if part.weight is not None])
    if parts[0].raw is not None:
        whole["raw"] = [row for part in parts for row in part.raw or ()]
    return whole


@contextmanager
def doubts_said(quiet: bool) -> Iterator[None]:
    """Say it on stderr if two ledgers cannot be compared."""
    from aircl.engine import LedgerWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LedgerWarning)
        yield
    for warning in caught:
        if not issubclass(warning.category, LedgerWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        elif not quiet:
            say(f"Note: {warning.message}")
