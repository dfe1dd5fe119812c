"""AEF-OCL: ACIL on a stream that pseudo-features fill up to balance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from aircl.classifiers.features import dense_unless
from aircl.classifiers.linear import LinearClassifier, check_gamma
from aircl.engine import Learner, Ridge, Statistics
from aircl.engine.backend import Array, NumpyBackend
from aircl.engine.linear import LinearSolution
from aircl.engine.means import Spread
from aircl.engine.parts import Parts
from aircl.engine.shared import Shared

# Pseudo-features are drawn and learned in blocks of so many.
ROWS = 4096


class WithSpread(Parts):
    """Second moments of expanded features h, and means and variances of the inputs x they came from: rows [h, x]."""

    name = "with-spread"

    def split(self, n_inputs: int) -> None:
        """Say how many of the last columns are inputs, before anything is learned."""
        self.width = self.n_features - n_inputs
        self._parts = {"moments": Shared(self.width, self.dtype), "spread": Spread(n_inputs, self.dtype)}

    @property
    def moments(self) -> Shared:
        """Second moments of the expanded features."""
        part = self._parts["moments"]
        assert isinstance(part, Shared)
        return part

    @property
    def spread(self) -> Spread:
        """Means and variances of the inputs."""
        part = self._parts["spread"]
        assert isinstance(part, Spread)
        return part

    @property
    def n_scored(self) -> int:
        """Width of the expanded features."""
        return self.width

    def update(self, X: Array, slots: Array, weight: Array | None = None) -> None:
        """Learn rows [h, x]."""
        self.moments.update(X[:, : self.width], slots, weight)
        self.spread.update(X[:, self.width :], slots, weight)

    @property
    def count(self) -> Array:
        """n_y, shape (C,)."""
        return self.moments.count

    @property
    def sums(self) -> Array:
        """The class sums of the expanded features, shape (C, f)."""
        return self.moments.sums

    def merge(self, other: Self, slots: Array) -> None:
        """Add the statistics of another store."""
        self.grow(int(slots.max()) + 1 if len(slots) else 0)
        self.moments.merge(other.moments, slots)
        self.spread.merge(other.spread, slots)

    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Take learned rows out. All or nothing: the second part holds the rows if the first does."""
        emptied = self.moments.subtract(X[:, : self.width], slots, weight)
        self.spread.subtract(X[:, self.width :], slots, weight)
        return emptied

    def forget_classes(self, slots: Any) -> None:
        """Refuse, as one scatter for all classes must."""
        self.moments.forget_classes(slots)

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self.split(arrays["spread.center"].shape[1])
        super()._restore(arrays)


@dataclass(frozen=True)
class Filled:
    """ACIL's rule on statistics in which pseudo-features have brought every class to the count of the largest."""

    gamma: float | str
    seed: int
    expansion: Any  # fitted, or None

    def solve(self, learner: Learner, labels: Array) -> LinearSolution:
        """Return the weights for what was learned and filled up; the statistics stay as they are."""
        store = learner.store
        assert isinstance(store, WithSpread)
        filled = store.moments.columns(slice(None))
        for X, slots in self.pseudo_features(store.spread, np.argsort(labels)):
            filled.update(X if self.expansion is None else self.expansion.transform(X), slots)
        solution = Ridge(self.gamma, "uniform", "mean").solve(Learner(filled), labels)
        return LinearSolution(rule=self, W=solution.W, gamma=solution.gamma)

    def pseudo_features(self, spread: Spread, order: Array) -> Iterator[tuple[Array, Array]]:
        """Yield Gaussian inputs with the mean and the deviations of their class, as many as it lacks.

        Classes come in this order of their slots, which must not be that of their arrival.
        """
        count = spread.count
        lacking = np.rint(count.max() - count).astype(np.intp)
        random = np.random.default_rng(self.seed)
        means, deviations = spread.means, np.sqrt(spread.variances)
        slots = np.repeat(order, lacking[order])
        for start in range(0, len(slots), ROWS):
            part = slots[start : start + ROWS]
            noise = random.standard_normal((len(part), spread.n_features))  # float64: the seed decides, not the dtype
            yield (means[part] + deviations[part] * noise).astype(spread.dtype), part


class AEFOCLClassifier(LinearClassifier):
    """AEF-OCL: ridge regression on a stream that Gaussian pseudo-features balance when it is solved.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        The ridge.
    expansion : transformer, default=None
        Applied to X first, such as `RandomReLU`; pseudo-features are drawn before it.
    random_state : int or None, default=None
        Seed of the pseudo-features (None: 0) and of an expansion that has none of its own.

    Attributes
    ----------
    classes_ : array of shape (C,)
    class_count_ : array of shape (C,)
    coef_ : array of shape (C, f)
    gamma_ : float

    Notes
    -----
    Beside ACIL's statistics it holds the mean and the variance of every input feature in every class, 2 C d numbers.
    Learning costs as much as ACIL; a solve costs O(C n_max f (d + f)) more, for n_max samples in the largest class:
    as if the stream were balanced, and learned again. On balanced data it is ACIL. A class of one sample is filled with
    copies of it.

    References
    ----------
    H. Zhuang et al., "Online Analytic Exemplar-Free Continual Learning with Large Models for Imbalanced Autonomous
    Driving Task", 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.metrics import balanced_accuracy_score
    >>> from aircl import AEFOCLClassifier, RandomReLU
    >>> X, y = load_digits(return_X_y=True)
    >>> X, X_test, y, y_test = X[:900] / 16, X[900:] / 16, y[:900], y[900:]
    >>> keep = np.concatenate([np.flatnonzero(y == digit)[: 80 >> digit // 2] for digit in range(10)])
    >>> clf = AEFOCLClassifier(expansion=RandomReLU(500, random_state=0)).fit(X[keep], y[keep])
    >>> print(f"{balanced_accuracy_score(y_test, clf.predict(X_test)):.2f}")
    0.84
    """

    takes_tensors: ClassVar[bool] = False

    def __init__(self, gamma: float | str = "auto", *, expansion: Any = None, random_state: Any = None) -> None:
        self.gamma = gamma
        self.expansion = expansion
        self.random_state = random_state

    def _store_type(self) -> type[Statistics]:
        return WithSpread

    def _new_store(self, n_features: int, dtype: np.dtype[Any], backend: NumpyBackend) -> Statistics:
        store = super()._new_store(n_features, dtype, backend)
        assert isinstance(store, WithSpread)
        store.split(self.n_features_in_)
        return store

    def _rule(self) -> Filled:
        seed = int(self.random_state) if isinstance(self.random_state, int | np.integer) else 0
        return Filled(self.gamma, seed, self.expansion_)

    def _check_parameters(self) -> None:
        check_gamma(self.gamma, "auto")

    def _rows_to_learn(self, X: Any, *, whole: bool) -> Iterator[tuple[slice, Array]]:
        for part, features in self._features(X, whole=whole):
            yield part, np.concatenate([features, dense_unless(X[part], False)], axis=1, dtype=features.dtype)

    @property
    def gamma_(self) -> float | None:
        """The ridge that is used."""
        return self._solution("gamma_").gamma
