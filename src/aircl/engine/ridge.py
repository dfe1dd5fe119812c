"""AIR's rule: a weighting and a ridge turn second moments into a classifier's weights, W = (G + gamma I)^-1 B."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aircl.engine.backend import Array
from aircl.engine.gamma import GammaPath, Spectrum, gamma_grid, log_error, log_odds_of_a_miss
from aircl.engine.learner import Learner
from aircl.engine.linear import LinearSolution
from aircl.engine.solve import solve_ridge
from aircl.engine.statistics import SecondMoments, Statistics
from aircl.engine.weighting import Weighting, class_weights, scale_factor


@dataclass(frozen=True)
class Ridge:
    """Ridge regression on one-hot labels, every class weighing pi_y.

    Attributes
    ----------
    gamma : float or "auto"
        "auto": chosen from the statistics, see `aircl.engine.gamma`.
    weighting : {"inverse", "uniform", "effective"}, float, mapping or callable
        From counts to class weights.
    scale : {"mean", "none", "balanced"}
        Of the weights, see `AIRClassifier`.

    Examples
    --------
    The same statistics under two rules. A class of four samples and one of a single sample:

    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Ridge
    >>> learner = Learner(STORES["per-class"](n_features=2, dtype=np.float64))
    >>> learner.update(np.eye(2)[[0, 0, 0, 0, 1]], np.array([0, 0, 0, 0, 1]), None, n_classes=2)
    >>> for weighting in ("uniform", "inverse"):  # ACIL and AIR
    ...     solution = learner.solution(Ridge(1.0, weighting, "mean"), labels=np.arange(2))
    ...     print(weighting, solution.pi, solution.W.diagonal().round(2))
    uniform [1. 1.] [0.8 0.5]
    inverse [0.4 1.6] [0.62 0.62]
    """

    gamma: float | str
    weighting: Weighting
    scale: str

    def solve(self, learner: Learner, labels: Array) -> RidgeSolution:
        """Return the weights for what was learned."""
        store = learner.store
        assert isinstance(store, SecondMoments)
        count = store.count
        own = class_weights(self.weighting, count, labels)
        factor = scale_factor(self.scale, own, count)
        pi = own * factor
        G = store.gram(own)
        G *= factor
        sums = store.sums
        path = None
        if self.gamma == "auto":
            memory = learner.gamma_memory
            if memory is None or not memory.serves(self, store):
                gammas = gamma_grid(G)
                path = GammaPath(gammas, _criterion(store, Spectrum(G, sums, count, pi), own, gammas))
                memory = GammaMemory(self, path.best, float(count.sum()), len(count), path)
                learner.gamma_memory = memory
            gamma, path = memory.gamma, memory.path
        else:
            gamma = float(self.gamma)
        backend = store.backend
        W = solve_ridge(G, (sums * backend.column(pi, sums)).T, gamma)
        return RidgeSolution(rule=self, W=backend.cast(W, store.dtype), pi=pi, gamma=gamma, path=path)


def _criterion(store: SecondMoments, spectrum: Spectrum, own: Array, gammas: Array) -> Array:
    shrinkage, within = spectrum.shrinkage(gammas), spectrum.rotated(store.within(own))
    miss = log_odds_of_a_miss(spectrum, shrinkage, within, store.unlike(within, own))
    return log_error(store.losses(spectrum, shrinkage, within)) + miss


@dataclass(kw_only=True)
class RidgeSolution(LinearSolution):
    """The weights for one state of the statistics.

    Attributes
    ----------
    rule : Ridge
    W : array of shape (f, C)
    pi : array of shape (C,)
        Scaled class weights.
    b : None
        There are no intercepts.
    gamma : float
        The ridge that was used.
    path : GammaPath or None
        Where gamma was searched for; None for a given gamma.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Ridge
    >>> learner = Learner(STORES["per-class"](n_features=3, dtype=np.float64))
    >>> X, slots = np.eye(3)[[0, 1, 2, 2]], np.array([0, 1, 1, 1])
    >>> learner.update(X, slots, None, n_classes=2)
    >>> solution = learner.solution(Ridge("auto", "inverse", "mean"), labels=np.arange(2))
    >>> solution.W.shape, solution.pi, len(solution.path.gamma)
    ((3, 2), array([1.5, 0.5]), 25)
    >>> solution.scorer(np.arange(2))(X).argmax(axis=1)
    array([0, 1, 1, 1])
    """

    rule: Ridge
    pi: Array
    gamma: float
    path: GammaPath | None
    _temperature: float | None = None

    def temperature(self, learner: Learner, labels: Array) -> float:
        """Return the variance per output of the class-wise leave-one-out error: the softmax temperature.

        If scores scatter around the one-hot target with variance T in every direction, the posterior of equally
        likely classes is the softmax of the scores over T.
        """
        with learner.computing():
            if self._temperature is None:
                store = learner.store
                assert isinstance(store, SecondMoments)
                count, own = store.count, class_weights(self.rule.weighting, store.count, labels)
                G = store.gram(own) * scale_factor(self.rule.scale, own, count)
                spectrum = Spectrum(G, store.sums, count, self.pi)
                shrinkage = spectrum.shrinkage(np.array([self.gamma]))
                losses = store.losses(spectrum, shrinkage, spectrum.rotated(store.within(own)))
                self._temperature = float(np.exp(log_error(losses)[0])) / len(count)
            return self._temperature


@dataclass
class GammaMemory:
    """The last gamma that was searched for, for which class weights, and how much had been learned then.

    Attributes
    ----------
    rule : Ridge
        With gamma="auto".
    gamma : float
    count : float
        Sum of all sample weights.
    n_classes : int
    path : GammaPath

    Examples
    --------
    It stands until the count has doubled:

    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Ridge
    >>> rule, labels, X = Ridge("auto", "inverse", "mean"), np.arange(3), np.eye(3)
    >>> learner = Learner(STORES["per-class"](n_features=3, dtype=np.float64))
    >>> learner.update(X, labels, None, n_classes=3)
    >>> solution = learner.solution(rule, labels)
    >>> memory = learner.gamma_memory
    >>> learner.update(X[:1], labels[:1], None, n_classes=3)
    >>> memory.count, memory.serves(rule, learner.store)
    (3.0, True)
    >>> learner.update(X, labels, None, n_classes=3)
    >>> memory.serves(rule, learner.store)
    False
    """

    rule: Ridge
    gamma: float
    count: float
    n_classes: int
    path: GammaPath

    def serves(self, rule: Ridge, store: Statistics) -> bool:
        """Tell whether it may stand: the same weighting, no new class, and the count has not doubled."""
        return rule == self.rule and store.n_classes == self.n_classes and bool(store.count.sum() < 2 * self.count)
