"""Bars: accuracy of frequent and rare classes, and what a method costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from aircl.report.estimates import Estimate
from aircl.report.figures.curves import chosen
from aircl.report.figures.style import colour, new_axes
from aircl.report.reading import Results, as_experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUPS = {"head": "> 100", "middle": "20 to 100", "tail": "< 20"}


def plot_groups(results: Results, ax: Axes | None = None, *, methods: Iterable[str] | None = None) -> Axes:
    r"""Draw the last accuracy of head, middle and tail classes, with standard errors.

    Parameters
    ----------
    results : Experiment, RunDirectory, path of one, or iterable of Row
        Of one experiment.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    methods : iterable of str, default=None
        Which methods to draw; None: all that finished.

    Returns
    -------
    ax : matplotlib Axes
        The bars of one method after those of another, one for each group that any method has.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from aircl.benchmark import Row
    >>> from aircl.report import plot_groups
    >>> rows = [
    ...     Row("run", "job", "digits", "identity", "cil", "", "air", 1, 0, 900, "final", group, value, 0.5, 10**8)
    ...     for group, value in (("head", 0.98), ("tail", 0.85))
    ... ]
    >>> ax = plot_groups(rows, Figure().subplots())
    >>> [(label.get_text(), float(bar.get_height())) for label, bar in zip(ax.get_xticklabels(), ax.patches)]
    [('head\n> 100', 98.0), ('tail\n< 20', 85.0)]
    """
    experiment = as_experiment(results)
    values = {
        method.name: (method.style, [method.final(group) for group in GROUPS])
        for method in chosen(experiment, methods)
        if any(method.final(group) for group in GROUPS)
    }
    if not values:
        raise ValueError(f"{experiment.title}: no method has accuracies of head, middle and tail. Did any finish?")
    ax = ax or new_axes()
    there = [i for i in range(len(GROUPS)) if any(own[i] for _, own in values.values())]
    width = 0.8 / len(values)
    for number, (name, (style, own)) in enumerate(values.items()):
        cells = [own[i] for i in there]
        place = np.arange(len(there)) + (number - (len(values) - 1) / 2) * width
        ax.bar(place, _means(cells, 100), width, yerr=_errors(cells, 100), capsize=2, color=colour(style), label=name)
    ax.set_xticks(np.arange(len(there)), [f"{list(GROUPS)[i]}\n{list(GROUPS.values())[i]}" for i in there])
    ax.set_xlabel("training samples of a class")
    ax.set_ylabel("accuracy after the last phase (%)")
    ax.set_title(experiment.title, fontsize="medium")
    ax.legend()
    return ax


def plot_cost(
    results: Results,
    ax: Axes | None = None,
    *,
    what: Literal["seconds", "memory"] = "seconds",
    methods: Iterable[str] | None = None,
) -> Axes:
    """Draw what each method needed: seconds of learning, or megabytes of what it saves.

    Parameters
    ----------
    results : Experiment, RunDirectory, path of one, or iterable of Row
        Of one experiment.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    what : {"seconds", "memory"}, default="seconds"
    methods : iterable of str, default=None
        Which methods to draw; None: all that got somewhere.

    Returns
    -------
    ax : matplotlib Axes
        One horizontal bar a method, the first on top.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from aircl.benchmark import Row
    >>> from aircl.report import plot_cost
    >>> rows = [
    ...     Row("run", method, "digits", "identity", "cil", "", method, 1, 0, 900, "final", "A_last", value, t, 10**8)
    ...     for method, value, t in (("acil", 0.87, 0.4), ("air", 0.93, 0.5))
    ... ]
    >>> ax = plot_cost(rows, Figure().subplots())
    >>> [(label.get_text(), float(bar.get_width())) for label, bar in zip(ax.get_yticklabels(), ax.patches)]
    [('air', 0.5), ('acil', 0.4)]
    """
    if what not in ("seconds", "memory"):
        raise ValueError(f'what={what!r} is neither "seconds" nor "memory".')
    experiment = as_experiment(results)
    drawn = [
        (method, cost)
        for method in chosen(experiment, methods)
        if (cost := method.cost("seconds" if what == "seconds" else "state_bytes")) is not None
    ]
    if not drawn:
        raise ValueError(f"{experiment.title}: no method got anywhere, so there is no cost to draw.")
    ax = ax or new_axes()
    costs = [cost for _, cost in drawn]
    scale = 1.0 if what == "seconds" else 1e-6
    ax.barh(
        np.arange(len(drawn)),
        _means(costs, scale),
        xerr=_errors(costs, scale),
        capsize=2,
        color=[colour(method.style) for method, _ in drawn],
    )
    ax.set_yticks(np.arange(len(drawn)), [method.name for method, _ in drawn])
    ax.invert_yaxis()
    ax.set_xlabel("seconds of learning" if what == "seconds" else "size of the saved state (MB)")
    ax.set_title(experiment.title, fontsize="medium")
    return ax


def _means(cells: Iterable[Estimate | None], scale: float) -> list[float]:
    return [np.nan if cell is None else cell.mean * scale for cell in cells]


def _errors(cells: Iterable[Estimate | None], scale: float) -> list[float]:
    return [0.0 if cell is None or cell.standard_error is None else cell.standard_error * scale for cell in cells]
