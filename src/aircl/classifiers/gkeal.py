"""GKEAL: ACIL behind a Gaussian kernel buffer."""

from __future__ import annotations

from typing import Any, ClassVar

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.classifiers.rows import KeepLedger
from aircl.expansion import GaussianKernel


class GKEALClassifier(AnalyticClassifier):
    """GKEAL: ridge regression on kernel values at centres that are drawn from the first batch.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        The ridge.
    n_components : int, default=2048
        Number of centres. If the first batch has fewer rows, random mixes of two rows are added.
    sigma : float or "median", default="median"
        Width of the kernel exp(-|x - m|^2 / (2 sigma^2)), in the units of the features; "median" is the median distance
        between two rows of the first batch, 10 is published.
    calibrate : bool, default=False
        Add an intercept, and make probabilities reliable, both from the statistics alone: see `AIRClassifier`. As
        published, without it, they rank classes only.
    ledger : bool, path or list of paths, default=False
        Keep a hash of every learned row; see `AIRClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of centres.
    backbone : str or Backbone, default=None
        What makes features of texts or images first; see `AIRClassifier`.

    Notes
    -----
    The centres come from the FIRST batch: give the whole first phase at once. They are training samples, and stay in
    the model; two learners with centres of their own cannot be merged. Learning n rows costs O(n f (d + f)).

    References
    ----------
    H. Zhuang et al., "GKEAL: Gaussian Kernel Embedded Analytic Learning for Few-Shot Class Incremental Task",
    CVPR 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import GKEALClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = GKEALClassifier(n_components=500, random_state=0).fit(X[:900], y[:900])
    >>> print(f"{clf.score(X[900:], y[900:]):.2f}")
    0.96
    """

    weighting: ClassVar[str] = "uniform"  # type: ignore[misc]
    scale: ClassVar[str] = "mean"  # type: ignore[misc]
    store: ClassVar[str] = "shared"  # type: ignore[misc]
    priors: ClassVar[None] = None  # type: ignore[misc]
    memory_limit: ClassVar[None] = None  # type: ignore[misc]

    def __init__(
        self,
        gamma: float | str = "auto",
        *,
        n_components: int = 2048,
        sigma: float | str = "median",
        calibrate: bool = False,
        ledger: KeepLedger = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.sigma = sigma
        self.calibrate = calibrate
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone

    def _make_expansion(self) -> GaussianKernel:
        return GaussianKernel(self.n_components, sigma=self.sigma, random_state=self.random_state)
