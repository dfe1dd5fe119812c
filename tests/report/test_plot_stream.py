from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from aircl.report.figures import plot_stream
from aircl.scenarios import make_stream


def cells(axes):
    return axes.collections[0].get_array()


def test_cells_are_counts_and_empty_cells_are_empty():
    counts = np.array([[0, 7, 0, 0], [3, 0, 0, 100], [0, 1, 0, 0]])
    axes = Figure().subplots()
    assert plot_stream(counts, axes) is axes
    drawn = cells(axes)
    names = [int(label.get_text()) for label in axes.get_xticklabels()]
    assert sorted(names) == [0, 1, 2, 3]
    assert names[-1] == 2  # it never appears
    np.testing.assert_array_equal(drawn.filled(0), counts[:, names])
    np.testing.assert_array_equal(drawn.mask, counts[:, names] == 0)
    assert isinstance(axes.collections[0].norm, LogNorm)
    assert axes.get_title() == "111 samples of 3 classes in 3 phases"


def test_a_stream_is_drawn_as_a_staircase():
    stream = make_stream("cil", np.repeat(np.arange(100), 5), phases=10)
    axes = plot_stream(stream, Figure().subplots())
    phase, column = np.nonzero(cells(axes).filled(0))
    np.testing.assert_array_equal(phase, column // 10)
    assert axes.get_title() == "cil: 500 samples of 100 classes in 10 phases"
    assert axes.yaxis_inverted()


@pytest.mark.parametrize("shape", [(1, 1), (50, 2), (1, 1000), (50, 1000), (5, 40)])
@pytest.mark.parametrize("largest", [0, 1, 5000])
def test_any_size_can_be_drawn_and_read(shape, largest):
    counts = np.random.default_rng(0).integers(0, largest, shape, endpoint=True)
    figure = Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = plot_stream(counts, figure.subplots())
    figure.draw_without_rendering()
    bar = figure.axes[1]
    ticks = [label.get_text() for label in bar.get_yticklabels()]
    assert ticks[0] == "1"
    assert ticks[-1] == f"{max(2, counts.max()):,}"
    labels = [label for label in axes.get_yticklabels() if label.get_text()]
    assert 1 <= len(labels) <= 21


def test_empty_cells_look_empty():
    figure = Figure(figsize=(4, 4))
    canvas = FigureCanvasAgg(figure)
    axes = plot_stream(np.eye(2, dtype=int) * 9, figure.subplots())
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())

    def colour(column, phase):
        x, y = axes.transData.transform((column, phase))
        return tuple(pixels[len(pixels) - 1 - int(y), int(x), :3])

    assert colour(1, 1) == colour(2, 2) != (255, 255, 255)
    assert colour(1, 2) == colour(2, 1) == (255, 255, 255)


def test_a_figure_of_its_own():
    mpl.use("agg")
    from matplotlib import pyplot

    axes = plot_stream([[1, 2]])
    assert axes.figure.number in pyplot.get_fignums()
    pyplot.close(axes.figure)


@pytest.mark.parametrize("counts", [[1, 2], [[]], 3])
def test_what_is_no_map_is_refused(counts):
    with pytest.raises(ValueError, match=r"shape \(phases, classes\), at least one of each; got"):
        plot_stream(counts, Figure().subplots())
