"""The model as it was before the last change, so that this one change can be taken back bit by bit.

A state is a value that nothing changes: to hold the one before costs no time, and the memory of what the last change
has replaced, until the next change. Taking it back is a change of its own, with a number of its own. It is durable by
one transaction of the journal, in which the rows of the change that is taken back are erased, or by a checkpoint, if
a checkpoint has that change already.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.engine import Learner

# A model of which more than this is held in memory is not held a second time.
LARGEST = 2**30


class NothingToUndoError(ValueError):
    """A change that cannot be taken back: another one came after it, or it is too long ago."""


@dataclass(frozen=True, eq=False)
class Before:
    """What a model had learned at one moment.

    Attributes
    ----------
    model : AnalyticClassifier
        Whose parameters they were.
    state, memory : object
        Of its learner; None if it had learned nothing.

    Examples
    --------
    >>> from aircl import AIRClassifier
    >>> model = AIRClassifier(0.1, expansion=None).fit([[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> before = Before.of(model, n_rows=1)
    >>> model.partial_fit([[1.0, 1.0]], ["owl"]).class_count_.tolist()
    [1.0, 1.0, 1.0]
    >>> before.restored().class_count_.tolist()
    [1.0, 1.0]
    """

    model: AnalyticClassifier
    state: Any
    memory: Any

    @classmethod
    def of(cls, model: AnalyticClassifier, n_rows: int) -> Before | None:
        """Return what a model has learned before it learns `n_rows` more; None if that is too large to be held."""
        learner = getattr(model, "_learner", None)
        if learner is None:
            return cls(model, None, None)
        # What the change begins with anyway: afterwards, both states share their statistics as far as they can.
        state = learner.absorb(room=n_rows)
        return cls(model, state, learner.memory) if state.nbytes <= LARGEST else None

    def restored(self) -> AnalyticClassifier:
        """Return a model that has learned this and nothing else; it shares nothing that could change."""
        model = copy.copy(self.model)
        model.__dict__.pop("_learner", None)
        if self.state is not None:
            # Rows that wait do so in a buffer that later rows were written to as well.
            model._learner = Learner(self.state.absorbed(), self.memory)
        return model


class Undo:
    """The last change, as long as it can be taken back.

    Attributes
    ----------
    version : int or None
        Its number.
    kind : str
    n_rows : int
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Let go what is held."""
        self.version: int | None = None
        self.kind, self.n_rows = "", 0
        self._before: Before | None = None

    def hold(self, version: int, kind: str, n_rows: int, before: Before | None) -> None:
        """Hold what was before a change that was made."""
        self.version, self.kind, self.n_rows, self._before = version, kind, n_rows, before

    def find(self, version: int) -> Before:
        """Return what was before a change, if it is the last one and is held."""
        if self.version is None or version > self.version:
            raise NothingToUndoError(f"there is no change {version} to take back since the service was started.")
        if version != self.version:
            raise NothingToUndoError(f"change {self.version} came after {version}: only the last one is taken back.")
        if self._before is None:
            raise NothingToUndoError(
                f"change {version} cannot be taken back: the model is too large to be held twice, or older versions "
                "were removed with it. Roll back to a version."
            )
        return self._before
