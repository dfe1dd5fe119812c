"""Accuracy over the stream: sample by sample, phase by phase, and what is left of each phase in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from aircl.report.estimates import Series
from aircl.report.experiments import Experiment, MethodResults
from aircl.report.figures.style import line_style, new_axes
from aircl.report.reading import Results, as_experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Metric = Literal["accuracy", "balanced_accuracy"]


def plot_anytime(
    results: Results, ax: Axes | None = None, *, metric: Metric = "accuracy", methods: Iterable[str] | None = None
) -> Axes:
    """Draw accuracy over the training samples seen, with a band of one standard error.

    Parameters
    ----------
    results : Experiment, RunDirectory, path of one, or iterable of Row
        Of one experiment.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    metric : {"accuracy", "balanced_accuracy"}, default="accuracy"
        Mean over samples or over classes.
    methods : iterable of str, default=None
        Which methods to draw; None: all.

    Returns
    -------
    ax : matplotlib Axes
        One line a method, of shape (points,): the periodic evaluations, or the ends of phases if there are none.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from aircl.benchmark.results import Row
    >>> rows = [
    ...     Row("run", "job", "digits", "identity", "cil", "", "air", 1, phase, 100 * phase, "phase", "accuracy",
    ...         value, 0.1, 10**8)
    ...     for phase, value in ((1, 0.9), (2, 0.8))
    ... ]
    >>> ax = plot_anytime(rows, Figure().subplots())
    >>> ax.get_lines()[0].get_ydata().tolist()
    [90.0, 80.0]
    """
    ax = _draw(results, ax, methods, lambda method: method.anytime(metric), band=True)
    ax.set_xlabel("training samples seen")
    ax.set_ylabel(_label(metric))
    return ax


def plot_phase_accuracy(
    results: Results, ax: Axes | None = None, *, metric: Metric = "accuracy", methods: Iterable[str] | None = None
) -> Axes:
    """Draw accuracy at the end of each phase, over the classes exposed until then, with standard errors.

    Parameters
    ----------
    results : Experiment, RunDirectory, path of one, or iterable of Row
        Of one experiment.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    metric : {"accuracy", "balanced_accuracy"}, default="accuracy"
        Mean over samples or over classes.
    methods : iterable of str, default=None
        Which methods to draw; None: all.

    Returns
    -------
    ax : matplotlib Axes
        One line a method, of shape (phases,).

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from aircl.benchmark import Row
    >>> from aircl.report import plot_phase_accuracy
    >>> rows = [
    ...     Row("run", "job", "digits", "identity", "cil", "", "air", 1, phase, 100 * phase, "phase", "accuracy",
    ...         value, 0.1, 10**8)
    ...     for phase, value in ((1, 0.9), (2, 0.8))
    ... ]
    >>> ax = plot_phase_accuracy(rows, Figure().subplots())
    >>> ax.containers[0].lines[0].get_xydata().tolist()
    [[1.0, 90.0], [2.0, 80.0]]
    """
    ax = _draw(results, ax, methods, lambda method: method.phases(metric), band=False)
    _count_phases(ax)
    ax.set_xlabel("phase")
    ax.set_ylabel(_label(metric))
    return ax


def plot_class_phases_accuracy(
    results: Results, ax: Axes | None = None, *, methods: Iterable[str] | None = None
) -> Axes:
    """Draw what is known of each phase in the end: the last accuracy on the classes that were new in it.

    Parameters
    ----------
    results : Experiment, RunDirectory or path of one
        Of one experiment, with details.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    methods : iterable of str, default=None
        Which methods to draw; None: all.

    Returns
    -------
    ax : matplotlib Axes
        One line a method, of shape (phases,); a gap where a phase brought no class.

    Examples
    --------
    What is left of the head, which came first, and of the tail:

    >>> from tempfile import TemporaryDirectory
    >>> from matplotlib.figure import Figure
    >>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
    >>> from aircl.report import plot_class_phases_accuracy
    >>> experiment = Experiment("digits", "identity", "long-tail", {"phases": 2}, methods=("air", "acil"))
    >>> with TemporaryDirectory() as folder:
    ...     Runner(RunConfig("mine", (experiment,)), RunDirectory(folder)).run()
    ...     ax = plot_class_phases_accuracy(folder, Figure().subplots())
    >>> for container in ax.containers:
    ...     print(container.get_label(), container.lines[0].get_ydata().round(1))
    air [97.8 84.8]
    acil [99.4  1.7]
    """
    ax = _draw(results, ax, methods, MethodResults.class_phases, band=False)
    _count_phases(ax)
    ax.set_xlabel("phase that brought the classes")
    ax.set_ylabel("accuracy after the last phase (%)")
    return ax


def chosen(experiment: Experiment, methods: Iterable[str] | None) -> list[MethodResults]:
    """Return the results of methods, all if None."""
    return list(experiment.methods) if methods is None else [experiment.method(name) for name in methods]


def _draw(
    results: Results,
    ax: Axes | None,
    methods: Iterable[str] | None,
    series_of: Callable[[MethodResults], Series | None],
    band: bool,
) -> Axes:
    experiment = as_experiment(results)
    drawn = [(m, series) for m in chosen(experiment, methods) if (series := series_of(m)) is not None]
    if not drawn:
        raise ValueError(f"{experiment.title}: no method has values for this figure. Did any finish a phase?")
    ax = ax or new_axes()
    for method, series in drawn:
        style = line_style(method.style)
        mean, error = 100 * series.mean, 100 * series.standard_error
        if band:
            ax.plot(series.x, mean, label=method.name, **{**style, "marker": style["marker"] if len(mean) < 30 else ""})
            if not np.isnan(error).all():
                ax.fill_between(series.x, mean - error, mean + error, color=style["color"], alpha=0.2, linewidth=0)
        else:
            ax.errorbar(series.x, mean, np.nan_to_num(error), label=method.name, capsize=2, **style)
    ax.set_title(experiment.title, fontsize="medium")
    ax.grid(alpha=0.3)
    ax.legend()
    return ax


def _count_phases(ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(20, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def _label(metric: Metric) -> str:
    return "accuracy (%)" if metric == "accuracy" else "class-balanced accuracy (%)"
