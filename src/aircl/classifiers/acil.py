"""ACIL, analytic class-incremental learning: AIR's engine with every sample weighing the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from aircl.classifiers.analytic import AnalyticClassifier


class ACILClassifier(AnalyticClassifier):
    """ACIL: ridge regression on one-hot labels, accumulated over any stream.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        The ridge.
    store : {"shared", "per-class", "pooled"}, default="shared"
        All three are exact for uniform weights; `shared` is the smallest, `per-class` can forget whole classes.
    expansion : transformer, default=None
        Applied to X first, such as `RandomReLU`.
    calibrate : bool, default=False
        Add an intercept and make probabilities reliable, both from the statistics alone; see `AIRClassifier`.
    memory_limit : int or str, default=None
        Bytes, or a text such as "4GB", that store="per-class" may take. Not for torch tensors, which have no limit.
    ledger : bool, str or path, default=False
        Keep a hash of every learned row; see `AIRClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of an expansion that has none of its own.
    backbone : str or Backbone, default=None
        What makes features of texts or images first; see `AIRClassifier`.

    Notes
    -----
    The iterative form: accumulate, solve on demand. It gives the weights of the recursive one and does not drift.

    References
    ----------
    H. Zhuang et al., "ACIL: Analytic Class-Incremental Learning with Absolute Memorization and Privacy Protection",
    NeurIPS 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import ACILClassifier, RandomReLU
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = ACILClassifier(expansion=RandomReLU(500, random_state=0)).fit(X[:900] / 16, y[:900])
    >>> print(f"{clf.score(X[900:] / 16, y[900:]):.2f}")
    0.96
    """

    weighting: ClassVar[str] = "uniform"  # type: ignore[misc]
    scale: ClassVar[str] = "mean"  # type: ignore[misc]

    def __init__(
        self,
        gamma: float | str = "auto",
        *,
        store: str = "shared",
        expansion: Any = None,
        calibrate: bool = False,
        memory_limit: int | str | None = None,
        ledger: bool | str | Path = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.gamma = gamma
        self.store = store
        self.expansion = expansion
        self.calibrate = calibrate
        self.memory_limit = memory_limit
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone
