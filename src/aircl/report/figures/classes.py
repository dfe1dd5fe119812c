"""Class by class, from the most frequent to the rarest: confusions, norms of weights, losses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from aircl.benchmark.results import RunDirectory
from aircl.report.experiments import ClassValue, Experiment
from aircl.report.figures.curves import chosen
from aircl.report.figures.style import line_style, new_axes
from aircl.report.reading import Results, as_experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_confusion(
    results: Results | npt.NDArray[np.int64],
    ax: Axes | None = None,
    *,
    method: str | None = None,
    seed: int | None = None,
) -> Axes:
    """Draw a confusion matrix after the last phase, each row as shares of the class's test samples.

    Parameters
    ----------
    results : Experiment, RunDirectory, path of one, or array of shape (C, C)
        Of one experiment, with details; or test samples by true class (row) and predicted class (column).
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    method : str, default=None
        Whose; None: the first that has one, which is AIR if it ran.
    seed : int, default=None
        Of which seed; None: the first. The title says which.

    Returns
    -------
    ax : matplotlib Axes
        With an image of shape (C, C) of shares from 0 to 1. Classes of an experiment go from the most frequent to the
        rarest, up to 30 of them with their names, those of an array as they are; counts stand in up to 15 x 15 cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> ax = plot_confusion(np.array([[3, 1], [0, 2]]), Figure().subplots())
    >>> ax.get_images()[0].get_array().tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    if isinstance(results, np.ndarray):
        confusion, title, order, names = results, "", "classes", []
        if confusion.ndim != 2 or confusion.shape[0] != confusion.shape[1] or not confusion.size:
            raise ValueError(f"a confusion matrix has the shape (C, C); got {confusion.shape}.")
    else:
        experiment = as_experiment(results)
        confusion, title = _confusion_of(experiment, method, seed)
        order, names = (
            "class, most frequent first",
            [experiment.name_of(label) for label in experiment.classes.tolist()],
        )
    ax = ax or new_axes()
    shares = confusion / np.maximum(1, confusion.sum(axis=1, keepdims=True))
    image = ax.imshow(shares, vmin=0, vmax=1, cmap="Blues", interpolation="nearest")
    if 0 < len(names) <= 30:
        place = np.arange(len(names))
        ax.set_xticks(place, names, rotation=90 if sum(map(len, names)) > 30 else 0)
        ax.set_yticks(place, names)
    for row, column in np.argwhere(confusion) if len(confusion) <= 15 else []:
        dark = shares[row, column] > 0.5
        text = str(confusion[row, column])
        ax.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    ax.set_xlabel(f"predicted {order}")
    ax.set_ylabel(f"true {order}")
    ax.set_title(title, fontsize="medium")
    ax.figure.colorbar(image, ax=ax, label="share of the class's test samples")
    return ax


def plot_weight_norms(results: Results, ax: Axes | None = None, *, methods: Iterable[str] | None = None) -> Axes:
    """Draw the L2 norm of each class's column of weights after the last phase.

    Parameters
    ----------
    results : Experiment, RunDirectory or path of one
        Of one experiment, with details.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    methods : iterable of str, default=None
        Which methods to draw; None: all that have weights.

    Returns
    -------
    ax : matplotlib Axes
        One line a method, of shape (C,): means over seeds, classes from the most frequent to the rarest.

    Examples
    --------
    The weights of AIR are of one size, those of ACIL follow the counts:

    >>> from tempfile import TemporaryDirectory
    >>> from matplotlib.figure import Figure
    >>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
    >>> from aircl.report import plot_weight_norms
    >>> experiment = Experiment("digits", "identity", "long-tail", {"phases": 2}, methods=("air", "acil"))
    >>> with TemporaryDirectory() as folder:
    ...     Runner(RunConfig("mine", (experiment,)), RunDirectory(folder)).run()
    ...     ax = plot_weight_norms(folder, Figure().subplots())
    >>> for line in ax.get_lines():
    ...     print(line.get_label(), line.get_ydata().round(1))
    air [0.4 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5]
    acil [0.9 0.9 0.8 0.7 0.9 0.2 0.2 0.3 0.2 0.2]
    """
    ax = _by_class(results, ax, methods, "weight_norms")
    ax.set_ylabel("L2 norm of the class's weights")
    return ax


def plot_class_loss(
    results: Results,
    ax: Axes | None = None,
    *,
    on: Literal["test", "train"] = "test",
    methods: Iterable[str] | None = None,
) -> Axes:
    """Draw the squared error of each class after the last phase: the mean on test samples, or the sum on training ones.

    Parameters
    ----------
    results : Experiment, RunDirectory or path of one
        Of one experiment, with details.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    on : {"test", "train"}, default="test"
        "test": mean over the class's test samples; "train": sum over its training samples.
    methods : iterable of str, default=None
        Which methods to draw; None: all that regress on targets 0 and 1.

    Returns
    -------
    ax : matplotlib Axes
        One line a method, of shape (C,): means over seeds, classes from the most frequent to the rarest.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from matplotlib.figure import Figure
    >>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
    >>> from aircl.report import plot_class_loss
    >>> experiment = Experiment("digits", "identity", "long-tail", {"phases": 2}, methods=("air", "acil"))
    >>> with TemporaryDirectory() as folder:
    ...     Runner(RunConfig("mine", (experiment,)), RunDirectory(folder)).run()
    ...     ax = plot_class_loss(folder, Figure().subplots())
    >>> for line in ax.get_lines():
    ...     loss = line.get_ydata()
    ...     print(f"{line.get_label()}: {loss[:5].mean():.2f} for the head, {loss[5:].mean():.2f} for the tail")
    air: 0.33 for the head, 0.46 for the tail
    acil: 0.15 for the head, 1.15 for the tail
    """
    if on not in ("test", "train"):
        raise ValueError(f'on={on!r} is neither "test" nor "train".')
    ax = _by_class(results, ax, methods, "test_loss" if on == "test" else "train_loss")
    ax.set_ylabel("mean squared error on the test set" if on == "test" else "sum of squared errors on the training set")
    return ax


def _by_class(results: Results, ax: Axes | None, methods: Iterable[str] | None, what: ClassValue) -> Axes:
    from matplotlib.ticker import MaxNLocator

    experiment = as_experiment(results)
    classes = experiment.classes
    drawn = [(m, s) for m in chosen(experiment, methods) if (s := m.per_class(what, classes)) is not None]
    if not drawn:
        raise ValueError(f"{experiment.title}: no method has {what.replace('_', ' ')}. {_why(results)}")
    ax = ax or new_axes()
    place = np.arange(len(classes))
    for method, series in drawn:
        style = line_style(method.style)
        ax.plot(
            place, series.mean, label=method.name, **{**style, "marker": style["marker"] if len(place) < 30 else ""}
        )
    if len(place) <= 40:
        ax.set_xticks(place, map(str, classes.tolist()), fontsize="small" if len(place) > 20 else None)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("classes, most frequent first")
    ax.set_title(experiment.title, fontsize="medium")
    ax.grid(alpha=0.3)
    ax.legend()
    return ax


def _confusion_of(experiment: Experiment, method: str | None, seed: int | None) -> tuple[npt.NDArray[np.int64], str]:
    for own in chosen(experiment, None if method is None else [method]):
        found = own.confusions(experiment.classes)
        if found and seed is not None and seed not in found:
            raise ValueError(f"{own.name} has no seed {seed}. It has {', '.join(map(str, found))}.")
        if found:
            which = next(iter(found)) if seed is None else seed
            return found[which], f"{own.name}, seed {which}: {experiment.title}"
    who = "no method has a" if method is None else f"{method} has no"
    raise ValueError(f"{experiment.title}: {who} confusion matrix. It did not finish, or its details are gone.")


def _why(results: Results) -> str:
    if isinstance(results, RunDirectory | Experiment):
        return "Either none finished, or its details are gone."
    return "Rows alone do not have them: give the directory of the run."
