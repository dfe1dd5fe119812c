"""AIR, the Analytic Imbalance Rectifier."""

from __future__ import annotations

from typing import Any, ClassVar

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.classifiers.priors import Priors
from aircl.classifiers.rows import KeepLedger
from aircl.engine.weighting import Weighting


class AIRClassifier(AnalyticClassifier):
    """AIR: a ridge classifier, exact on any stream, in which every class has equal weight.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        The ridge, beside class weights of the chosen scale. "auto" takes the gamma with the least sum of the logarithms
        of the classes' leave-one-out error and of the odds of a misclassification, from the statistics alone. While
        only `partial_fit` and `predict` alternate, it is kept until the counts have doubled or there are more than a
        tenth more classes; `refresh`, `end_phase`, `merge`, `forget` and `fit` choose again.
    weighting : {"inverse", "uniform", "effective"}, float, mapping or callable, default="inverse"
        Weight pi_y of a class of count n_y: 1/n_y (AIR), 1 (ACIL), the inverse effective number of samples,
        n_y**-beta for a float beta, a mapping from label to weight, or a callable from counts to weights.
    scale : {"mean", "none", "balanced"}, default="mean"
        The mean of pi over the seen classes is 1 (AIR is ACIL on balanced data); as it is (exactly the paper);
        or sum pi_y n_y = n (scikit-learn's "balanced").
    store : {"per-class", "shared", "pooled"}, default="per-class"
        How second moments are held: exact for every stream; one scatter for all classes in 1/C of the memory; or exact
        for phases that share no class.
    expansion : "auto", transformer or None, default="auto"
        Applied to X first, such as `RandomReLU`. It is cloned, and fitted on the first batch. "auto" is 8 random ReLU
        features per column, at least 256 and at most 2048, of rows scaled to norm 1 (fewer than 64 columns: as they
        are, with random thresholds), except that 1000 to 4096 columns stay as they are; see `AutoBuffer`.
    calibrate : bool, default=True
        Add an intercept and make probabilities reliable, both from the statistics alone; see Notes. The paper's AIR
        is expansion=RandomReLU(f), calibrate=False.
    priors : {None, "equal", "count"} or mapping, default=None
        How often classes are expected among new samples, for scores and probabilities: as the weights imply
        (equally often for inverse weights, by count for uniform ones), equally often, as often as learned, or by label.
        It may change at any time, without learning or solving again: ``set_params(priors="count")``.
    memory_limit : int or str, default=None
        Bytes, or a text such as "4GB", that store="per-class" may take. Not for torch tensors, which have no limit.
    ledger : bool, path or list of paths, default=False
        Keep a hash of every learned row, under a key: no row is learned twice, and no row is forgotten that was not
        learned. True: a random key, which stays in the model. A path: a file of at least 16 random bytes, which
        stays where it is; ledgers of one key can be compared. Several paths: after a merge of models of several keys.
    random_state : int, RandomState instance or None, default=None
        Seed of an expansion that has none of its own. For expansion="auto" None is the seed 0, so that learners
        can be merged.
    backbone : str or Backbone, default=None
        What makes features of X first: a name of `aircl list backbones`, or any object with the `Backbone` protocol. X
        are then texts (a list, an array, a Series), or images (paths, PIL images, uint8 arrays), in every method.

    Attributes
    ----------
    classes_ : array of shape (C,)
        Labels seen or declared, sorted.
    coef_ : array of shape (C, f)
    class_count_, class_weight_ : arrays of shape (C,)
    intercept_ : array of shape (C,)
    temperature_ : float
    gamma_ : float
    gamma_path_ : GammaPath
    expansion_ : fitted transformer or None
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)

    Notes
    -----
    Learning n rows costs O(n f^2), a solve O(f^3 / 3 + C f^2). The regression itself has no intercept: as in the paper,
    the buffer gives the features a common direction.

    With calibrate=True, scores of new samples are simulated from the statistics, and an intercept and a temperature are
    chosen by their log-loss, every class with its weight in the regression. `predict_proba` uses both, and
    `expected_accuracy` says how often the simulated answers are right. It assumes that new samples of a class
    are distributed as those learned, independent of each other. Order, splits, merging and saving change nothing beyond
    rounding; `set_params(calibrate=...)` needs no learning again. Cost: see `aircl.engine.calibration`.

    X may be a torch tensor: then everything is computed on its device, and scores, probabilities, `coef_`,
    `class_count_`, `class_weight_` and predictions (unless labels are strings) are tensors there. A learner holds one
    kind of array on one device.

    References
    ----------
    D. Fang, Y. Zhu, R. Fang, C. Chen, Z. Zeng, H. Zhuang, "AIR: Analytic Imbalance Rectifier for Continual Learning",
    2024.

    Examples
    --------
    Digits 0 and 1 have 80 samples each, 8 and 9 only 5; they arrive in batches, whole classes at a time. Answers
    that are at least 90 % sure are nearly always right:

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.metrics import balanced_accuracy_score
    >>> from aircl import AIRClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X, X_test, y, y_test = X[:900], X[900:], y[:900], y[900:]
    >>> keep = np.concatenate([np.flatnonzero(y == digit)[: 80 >> digit // 2] for digit in range(10)])
    >>> clf = AIRClassifier()
    >>> for rows in np.array_split(keep, 5):
    ...     clf = clf.partial_fit(X[rows], y[rows])
    >>> clf.class_count_.astype(int)
    array([80, 80, 40, 40, 20, 20, 10, 10,  5,  5])
    >>> print(f"{balanced_accuracy_score(y_test, clf.predict(X_test)):.2f}")
    0.84
    >>> P = clf.predict_proba(X_test)
    >>> sure, right = P.max(axis=1) >= 0.9, clf.classes_[P.argmax(axis=1)] == y_test
    >>> print(f"{sure.mean():.0%} of the answers are sure, {right[sure].mean():.0%} of these are right")
    70% of the answers are sure, 97% of these are right
    """

    _in_older_files: ClassVar[dict[str, Any]] = {"calibrate": False}

    def __init__(
        self,
        gamma: float | str = "auto",
        *,
        weighting: Weighting = "inverse",
        scale: str = "mean",
        store: str = "per-class",
        expansion: Any = "auto",
        calibrate: bool = True,
        priors: Priors = None,
        memory_limit: int | str | None = None,
        ledger: KeepLedger = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.gamma = gamma
        self.weighting = weighting
        self.scale = scale
        self.store = store
        self.expansion = expansion
        self.calibrate = calibrate
        self.priors = priors
        self.memory_limit = memory_limit
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone
