"""NCM: the class whose mean has the largest cosine with a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from aircl.classifiers.rows import KeepLedger
from aircl.classifiers.stream import StreamClassifier
from aircl.engine import Rule, Solution, State, Statistics
from aircl.engine.backend import Array, backend_of
from aircl.engine.means import Means


@dataclass(frozen=True)
class Cosine(Rule):
    """The cosine between a row and every class mean."""

    def solve(self, state: State, memory: Any = None) -> tuple[CosineSolution, Any]:
        """Return the directions of the class means."""
        statistics = state.statistics
        assert isinstance(statistics, Means)
        units = statistics.space.backend.cast(unit(statistics.means), statistics.space.dtype)
        return CosineSolution(units, statistics.means), memory


@dataclass(frozen=True, eq=False)
class CosineSolution(Solution):
    """Class means at length 1, and as they are, shape (C, f)."""

    units: Array
    means: Array

    @property
    def W(self) -> Array:
        """The directions as weights for rows of length 1, shape (f, C)."""
        return self.units.T

    def scorer(self, order: Array) -> Callable[[Array], Array]:
        """Return the function from features to cosines."""
        return cosines(self.W[:, order])


def cosines(W: Array) -> Callable[[Array], Array]:
    """Return the function from features to their products with W (f, C), once they have length 1."""
    return lambda X: unit(X) @ W


def unit(X: Array) -> Array:
    """Return the rows of X at length 1; a row of zeros stays."""
    length = (X**2).sum(1) ** 0.5
    unit: Array = X / (length + (length == 0))[:, None]
    return backend_of(X).cast(unit, X.dtype)


class NCMClassifier(StreamClassifier):
    """NCM, on frozen features also called SimpleCIL: nearest class mean by cosine.

    Parameters
    ----------
    expansion : transformer, default=None
        Applied to X first.
    ledger : bool, path or list of paths, default=False
        Keep a hash of every learned row; see `AIRClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of an expansion that has none of its own.
    backbone : str or Backbone, default=None
        What makes features of texts or images first; see `AIRClassifier`.

    Attributes
    ----------
    classes_ : array of shape (C,)
    class_count_ : array of shape (C,)
    means_ : array of shape (C, f)

    Notes
    -----
    Learning n rows costs O(n f), memory is C f numbers, and any stream gives the same means: it merges, and it forgets
    rows and classes. There are no probabilities: cosines are not linear in x, and the means alone do not tell how
    samples scatter. Every class has equal weight whatever its count, but all have the same spherical shape.

    References
    ----------
    T. Mensink et al., "Distance-Based Image Classification: Generalizing to New Classes at Near-Zero Cost", 2013.
    D.-W. Zhou et al., "Revisiting Class-Incremental Learning with Pre-Trained Models" (SimpleCIL), 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import NCMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NCMClassifier().fit(X[:900], y[:900])
    >>> print(f"{clf.score(X[900:], y[900:]):.2f}")
    0.88
    """

    _store: ClassVar[type[Statistics]] = Means

    def __init__(
        self,
        *,
        expansion: Any = None,
        ledger: KeepLedger = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.expansion = expansion
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone

    def _rule(self) -> Cosine:
        return Cosine()

    @property
    def means_(self) -> Array:
        """The mean of every class, shape (C, f); zeros for classes not seen yet."""
        self._state("means_", is_fitted=True)
        return self._learned_by_class("means")
