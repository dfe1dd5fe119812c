"""Which classes come when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aircl.benchmark.results import RunDirectory
from aircl.report.experiments import Experiment
from aircl.report.figures.style import new_axes
from aircl.report.reading import as_experiment
from aircl.scenarios import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_stream(
    stream_or_counts: Stream | Experiment | RunDirectory | npt.ArrayLike,
    ax: Axes | None = None,
    *,
    class_names: Sequence[str] = (),
) -> Axes:
    """Draw how many samples of each class each phase of a stream has. A cell without samples stays white.

    Parameters
    ----------
    stream_or_counts : Stream, Experiment, RunDirectory or array of shape (phases, classes)
        A stream, the results of one experiment (of which the first seed is drawn), or numbers of samples.
    ax : matplotlib Axes, default=None
        Where to draw; None: on a new figure of pyplot.
    class_names : sequence of str, default=()
        By label; those of an experiment are known. Without them, labels stand for names.

    Returns
    -------
    ax : matplotlib Axes
        Phases from top to bottom. Classes from left to right by the phase that has most of their samples, those that
        keep to it first; then by their index; up to 40 of them are named; last those that never appear. A
        colour bar is drawn beside them.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from aircl.report.figures import plot_stream
    >>> from aircl.scenarios import make_stream
    >>> stream = make_stream("si-blurry", np.repeat(np.arange(100), 500), seed=1)
    >>> ax = plot_stream(stream, Figure().subplots())
    >>> ax.get_title()
    'si-blurry: 50,000 samples of 100 classes in 5 phases'
    """
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    if isinstance(stream_or_counts, Stream):
        counts, name = stream_or_counts.counts(), f"{stream_or_counts.scenario}: "
    elif isinstance(stream_or_counts, Experiment | RunDirectory):
        experiment = as_experiment(stream_or_counts)
        counts, name = experiment.stream_counts(), f"{experiment.scenario}: "
        class_names = class_names or experiment.class_names
    else:
        counts, name = np.asarray(stream_or_counts), ""
    if counts.ndim != 2 or 0 in counts.shape:
        raise ValueError(
            f"counts should have the shape (phases, classes), at least one of each; got {counts.shape}. "
            "`Stream.counts` returns them."
        )
    ax = ax or new_axes()
    n_phases, n_classes = counts.shape
    seen = counts.any(axis=0)
    by_phase = np.lexsort([np.count_nonzero(counts, axis=0), np.where(seen, counts.argmax(axis=0), n_phases)])
    most = max(2, int(counts.max()))
    columns, rows = np.arange(n_classes + 1) + 0.5, np.arange(n_phases + 1) + 0.5
    mesh = ax.pcolormesh(
        columns,
        rows,
        np.ma.masked_equal(counts[:, by_phase], 0),
        norm=LogNorm(1, most),
        cmap="viridis_r",
        rasterized=True,  # an SVG of 50,000 cells is slow to open
    )
    ax.invert_yaxis()
    ax.hlines(rows[1:-1], *columns[[0, -1]], color="lightgrey", linewidth=0.5)
    ax.yaxis.set_major_locator(MaxNLocator(20, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    if n_classes <= 40:
        ax.vlines(columns[1:-1], *rows[[0, -1]], color="lightgrey", linewidth=0.5)
        names = [class_names[label] if label < len(class_names) else str(label) for label in by_phase.tolist()]
        long = sum(map(len, names)) > 60
        ax.set_xticks(
            np.arange(n_classes) + 1,
            names,
            fontsize="small" if n_classes > 20 or long else None,
            rotation=90 if long else None,
        )
    ax.set_xlabel("classes, by their main phase")
    ax.set_ylabel("phase")
    # Powers of ten, and the largest count in place of one that would touch it.
    ticks = [*(10**power for power in range(len(str(most))) if 2 * 10**power <= most), most]
    bar = ax.figure.colorbar(mesh, ax=ax, label="samples", ticks=ticks)
    bar.minorticks_off()
    bar.ax.set_yticklabels([f"{tick:,}" for tick in ticks])
    ax.set_title(
        f"{name}{_number(counts.sum(), 'sample')} of {_number(seen.sum(), 'class')} in {_number(n_phases, 'phase')}"
    )
    return ax


def _number(n: int, what: str) -> str:
    plural = "" if n == 1 else "es" if what.endswith("s") else "s"
    return f"{n:,} {what}{plural}"
