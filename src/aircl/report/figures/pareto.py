"""Accuracy against what it costs, and methods over many streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from aircl.report.experiments import Experiment
from aircl.report.figures.curves import chosen
from aircl.report.figures.style import line_style, new_axes
from aircl.report.reading import Results, as_experiment
from aircl.report.significance import rank_methods

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COSTS = {"seconds": "seconds", "state": "state_bytes"}


def plot_pareto(
    results: Results,
    ax: Axes | None = None,
    *,
    cost: Literal["seconds", "state"] = "seconds",
    metric: str = "balanced_A_last",
    methods: Iterable[str] | None = None,
) -> Axes:
    """Draw accuracy over seconds of learning or bytes of state; a line joins those that nothing is better than in both.

    Parameters
    ----------
    results : Experiment, RunDirectory, path of one, or iterable of Row
        Of one experiment.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    cost : {"seconds", "state"}, default="seconds"
    metric : str, default="balanced_A_last"
    methods : iterable of str, default=None
        Which methods to draw; None: all that finished.

    Returns
    -------
    ax : matplotlib Axes
        One point a method, costs on a logarithmic axis; bounds are hollow, and not on the line.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from aircl.benchmark import Row
    >>> from aircl.report import plot_pareto
    >>> rows = [
    ...     Row("run", method, "digits", "identity", "cil", "", method, 1, 0, 900, "final", "A_last", value, t, 10**6)
    ...     for method, value, t in (("acil", 0.87, 0.4), ("air", 0.93, 0.5), ("slow", 0.9, 7.0))
    ... ]
    >>> ax = plot_pareto(rows, Figure().subplots(), metric="A_last")
    >>> ax.get_lines()[-1].get_xydata().tolist()
    [[0.4, 87.0], [0.5, 93.0]]
    """
    if cost not in COSTS:
        raise ValueError(f'cost={cost!r} is neither "seconds" nor "state".')
    experiment = as_experiment(results)
    points = []
    for method in chosen(experiment, methods):
        paid, got = method.cost(COSTS[cost]), method.final(metric)  # type: ignore[arg-type]  # two of the costs
        if paid is not None and got is not None:
            points.append((method, paid.mean * (1 if cost == "seconds" else 1e-6), 100 * got.mean))
    if not points:
        raise ValueError(f"{experiment.title}: no method has {metric} and {cost}. Did any finish?")
    ax = ax or new_axes()
    for method, x, y in points:
        style = {**line_style(method.style), "markersize": 8, "linestyle": ""}
        ax.plot([x], [y], label=method.name, **(style | ({"fillstyle": "none"} if method.is_bound else {})))
    front = pareto_front([(x, y) for method, x, y in points if not method.is_bound])
    ax.plot(*np.array(front).T if front else ([], []), color="grey", linewidth=1, zorder=0)
    if all(x > 0 for _, x, _ in points):
        ax.set_xscale("log")
    ax.set_xlabel("seconds of learning" if cost == "seconds" else "size of the saved state (MB)")
    ax.set_ylabel(f"{metric.removeprefix('balanced_')} (%{', class-balanced' * metric.startswith('balanced_')})")
    ax.set_title(experiment.title, fontsize="medium")
    ax.grid(alpha=0.3)
    ax.legend()
    return ax


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points of (cost, gain) that no other one is as cheap and better than, the cheapest first.

    Examples
    --------
    >>> pareto_front([(2, 5), (1, 3), (3, 4), (1, 2)])
    [(1, 3), (2, 5)]
    """
    front: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front


def plot_critical_difference(
    experiments: Sequence[Experiment], ax: Axes | None = None, *, metric: str = "balanced_A_last"
) -> Axes:
    """Draw mean ranks of methods over streams; a bar joins those that Nemenyi's test cannot tell apart.

    Parameters
    ----------
    experiments : sequence of Experiment
        Six streams at least, with three methods at least that finished all of them.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    metric : str, default="balanced_A_last"

    Returns
    -------
    ax : matplotlib Axes
        One line a method, the best on top, its mean rank from left to right.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from aircl.benchmark import Row
    >>> from aircl.report import plot_critical_difference, read_experiments
    >>> rows = [
    ...     Row("run", f"{name}{n}", f"data{n}", "net", "cil", "", name, 1, 0, 9, "final", "A_last", share, 1.0)
    ...     for n in range(6) for name, share in (("acil", 0.7), ("air", 0.9), ("ncm", 0.8))
    ... ]
    >>> ax = plot_critical_difference(read_experiments(rows), Figure().subplots(), metric="A_last")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['air', 'ncm', 'acil']
    """
    ranks = rank_methods(experiments, metric)
    if ranks is None:
        raise ValueError(
            f"mean ranks need six streams at least, and three methods that finished all of them; there are "
            f"{len(experiments)} streams. Compare methods on a stream with `contrast`."
        )
    ax = ax or new_axes()
    place = np.arange(len(ranks.methods))
    ax.plot(ranks.ranks, place, "o", color="black")
    ax.set_yticks(place, ranks.methods)
    ax.invert_yaxis()
    for top, rank in enumerate(ranks.ranks):
        last = max(i for i, other in enumerate(ranks.ranks) if other - rank <= ranks.critical_difference)
        if last > top and (top == 0 or ranks.ranks[last] - ranks.ranks[top - 1] > ranks.critical_difference):
            ax.plot([rank, ranks.ranks[last]], [top + 0.25] * 2, color="grey", linewidth=4, solid_capstyle="butt")
    ax.set_xlabel(f"mean rank over {ranks.streams} streams; critical difference {ranks.critical_difference:.2f}")
    ax.set_title(f"Friedman p = {ranks.p:.2g}", fontsize="medium")
    ax.grid(axis="x", alpha=0.3)
    return ax
