"""Analytic classifiers: a weighted ridge regression on one-hot labels, in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from aircl.classifiers.decisions import Decisions, check_threshold, decide
from aircl.classifiers.linear import RidgeClassifier, check_gamma
from aircl.classifiers.priors import Priors, check_priors, class_priors, log_ratio
from aircl.engine import STORES, ExpectedAccuracy, GammaPath, Ridge, Statistics, StoreError
from aircl.engine.backend import Array
from aircl.engine.learner import Solved
from aircl.engine.memory import parse_bytes
from aircl.engine.weighting import (
    Weighting,
    check_weighting,
    class_weights,
    depends_on_own_count_only,
    missing_weights,
)
from aircl.expansion import AutoBuffer


class AnalyticClassifier(RidgeClassifier):
    """Learns second moments of a stream and solves a weighted ridge regression on one-hot labels.

    Subclasses bring the constructor; every parameter below is an attribute of theirs.
    """

    weighting: Weighting
    scale: str
    store: str
    expansion: Any
    priors: Priors
    memory_limit: int | str | None
    random_state: Any
    backbone: Any

    def _make_expansion(self) -> Any:
        return AutoBuffer() if isinstance(self.expansion, str) else self.expansion

    def _store_type(self) -> type[Statistics]:
        return STORES[self.store]

    def _rule(self) -> Ridge:
        # A copy, so that a mapping that is changed in place is noticed.
        weighting = dict(self.weighting) if isinstance(self.weighting, Mapping) else self.weighting
        return Ridge(self.gamma, weighting, self.scale, bool(self.calibrate))

    def _adjusted(self, solved: Solved) -> Solved:
        if self.priors is None:
            return solved
        solution = solved.solution
        probability = class_priors(self.priors, solution.share, solution.count, solved.labels.seen)
        return replace(solved, solution=solution.with_log_odds(log_ratio(probability, solution.share)))

    def _check_parameters(self) -> None:
        check_weighting(self.weighting, self.scale)
        if self.store not in STORES:
            raise ValueError(f"store={self.store!r} is unknown. Choose one of {', '.join(map(repr, STORES))}.")
        if hasattr(self, "_learner") and self._learner.state.statistics.name != self._store_type().name:
            raise ValueError(
                f"store={self.store!r}, but this learner has learned into {self._learner.state.statistics.name!r}. "
                "A store cannot change once something is learned: set it back, or fit again."
            )
        if isinstance(expansion := getattr(self, "expansion", None), str) and expansion != "auto":
            raise ValueError(
                f"expansion={expansion!r} is unknown. Use 'auto', None or a transformer such as RandomReLU(2000)."
            )
        self._check_calibrate()
        check_priors(self.priors)
        parse_bytes(self.memory_limit)
        check_gamma(self.gamma, "auto", zero=True)

    def _check_new_classes(self, new: Array) -> None:
        if missing := missing_weights(self.weighting, new):
            raise ValueError(f"weighting= has no weight for the classes {missing}. Add them to the mapping.")

    def _class_weights(self, count: Array, labels: Array) -> Array:
        if self.store == "pooled" and not depends_on_own_count_only(self.weighting, count, labels):
            raise StoreError(
                "store='pooled' folds each phase with the weights it has then, so weighting= must give a class a "
                "weight that depends on its own count only. Use store='per-class'."
            )
        return class_weights(self.weighting, count, labels)

    # -- what was learned --
    @property
    def class_weight_(self) -> Array:
        """pi_y, the weight of every class in the loss, at the chosen scale, shape (C,)."""
        current = self._current("class_weight_")
        return self._by_class(self._backend.asarray(current.solution.pi), current._solved.labels)

    @property
    def gamma_path_(self) -> GammaPath:
        """The gammas that were tried and the criterion at each, for gamma='auto'."""
        path: GammaPath | None = self._solution("gamma_path_").path
        if path is None:
            raise AttributeError(f"gamma_path_ exists only for gamma='auto', not for gamma={self.gamma!r}.")
        return path

    def expected_accuracy(self) -> ExpectedAccuracy:
        """Return the accuracy to expect on new samples, from the statistics alone; for calibrate=True.

        It assumes that new samples of a class are distributed as those that were learned. Of a class with few samples
        the scatter is taken from all classes.

        Returns
        -------
        expected : ExpectedAccuracy
            All NaN if there is one sample of every class, of which no scatter is known.
        """
        current = self._current()
        found, labels = current.solution.calibration, current._solved.labels
        if found is None:
            raise ValueError("calibrate=False has no expected accuracy. Call set_params(calibrate=True) first.")
        b = current._backend.to_numpy(current.solution.b).astype(np.float64)
        predicted = found.predicted(b)
        simulated, right = found.rivals[:, 0], np.full(len(found.share), np.nan)
        right[simulated] = predicted[:, 0]
        per_class = np.full(len(labels.classes), np.nan)
        per_class[labels.columns] = right[labels.order]
        place, column = np.nonzero(predicted[:, 1:] > 0)
        share = predicted[place, column + 1]
        true, taken_for = labels.seen[simulated[place]], labels.seen[found.rivals[place, column + 1]]
        by_share = np.lexsort((taken_for, true, -share))
        pairs = zip(*(values[by_share].tolist() for values in (true, taken_for, share)), strict=True)
        probability = class_priors(self.priors, found.share, current.solution.count, labels.seen)
        weight = probability[simulated]
        return ExpectedAccuracy(float(weight @ predicted[:, 0] / max(weight.sum(), 1e-300)), per_class, list(pairs))

    # -- prediction --
    def _has_probabilities(self) -> bool:
        return True  # without calibration they rank classes: the temperature is the leave-one-out error per output

    def novelty(self, X: Any) -> Array:
        """Return for every row the share of new samples that would differ at least as much from what was learned.

        Near 0, a row is of none of the learned classes, or differs from its class in a way that was not seen. Of new
        samples of the learned classes, about a share of a has a novelty below a. The distance is a relative Mahalanobis
        distance; that of new samples is simulated; both need the statistics alone, see
        `aircl.engine.novelty`. It does not depend on gamma, and needs no calibrate=True; classes weigh as in `priors`.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        share : array of shape (n_samples,), float64
            In NumPy, also for tensors.

        Notes
        -----
        Cost O(n f^2 + n C k) with k up to 128, and once after every change O(f^3 + C f min(C, f)).

        Examples
        --------
        A classifier that has seen the digits 0 to 7 is shown all ten:

        >>> from sklearn.datasets import load_digits
        >>> from aircl import AIRClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = AIRClassifier(expansion=None).fit(X[:900][y[:900] < 8], y[:900][y[:900] < 8])
        >>> new = clf.novelty(X[900:]) < 0.05
        >>> print(f"{new[y[900:] < 8].mean():.0%} of what it knows, {new[y[900:] >= 8].mean():.0%} of what it does not")
        14% of what it knows, 72% of what it does not
        """
        current = self._query(X)
        # The solution that is kept, without priors, so that this is made once.
        kept = self._learner.solved(self._rule()).solution
        return current.novelty(X, (current.solution if kept.problem is None else kept).novelty)

    def decide(self, X: Any, *, confidence: float | None = 0.9, novelty: float | None = 0.01) -> Decisions:
        """Return labels, but no answer for rows that are too uncertain, or too different from everything learned.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
        confidence : float or None, default=0.9
            The least probability of an answer; for calibrate=True. None: any will do.
        novelty : float or None, default=0.01
            The least `novelty` of a row that is answered. None: any will do, and it is not computed.

        Returns
        -------
        decisions : Decisions
            Labels as a masked array, probabilities, novelty, and the reason where there is no answer.
        """
        check_threshold("confidence", confidence)
        check_threshold("novelty", novelty)
        if confidence is not None and not self.calibrate:
            raise ValueError(
                "calibrate=False has no probabilities that a confidence could be asked of. Call "
                "set_params(calibrate=True) first, or pass confidence=None."
            )
        current = self._query(X)
        P = current._backend.to_numpy(current.predict_proba(X))
        labels = current.classes_[P.argmax(axis=1)] if len(P) else current.classes_[:0]
        share = None if novelty is None else self.novelty(X)
        return decide(labels, P.max(axis=1, initial=0.0), share, confidence, novelty)
