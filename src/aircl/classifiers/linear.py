"""Classifiers whose scores are linear in the features."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from aircl.classifiers.stream import StreamClassifier
from aircl.engine.backend import Array


class LinearClassifier(StreamClassifier):
    """A classifier of a stream with one weight vector per class."""

    @property
    def coef_(self) -> Array:
        """W transposed: the weights of every class, shape (C, f); zeros for classes not seen yet."""
        return self._learned_by_class("coef")


class CalibratedClassifier(LinearClassifier):
    """A linear classifier whose scores become probabilities where they are calibrated from the statistics."""

    calibrate: bool

    def _check_calibrate(self) -> None:
        if not isinstance(self.calibrate, bool | np.bool_):
            raise ValueError(f"calibrate={self.calibrate!r} is not possible. Use True or False.")

    @property
    def intercept_(self) -> Array:
        """What is added to the scores of every class, shape (C,); zeros unless there is something to add."""
        current = self._current("intercept_")
        b = current.solution.b
        zeros = self._backend.asarray(np.zeros(len(current._solved.labels.seen)))
        return self._by_class(zeros if b is None else b, current._solved.labels)

    @property
    def temperature_(self) -> float:
        """What scores are divided by before the softmax."""
        temperature: float = self._solution("temperature_").temperature
        return temperature

    def _has_probabilities(self) -> bool:
        return bool(self.calibrate)

    @available_if(lambda self: self._has_probabilities())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class: a softmax of the scores at `temperature_`.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes)
        """
        return self._query(X).predict_proba(X)

    @available_if(lambda self: self._has_probabilities())  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`, also where a probability rounds to 0 or 1.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        log_p : array of shape (n_samples, n_classes)
            -inf for classes not seen yet.
        """
        return self._query(X).predict_log_proba(X)


class RidgeClassifier(CalibratedClassifier):
    """A linear classifier with a ridge, that may be calibrated."""

    gamma: float | str
    _gamma_word: ClassVar[str] = "auto"  # in place of a number

    def _check_parameters(self) -> None:
        check_gamma(self.gamma, self._gamma_word)
        self._check_calibrate()

    @property
    def gamma_(self) -> float:
        """The ridge that is used."""
        gamma: float = self._solution("gamma_").gamma
        return gamma


def check_gamma(gamma: Any, word: str | None = None, *, zero: bool = False) -> None:
    """Refuse a ridge that is neither a finite number above 0 (or 0 itself, if allowed) nor the word."""
    if word is not None and isinstance(gamma, str) and gamma == word:
        return
    number = isinstance(gamma, Real) and not isinstance(gamma, bool)
    if not number or not (0 <= float(gamma) < np.inf) or (float(gamma) == 0 and not zero):
        words = "" if word is None else f"{word!r} or "
        raise ValueError(f"gamma={gamma!r} is not possible. Use {words}a finite number {'>=' if zero else '>'} 0.")
