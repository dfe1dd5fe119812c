from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from aircl import AIRClassifier
from aircl.report import plot_gamma_path

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    return AIRClassifier(**PAPER).fit(rng.normal(size=(60, 5)), np.arange(60) % 3)


@pytest.mark.parametrize("of", [lambda clf: clf, lambda clf: clf.gamma_path_])
def test_the_criterion_over_the_grid_and_the_choice(of, classifier):
    axes = Figure().subplots()
    assert plot_gamma_path(of(classifier), axes) is axes
    curve, choice = axes.get_lines()
    np.testing.assert_array_equal(curve.get_xdata(), classifier.gamma_path_.gamma)
    np.testing.assert_array_equal(curve.get_ydata(), classifier.gamma_path_.criterion)
    assert set(choice.get_xdata()) == {classifier.gamma_}
    assert axes.get_xscale() == "log"


def test_a_figure_of_its_own(classifier):
    mpl.use("agg")
    from matplotlib import pyplot

    axes = plot_gamma_path(classifier)
    assert axes.figure.number in pyplot.get_fignums()
    pyplot.close(axes.figure)


def test_a_given_gamma_has_no_path():
    with pytest.raises(AttributeError, match="gamma='auto'"):
        plot_gamma_path(AIRClassifier(1.0, **PAPER).fit(np.eye(2), [0, 1]), Figure().subplots())


def test_twelve_methods_have_colours_and_markers_of_their_own():
    from aircl.report.figures.style import COLOURS, DARK_COLOURS, MARKERS, line_style

    assert len(set(MARKERS)) >= 12
    looks = [tuple(value for key, value in line_style(n).items() if key != "linestyle") for n in range(24)]
    assert len(set(looks)) == 24  # also where no line is drawn
    for colours in (COLOURS, DARK_COLOURS):
        labs = np.array([oklab(colour) for colour in colours])
        distance = np.linalg.norm(labs[:, None] - labs, axis=2)
        assert distance[~np.eye(len(labs), dtype=bool)].min() > 0.14


def oklab(colour):
    rgb = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    cones = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
             [0.0883024619, 0.2817188376, 0.6299787005]]  # fmt: skip
    lab = [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
           [0.0259040371, 0.7827717662, -0.8086757660]]  # fmt: skip
    return np.array(lab) @ np.cbrt(np.array(cones) @ rgb)
