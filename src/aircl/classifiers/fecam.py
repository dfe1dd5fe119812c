"""FeCAM: every class an ellipsoid of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import linalg

from aircl.classifiers.inputs import Inputs
from aircl.classifiers.ncm import unit
from aircl.classifiers.rows import KeepLedger
from aircl.classifiers.stream import StreamClassifier
from aircl.engine import Rule, Solution, State, Statistics
from aircl.engine.air import PerClass
from aircl.engine.backend import NUMPY, Array
from aircl.engine.factor import rounding_tolerance
from aircl.engine.memory import parse_bytes

# Relative to a correlation of 1: keeps a covariance without shrinkage, of fewer samples than features, regular.
RIDGE = 1e-9
# shrinkage="auto": this times f times the mean of 1/n_y, within the range that is published.
AUTO, PUBLISHED = 0.2, (1.0, 100.0)


class Distance(Protocol):
    """The squared distance of rows (n, f) from one class, shape (n,)."""

    def __call__(self, X: Array) -> Array:
        """Return the squared distances."""


@dataclass(frozen=True)
class EuclideanDistance:
    """Euclidean, for a class without scatter: its covariance is the unit matrix."""

    center: Array

    def __call__(self, X: Array) -> Array:
        """Return |x - m|^2."""
        squared: Array = ((X - self.center) ** 2).sum(1)
        return squared


@dataclass(frozen=True)
class FromMatrix:
    """Under a correlation matrix of full rank, by its Cholesky factor L (f, f)."""

    center: Array
    L: Array

    def __call__(self, X: Array) -> Array:
        """Return |L^-1 (x - m)|^2."""
        squared: Array = (linalg.solve_triangular(self.L, (X - self.center).T, lower=True) ** 2).sum(0)
        return squared


@dataclass(frozen=True)
class FromRows:
    """Under the correlations of U'SU + c I: U of few rows (k, f), S a diagonal of signs, `scale` the deviations.

    By Woodbury's identity, with z = (x - m) scale: (|z|^2 - (zU')K(zU')') / c for K = (c S + U U')^-1.
    """

    center: Array
    scale: Array
    U: Array
    K: Array
    c: float

    def __call__(self, X: Array) -> Array:
        """Return the squared distances."""
        Z = (X - self.center) * self.scale
        Q = Z @ self.U.T
        squared: Array = ((Z**2).sum(1) - ((Q @ self.K) * Q).sum(1)) / self.c
        return squared


@dataclass(frozen=True)
class Mahalanobis(Rule):
    """Squared Mahalanobis distances to the class means, under shrunk covariances that are normalised to correlations.

    Shrunk once: S_y + a (V1 I + V2 (11' - I)), V1 the mean variance, V2 the mean covariance of S_y. The next round sees
    V1 and V2 that are 1 + a times as large, so k rounds are one of (1 + a)^k - 1.
    """

    shrinkage: float | str
    rounds: int
    normalize: bool

    def solve(self, state: State, memory: Any = None) -> tuple[MahalanobisSolution, Any]:
        """Return a distance for every class."""
        statistics = state.statistics
        assert isinstance(statistics, PerClass)
        means, dtype = statistics.sums / statistics.count[:, None], statistics.space.dtype
        centers = (unit(means) if self.normalize else means).astype(dtype)
        alpha = self.alpha(statistics.count, statistics.space.n_features)
        shrunk = Shrunk((1.0 + alpha) ** self.rounds - 1.0, dtype)
        distances = []
        for count, mean, center, moment in zip(statistics.count, means, centers, statistics.own_moments, strict=True):
            if moment.packed is None:
                R = moment.all_rows().astype(np.float64) / np.sqrt(count)
                distance = shrunk.from_rows(R, mean, center)
            else:
                A = NUMPY.symmetric(moment.dense().astype(np.float64)) / count
                distance = shrunk.from_matrix(A, mean, center)
            distances.append(distance)
        return MahalanobisSolution(distances, alpha, self.normalize), memory

    def alpha(self, count: Array, n_features: int) -> float:
        """Return the shrinkage of one round: given, or by the sizes of the classes, the same for all of them.

        With one of its own, a large class has a smaller one, which makes all distances to it larger.
        """
        if self.shrinkage != "auto":
            return float(self.shrinkage)
        return float(np.clip(AUTO * n_features * np.mean(1.0 / count), *PUBLISHED))


@dataclass(frozen=True)
class Shrunk:
    """Distances under S + s (V1 I + V2 (11' - I)), normalised to correlations."""

    s: float
    dtype: np.dtype[Any]

    def from_matrix(self, A: Array, mean: Array, center: Array) -> Distance:
        """Return the distance for the covariance S = A - m'm, given A (f, f)."""
        S, f = A - np.outer(mean, mean), len(A)
        variances = np.diag(S)
        if variances.sum() <= rounding_tolerance(self.dtype, f, float(np.trace(A))):
            return EuclideanDistance(center)
        variance = variances.mean()
        covariance = (S.sum() - variance * f) / max(1, f * (f - 1))
        S += self.s * (covariance + (variance - covariance) * np.eye(f))
        deviations = _deviations(np.diag(S))
        correlations = S / np.outer(deviations, deviations)
        for ridge in (RIDGE, 1e-6, 1e-3):  # rounding may have pushed an eigenvalue below zero, if the mean is large
            L, failed = linalg.lapack.dpotrf(correlations + ridge * np.eye(f), lower=True, clean=True)
            if not failed:
                return FromMatrix(center, L.astype(self.dtype))
        return EuclideanDistance(center)

    def from_rows(self, R: Array, mean: Array, center: Array) -> Distance:
        """Return the distance for the covariance S = R'R - m'm, given few rows R (r, f)."""
        f = R.shape[1]
        # The same in an orthonormal basis of the rows, where it is small: S = Q'(T'T - q'q)Q = U'U.
        Q, T = np.linalg.qr(R.T)
        eigenvalues, V = np.linalg.eigh(T @ T.T - np.outer(mean @ Q, mean @ Q))
        U = (V * np.sqrt(eigenvalues.clip(min=0.0))).T @ Q.T
        variances = (U**2).sum(0)
        if variances.sum() <= rounding_tolerance(self.dtype, f, float((R**2).sum())):
            return EuclideanDistance(center)
        variance = variances.mean()
        covariance = ((U.sum(1) ** 2).sum() - variance * f) / max(1, f * (f - 1))
        deviations = _deviations(variances + self.s * variance)
        c = max(self.s * (variance - covariance), RIDGE * float((deviations**2).mean()))
        U = np.concatenate([U, np.full((1, f), np.sqrt(self.s * abs(covariance)))])
        sign = np.append(np.ones(len(U) - 1), np.copysign(1.0, covariance))
        K = np.linalg.inv(np.diag(c * sign) + U @ U.T)
        deviations, U, K = (array.astype(self.dtype) for array in (deviations, U, K))
        return FromRows(center, deviations, U, K, float(c))


def _deviations(variances: Array) -> Array:
    """Return standard deviations to divide by."""
    deviations: Array = np.sqrt(np.maximum(variances, RIDGE * variances.mean()))
    return deviations


@dataclass(frozen=True)
class MahalanobisSolution(Solution):
    """One distance per class, by slot."""

    distances: list[Distance]
    shrinkage: float
    normalize: bool

    def scorer(self, order: Array) -> Callable[[Array], Array]:
        """Return the function from features to negative distances."""
        distances = [self.distances[slot] for slot in order]

        def score(X: Array) -> Array:
            Z = unit(X) if self.normalize else X
            return -np.stack([distance(Z) for distance in distances], axis=1)

        return score


class FeCAMClassifier(StreamClassifier):
    """FeCAM: the nearest class mean under every class's own covariance, shrunk and normalised to correlations.

    Parameters
    ----------
    shrinkage : float or "auto", default="auto"
        alpha, how much of the mean variance and the mean covariance of a class is added to its covariance, >= 0.
        Published are 1 for many samples per class, 10 to 100 for few. "auto" is f/5 times the mean of 1/n_y over the
        classes (f features, n_y samples), at least 1 and at most 100.
    rounds : int, default=2
        How often the covariance is shrunk; twice in the published code, where an alpha of 1 has the effect of 3.
    normalize : bool, default=True
        Bring features and class means to length 1 before their distance is taken, as published.
    power : float, default=0.5
        Tukey's transform: features become sign(x)|x|^power first, which makes them more Gaussian. 1: as they are.
    expansion : transformer, default=None
        Applied to X first.
    memory_limit : int or str, default=None
        Bytes, or a text such as "4GB", that the second moments may take.
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
    shrinkage_ : float
        alpha as it is used.

    Notes
    -----
    Statistics are those of store="per-class", so it merges and forgets. Learning n rows costs O(n f^2). A prediction
    costs O(n_y f) per class for classes of few samples, O(f^2) beyond: hundreds of times that of a linear classifier.
    A class without scatter, such as one of one sample, is round: its covariance is the unit matrix. `shrinkage`,
    `rounds` and `normalize` may be changed at any time, without learning anything again. Models that were saved before
    there were `rounds` and `normalize` go on without them. There are no probabilities: distances are not linear in x,
    so that scores of new samples cannot be simulated as `aircl.engine.calibration` does.

    References
    ----------
    D. Goswami et al., "FeCAM: Exploiting the Heterogeneity of Class Distributions in Exemplar-Free Continual Learning",
    NeurIPS 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import FeCAMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = FeCAMClassifier().fit(X[:900], y[:900])
    >>> print(f"{clf.score(X[900:], y[900:]):.2f}")
    0.96
    """

    takes_tensors: ClassVar[bool] = False
    _store: ClassVar[type[Statistics]] = PerClass
    _in_older_files: ClassVar[dict[str, Any]] = {"rounds": 1, "normalize": False}

    def __init__(
        self,
        shrinkage: float | str = "auto",
        *,
        rounds: int = 2,
        normalize: bool = True,
        power: float = 0.5,
        expansion: Any = None,
        memory_limit: int | str | None = None,
        ledger: KeepLedger = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.rounds = rounds
        self.normalize = normalize
        self.power = power
        self.expansion = expansion
        self.memory_limit = memory_limit
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone

    def _rule(self) -> Mahalanobis:
        return Mahalanobis(self.shrinkage, int(self.rounds), bool(self.normalize))

    def _check_parameters(self) -> None:
        is_number = isinstance(self.shrinkage, Real) and 0 <= self.shrinkage < np.inf
        if not is_number and self.shrinkage != "auto":
            raise ValueError(f"shrinkage={self.shrinkage!r} is not possible. Use a finite number >= 0, or 'auto'.")
        if not isinstance(self.rounds, Integral) or self.rounds < 1:
            raise ValueError(f"rounds={self.rounds!r} is not possible. Use a whole number >= 1.")
        if not isinstance(self.power, Real) or not 0 < self.power < np.inf:
            raise ValueError(f"power={self.power!r} is not possible. Use a finite number > 0.")
        parse_bytes(self.memory_limit)

    def _features(self, X: Any, inputs: Inputs) -> Iterator[tuple[slice, Array]]:
        for part, features in super()._features(X, inputs):
            yield part, features if self.power == 1 else np.sign(features) * np.abs(features) ** self.power

    @property
    def shrinkage_(self) -> float:
        """The shrinkage that is used, of one round."""
        alpha: float = self._solution("shrinkage_").shrinkage
        return alpha
