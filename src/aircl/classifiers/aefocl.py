"""AEF-OCL: ACIL on a stream that pseudo-features fill up to balance."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from aircl.classifiers.inputs import Inputs, dense_unless
from aircl.classifiers.linear import RidgeClassifier
from aircl.classifiers.phases import Nested
from aircl.classifiers.rows import KeepLedger
from aircl.engine import Ridge, Rule, Space, State, Statistics
from aircl.engine.backend import NUMPY, Array
from aircl.engine.batch import ClassRows, sort_by_class
from aircl.engine.calibration import CalibratedSolution, calibrate
from aircl.engine.learner import Solved
from aircl.engine.means import Means, Shared
from aircl.engine.problem import Problem, scatter_leverage
from aircl.engine.solve import RidgeFactor
from aircl.engine.statistics import ByClass, declare

# Pseudo-features are drawn and learned in blocks of so many.
ROWS = 4096


@dataclass(frozen=True, eq=False)
class ClassVariances(Means):
    """Counts, means and variances of every feature in every class: 2 C f numbers.

    Attributes
    ----------
    squares : array of shape (C, f)
        Sums of squared deviations from the means.
    """

    name: ClassVar[str] = "spread"

    squares: Array = declare(ByClass("squares"))

    def scattered(
        self, slots: Array, between: Array, sign: float, batch: ClassRows | None = None, mean: Array | None = None
    ) -> dict[str, Any]:
        """Return the sums of squares plus (or minus) those of some rows."""
        squares = self.squares.copy()
        if batch is not None and mean is not None:
            squares[slots] += sign * NUMPY.class_sums(batch.centred(mean) ** 2, batch.start, None)
        squares[slots] += sign * between**2
        return {"squares": squares}

    def _trace(self) -> float:
        return super()._trace() + float(self.squares.sum())

    def without_rounding(self, slack: float) -> Self | None:
        """Return the same with no sum of squares below 0."""
        is_possible = self.squares.min(initial=0.0) >= -slack
        return dataclasses.replace(self, squares=self.squares.clip(min=0.0)) if is_possible else None


@dataclass(frozen=True, eq=False)
class MomentsAndVariances(Statistics):
    """Second moments of expanded features h, and means and variances of the inputs x they came from: rows [h, x].

    Attributes
    ----------
    moments : Shared
        Of the expanded features.
    variances : ClassVariances
        Of the inputs.
    """

    name: ClassVar[str] = "with-spread"
    cannot_forget = Shared.cannot_forget

    moments: Shared = declare(Nested("moments", Shared))
    variances: ClassVariances = declare(Nested("spread", ClassVariances))

    @classmethod
    def of_width(cls, space: Space, n_inputs: int) -> Self:
        """Return the statistics of nothing, for rows of which the last `n_inputs` columns are inputs."""
        widths = (space.n_features - n_inputs, n_inputs)
        left, right = (Space(width, space.dtype, default_limit=space.default_limit) for width in widths)
        return cls(space, np.zeros(0), Shared.empty(left), ClassVariances.empty(right))

    @property
    def n_score_features(self) -> int:
        """Width of the expanded features."""
        return self.moments.space.n_features

    def plus(self, batch: ClassRows, reserve: int = 0) -> Self:
        """Return the statistics with rows [h, x] added."""
        h, x = self._halves(batch)
        moments = self.moments.plus(h)
        return dataclasses.replace(self, count=moments.count, moments=moments, variances=self.variances.plus(x))

    def minus(self, batch: ClassRows) -> tuple[Self, Array]:
        """Return the statistics without learned rows; refused as a whole if either part has not learned them."""
        h, x = self._halves(batch)
        moments, emptied = self.moments.minus(h)
        variances, _ = self.variances.minus(x)
        return dataclasses.replace(self, count=moments.count, moments=moments, variances=variances), emptied

    def _halves(self, batch: ClassRows) -> tuple[ClassRows, ClassRows]:
        width = self.n_score_features
        return batch.columns(slice(0, width)), batch.columns(slice(width, None))

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], space: Space) -> Self:
        """Return what `arrays` returned the arrays of; refuse what does not fit."""
        empty, n_classes = cls.of_width(space, arrays["spread.center"].shape[1]), len(arrays["moments.count"])
        parts = cls.parts()
        moments = parts["moments"].restored(arrays, empty.moments.space, n_classes)
        variances = parts["variances"].restored(arrays, empty.variances.space, n_classes)
        return dataclasses.replace(empty, count=moments.count, moments=moments, variances=variances)


@dataclass(frozen=True, kw_only=True, eq=False)
class RebalancedSolution(CalibratedSolution):
    """Weights, and the statistics that were filled up for them as long as nothing has changed."""

    filled: State | None

    def released(self) -> RebalancedSolution:
        """Return the same without the statistics."""
        return dataclasses.replace(self, filled=None)


@dataclass(frozen=True)
class RebalancedRidge(Rule):
    """ACIL's rule on statistics in which pseudo-features have brought every class to the count of the largest."""

    gamma: float | str
    seed: int
    expansion: Any  # fitted, or None
    spread: str
    calibrate: bool = False

    def solve(self, state: State, memory: Any = None) -> tuple[RebalancedSolution, Any]:
        """Return the weights for what was learned and filled up; the statistics stay as they are."""
        statistics = state.statistics
        assert isinstance(statistics, MomentsAndVariances)
        filled = statistics.moments
        for X, slots in self.pseudo_features(statistics.variances, state.labels.order):
            rows = X if self.expansion is None else self.expansion.transform(X)
            filled = filled.plus(sort_by_class(rows, slots, None))
        return self._solve(statistics, State.empty(filled, labels=state.labels, epoch=state.epoch), memory)

    def solve_again(self, last: Solved, state: State, memory: Any = None) -> tuple[RebalancedSolution, Any]:
        """Do as `solve`, without filling up again if the last solution, of the same state, has another gamma only."""
        if not isinstance(last.rule, RebalancedRidge) or dataclasses.replace(last.rule, gamma=self.gamma) != self:
            return self.solve(state, memory)
        assert isinstance(state.statistics, MomentsAndVariances)
        return self._solve(state.statistics, last.solution.filled, memory)

    def _solve(self, learned: MomentsAndVariances, filled: State, memory: Any) -> tuple[RebalancedSolution, Any]:
        solution, memory = Ridge(self.gamma, "uniform", "mean").solve(filled, memory)
        W, gamma = solution.W, solution.gamma
        if not self.calibrate:
            return RebalancedSolution(W=W, gamma=gamma, filled=filled), memory
        # New samples are like those that were learned, not like those that were drawn; and a sample of a class that was
        # filled up stands for several in the regression.
        assert solution.problem is not None
        real = Problem.of(learned.moments, learned.count.max() / learned.count, 1.0)
        K = RidgeFactor(solution.problem.G, gamma).inverse()
        trace = learned.space.backend.inner_product(K, real.within_class_covariance)
        found = calibrate(real, W, trace, scatter_leverage(real, K))
        return RebalancedSolution.of(W, gamma, found, filled=filled), memory

    def pseudo_features(self, classes: ClassVariances, order: Array) -> Iterator[tuple[Array, Array]]:
        """Yield Gaussian inputs with the mean and the deviations of their class, as many as it lacks.

        Classes come in this order of their slots, which must not be that of their arrival.
        """
        count = classes.count
        lacking = np.rint(count.max() - count).astype(np.intp)
        random = np.random.default_rng(self.seed)
        # n - 1; counts need not be whole where samples have weights, and half of n is less than that from n = 2 on.
        divisor = np.maximum(count - 1, count / 2) if self.spread == "sample" else count
        means, deviations = classes.means, np.sqrt(classes.squares / divisor[:, None])
        slots = np.repeat(order, lacking[order])
        for start in range(0, len(slots), ROWS):
            part = slots[start : start + ROWS]
            noise = random.standard_normal((len(part), means.shape[1]))  # float64: the seed decides, not the dtype
            yield (means[part] + deviations[part] * noise).astype(classes.space.dtype), part


class AEFOCLClassifier(RidgeClassifier):
    """AEF-OCL: ridge regression on a stream that Gaussian pseudo-features balance when it is solved.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        The ridge.
    spread : {"sample", "population"}, default="sample"
        Whether variances of a class of n samples are over n - 1, as published, or over n.
    expansion : transformer, default=None
        Applied to X first, such as `RandomReLU`; pseudo-features are drawn before it.
    calibrate : bool, default=False
        Add an intercept, and make probabilities reliable, both from the statistics alone: see `AIRClassifier`. As
        published, without it, there are no probabilities.
    ledger : bool, path or list of paths, default=False
        Keep a hash of every learned row; see `AIRClassifier`.
    random_state : int or None, default=None
        Seed of the pseudo-features (None: 0) and of an expansion that has none of its own.
    backbone : str or Backbone, default=None
        What makes features of texts or images first; see `AIRClassifier`.

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
    copies of it. Models that were saved before there was `spread` go on with "population".

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
    0.85
    """

    takes_tensors: ClassVar[bool] = False
    _store: ClassVar[type[Statistics]] = MomentsAndVariances
    _in_older_files: ClassVar[dict[str, Any]] = {"spread": "population"}

    def __init__(
        self,
        gamma: float | str = "auto",
        *,
        spread: str = "sample",
        expansion: Any = None,
        calibrate: bool = False,
        ledger: KeepLedger = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.gamma = gamma
        self.spread = spread
        self.expansion = expansion
        self.calibrate = calibrate
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone

    def _empty_statistics(self, space: Space, inputs: Inputs) -> Statistics:
        return MomentsAndVariances.of_width(space, inputs.n_features_in_)

    def _rule(self) -> RebalancedRidge:
        seed = int(self.random_state) if isinstance(self.random_state, int | np.integer) else 0
        return RebalancedRidge(self.gamma, seed, self.expansion_, self.spread, bool(self.calibrate))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.spread not in ("sample", "population"):
            raise ValueError(f"spread={self.spread!r} is unknown. Use 'sample' or 'population'.")

    def _rows_to_learn(self, X: Any, inputs: Inputs) -> Iterator[tuple[slice, Array]]:
        for part, features in self._features(X, inputs):
            yield part, np.concatenate([features, dense_unless(X[part], False)], axis=1, dtype=features.dtype)
