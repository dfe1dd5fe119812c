"""Analytic classifiers: a weighted ridge regression on one-hot labels, in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aircl.classifiers.linear import LinearClassifier, check_gamma
from aircl.engine import STORES, GammaPath, Ridge, Statistics, StoreError
from aircl.engine.backend import Array
from aircl.engine.memory import parse_bytes
from aircl.engine.weighting import (
    Weighting,
    check_weighting,
    class_weights,
    depends_on_own_count_only,
    missing_weights,
)


class AnalyticClassifier(LinearClassifier):
    """Learns second moments of a stream and solves a weighted ridge regression on one-hot labels.

    Subclasses bring the constructor; every parameter below is an attribute of theirs.
    """

    gamma: float | str
    weighting: Weighting
    scale: str
    store: str
    expansion: Any
    memory_limit: int | str | None
    random_state: Any

    def _store_type(self) -> type[Statistics]:
        return STORES[self.store]

    def _rule(self) -> Ridge:
        # A copy, so that a mapping that is changed in place is noticed.
        weighting = dict(self.weighting) if isinstance(self.weighting, Mapping) else self.weighting
        return Ridge(self.gamma, weighting, self.scale)

    def _check_parameters(self) -> None:
        check_weighting(self.weighting, self.scale)
        if self.store not in STORES:
            raise ValueError(f"store={self.store!r} is unknown. Choose one of {', '.join(map(repr, STORES))}.")
        if hasattr(self, "_learner") and self._learner.state.statistics.name != self._store_type().name:
            raise ValueError(
                f"store={self.store!r}, but this learner has learned into {self._learner.state.statistics.name!r}. "
                "A store cannot change once something is learned: set it back, or fit again."
            )
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
    def gamma_(self) -> float:
        """The ridge that is used."""
        gamma: float = self._solution("gamma_").gamma
        return gamma

    @property
    def gamma_path_(self) -> GammaPath:
        """The grid of gammas and the criterion on it, for gamma='auto'."""
        path: GammaPath | None = self._solution("gamma_path_").path
        if path is None:
            raise AttributeError(f"gamma_path_ exists only for gamma='auto', not for gamma={self.gamma!r}.")
        return path

    # -- prediction --
    def predict_proba(self, X: Any) -> Array:
        """Return a softmax of the scores. It ranks classes; it is not calibrated.

        The temperature is the class-wise leave-one-out error per output, from the statistics alone. Wrap the
        classifier in `sklearn.calibration.CalibratedClassifierCV` where probabilities have to be right.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes)
        """
        return self._query(X).predict_proba(X)
