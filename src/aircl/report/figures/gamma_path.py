"""How gamma was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aircl.engine import GammaPath
from aircl.report.figures.style import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_gamma_path(path_or_classifier: Any, ax: Axes | None = None) -> Axes:
    """Draw the criterion that gamma="auto" minimises at the gammas that were tried, and mark the one that was chosen.

    Parameters
    ----------
    path_or_classifier : GammaPath or classifier
        A fitted classifier with gamma="auto", or its `gamma_path_`.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> from aircl import AIRClassifier
    >>> from aircl.report import plot_gamma_path
    >>> clf = AIRClassifier(expansion=None).fit(*load_digits(return_X_y=True))
    >>> ax = plot_gamma_path(clf, Figure().subplots())
    >>> ax.get_xscale()
    'log'
    """
    if isinstance(path_or_classifier, GammaPath):
        path, chosen = path_or_classifier, path_or_classifier.best
    else:
        path, chosen = path_or_classifier.gamma_path_, path_or_classifier.gamma_
    ax = ax or new_axes()
    ax.plot(path.gamma, path.criterion, marker=".")
    ax.axvline(chosen, color="black", linestyle=":", label=f"chosen: {chosen:.3g}")
    ax.set_xscale("log")
    ax.set_xlabel("gamma")
    ax.set_ylabel("log leave-one-out error + log odds of an error")
    ax.legend()
    return ax
