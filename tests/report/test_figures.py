from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from aircl import AIRClassifier
from aircl.report import plot_gamma_path


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    return AIRClassifier().fit(rng.normal(size=(60, 5)), np.arange(60) % 3)


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
        plot_gamma_path(AIRClassifier(1.0).fit(np.eye(2), [0, 1]), Figure().subplots())
