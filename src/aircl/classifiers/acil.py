"""ACIL, analytic class-incremental learning: AIR's engine with every sample weighing the same."""

from __future__ import annotations

from typing import Any, ClassVar

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.classifiers.priors import Priors
from aircl.classifiers.rows import KeepLedger


class ACILClassifier(AnalyticClassifier):
    """ACIL: ridge regression on one-hot labels, accumulated over any stream.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        The ridge.
    store : {"shared", "per-class", "pooled"}, default="shared"
        All three are exact for uniform weights; `shared` is the smallest, `per-class` can forget whole classes.
    expansion : "auto", transformer or None, default="auto"
        Applied to X first, such as `RandomReLU`; "auto" chooses one by the width of X, see `AIRClassifier`.
    calibrate : bool, default=True
        Add an intercept and make probabilities reliable, both from the statistics alone; see `AIRClassifier`.
    priors : {None, "equal", "count"} or mapping, default=None
        How often classes are expected among new samples, for scores and probabilities: as the weights imply
        (by count), equally often, as often as learned, or by label. It may change at any time, without
        learning or solving again: ``set_params(priors="count")``.
    memory_limit : int or str, default=None
        Bytes, or a text such as "4GB", that store="per-class" may take. Not for torch tensors, which have no limit.
    ledger : bool, path or list of paths, default=False
        Keep a hash of every learned row; see `AIRClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of an expansion that has none of its own; for expansion="auto" None is the seed 0.
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
    >>> from aircl import ACILClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = ACILClassifier().fit(X[:900], y[:900])
    >>> print(f"{clf.score(X[900:], y[900:]):.2f}")
    0.96
    """

    weighting: ClassVar[str] = "uniform"  # type: ignore[misc]
    scale: ClassVar[str] = "mean"  # type: ignore[misc]
    _in_older_files: ClassVar[dict[str, Any]] = {"calibrate": False}

    def __init__(
        self,
        gamma: float | str = "auto",
        *,
        store: str = "shared",
        expansion: Any = "auto",
        calibrate: bool = True,
        priors: Priors = None,
        memory_limit: int | str | None = None,
        ledger: KeepLedger = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.gamma = gamma
        self.store = store
        self.expansion = expansion
        self.calibrate = calibrate
        self.priors = priors
        self.memory_limit = memory_limit
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone
