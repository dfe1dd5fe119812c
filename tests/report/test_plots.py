"""What each figure of a run shows, against the numbers of the run."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from aircl.benchmark.results import RunDirectory
from aircl.report import (
    plot_anytime,
    plot_class_loss,
    plot_class_phases_accuracy,
    plot_confusion,
    plot_cost,
    plot_groups,
    plot_phase_accuracy,
    plot_stream,
    plot_weight_norms,
    read_experiments,
)
from aircl.report.figures.style import COLOURS

PLOTS = (plot_anytime, plot_phase_accuracy, plot_class_phases_accuracy, plot_confusion, plot_weight_norms,
         plot_class_loss, plot_groups, plot_cost)  # fmt: skip
RAN = ["air", "acil", "air-shared", "centroids"]


@pytest.fixture(scope="module")
def experiment(run):
    return read_experiments(run)[0]


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def details(run):
    return {(name, seed): run.details(f"digits-identity-long-tail-descending-{name}-seed{seed}")
            for name in RAN for seed in (1, 2, 3)}  # fmt: skip


def values(run, method, point, metric="accuracy"):
    """Return the values of a method, shape (seeds, points)."""
    rows = [r for r in run.rows() if (r.order, r.method, r.point, r.metric) == ("descending", method, point, metric)]
    return np.array([[r.value for r in rows if r.seed == seed] for seed in (1, 2, 3)])


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_anytime_has_means_and_bands(run, experiment, ax):
    assert plot_anytime(experiment, ax) is ax
    assert legend(ax) == RAN
    expected = 100 * values(run, "acil", "periodic")
    np.testing.assert_allclose(lines(ax)["acil"].get_ydata(), expected.mean(axis=0))
    error = expected.std(axis=0, ddof=1) / np.sqrt(3)
    band = ax.collections[1].get_paths()[0].get_extents()
    assert band.y0 == pytest.approx((expected.mean(axis=0) - error).min())
    assert band.y1 == pytest.approx((expected.mean(axis=0) + error).max())
    samples = [
        r.samples for r in run.rows() if (r.method, r.seed, r.point, r.order) == ("air", 1, "periodic", "descending")
    ]
    np.testing.assert_array_equal(lines(ax)["air"].get_xdata(), samples)


def test_phase_accuracy_has_points_and_whiskers(run, experiment, ax):
    plot_phase_accuracy(experiment, ax, metric="balanced_accuracy", methods=["acil"])
    expected = 100 * values(run, "acil", "phase", "balanced_accuracy")
    (container,) = ax.containers
    np.testing.assert_array_equal(container.lines[0].get_xdata(), [1, 2, 3, 4, 5])
    np.testing.assert_allclose(container.lines[0].get_ydata(), expected.mean(axis=0))
    error = expected.std(axis=0, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose([np.ptp(s[:, 1]) / 2 for s in container.lines[2][0].get_segments()], error, atol=1e-12)
    assert legend(ax) == ["acil"]
    assert "balanced" in ax.get_ylabel()


def test_what_is_left_of_each_phase(details, experiment, ax):
    plot_class_phases_accuracy(experiment, ax)
    expected = 100 * np.mean([details["air", seed].phase_accuracy[-1] for seed in (1, 2, 3)], axis=0)
    drawn = {c.get_label(): c.lines[0].get_ydata() for c in ax.containers}
    np.testing.assert_allclose(drawn["air"], expected)
    assert list(drawn) == RAN


def test_confusion_is_in_shares_by_frequency(details, experiment, ax):
    plot_confusion(experiment, ax, method="acil", seed=2)
    total = details["acil", 2].confusion
    order = experiment.classes
    counts = details["acil", 1].counts.sum(axis=0)
    assert (np.diff(counts[order]) <= 0).all()
    shares = (total / total.sum(axis=1, keepdims=True))[np.ix_(order, order)]
    np.testing.assert_allclose(ax.get_images()[0].get_array(), shares)
    assert ax.get_title() == "acil, seed 2: digits · long-tail · descending · identity"
    assert [text.get_text() for text in ax.texts] == [str(n) for n in total[np.ix_(order, order)].ravel() if n]
    assert [label.get_text() for label in ax.get_xticklabels()] == list(map(str, order))
    assert plot_confusion(experiment, Figure().subplots()).get_title().startswith("air, seed 1: ")
    with pytest.raises(ValueError, match=r"acil has no seed 9. It has 1, 2, 3."):
        plot_confusion(experiment, Figure().subplots(), method="acil", seed=9)


def test_confusion_of_an_array(ax):
    plot_confusion(np.array([[2, 2], [0, 0]]), ax)
    np.testing.assert_array_equal(ax.get_images()[0].get_array(), [[0.5, 0.5], [0, 0]])
    with pytest.raises(ValueError, match=r"shape \(C, C\); got \(2, 3\)"):
        plot_confusion(np.zeros((2, 3)), ax)


def test_weight_norms_of_linear_methods(details, experiment, ax):
    plot_weight_norms(experiment, ax)
    assert legend(ax) == ["air", "acil", "air-shared"]
    expected = np.mean([details["air", seed].weight_norms for seed in (1, 2, 3)], axis=0)[experiment.classes]
    np.testing.assert_allclose(lines(ax)["air"].get_ydata(), expected)
    assert [label.get_text() for label in ax.get_xticklabels()] == list(map(str, experiment.classes))


@pytest.mark.parametrize(("on", "word"), [("test", "mean"), ("train", "sum")])
def test_losses_by_class(on, word, details, experiment, ax):
    plot_class_loss(experiment, ax, on=on)
    expected = np.mean([getattr(details["acil", seed], f"{on}_loss") for seed in (1, 2, 3)], axis=0)
    np.testing.assert_allclose(lines(ax)["acil"].get_ydata(), expected[experiment.classes])
    assert word in ax.get_ylabel()


def test_the_paper_in_one_run(details, experiment):
    """AIR has weights of like norm and spreads its error; ACIL's follow the counts."""
    norms = {
        name: experiment.method(name).per_class("weight_norms", experiment.classes).mean for name in ("air", "acil")
    }
    assert np.ptp(norms["air"]) < 0.3 * np.ptp(norms["acil"])
    assert experiment.method("air").final("tail").mean > experiment.method("acil").final("tail").mean + 0.1


def test_groups(run, experiment, ax):
    plot_groups(experiment, ax)
    bars = {container.get_label(): container for container in ax.containers if hasattr(container, "patches")}
    assert list(bars) == RAN
    for method in RAN:
        expected = [100 * values(run, method, "final", group).mean() for group in ("head", "middle", "tail")]
        np.testing.assert_allclose([bar.get_height() for bar in bars[method]], expected)
    assert to_hex(bars["air"][0].get_facecolor()) == COLOURS[0]
    assert [label.get_text().split("\n")[0] for label in ax.get_xticklabels()] == ["head", "middle", "tail"]


@pytest.mark.parametrize(("what", "column", "scale"), [("seconds", "seconds", 1), ("memory", "state_bytes", 1e-6)])
def test_cost(what, column, scale, run, experiment, ax):
    plot_cost(experiment, ax, what=what)
    rows = [r for r in run.rows() if r.order == "descending" and r.point == "final"]
    expected = [scale * max(getattr(r, column) for r in rows if r.method == method) for method in RAN]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], expected)
    assert [label.get_text() for label in ax.get_yticklabels()] == RAN
    assert ax.yaxis_inverted()


def test_the_stream_of_a_run(details, experiment, ax):
    plot_stream(experiment, ax)
    assert ax.collections[0].get_array().filled(0).sum() == details["air", 1].counts.sum()
    assert ax.get_title().startswith("long-tail: ")


@pytest.mark.parametrize("plot", PLOTS)
def test_a_directory_and_a_figure_of_its_own(plot, run, tmp_path):
    mpl.use("agg")
    from matplotlib import pyplot

    directory = RunDirectory(tmp_path)
    directory.write_about(run.about)
    directory.append(r for r in run.rows() if r.order == "ascending")
    (tmp_path / "details").symlink_to(run.path / "details")
    for results in (directory, tmp_path, str(tmp_path)):
        axes = plot(results)
        assert axes.figure.number in pyplot.get_fignums()
        pyplot.close(axes.figure)


@pytest.mark.parametrize("plot", PLOTS)
def test_a_run_without_results_says_so(plot, run, ax):
    rows = [r for r in run.rows() if r.method in ("broken", "prompts")]
    with pytest.raises(ValueError, match=r"digits · long-tail · descending · identity: no method"):
        plot(rows, ax)


def test_wrong_words_are_refused(experiment, ax):
    with pytest.raises(ValueError, match="neither"):
        plot_class_loss(experiment, ax, on="validation")
    with pytest.raises(ValueError, match="neither"):
        plot_cost(experiment, ax, what="energy")
    with pytest.raises(ValueError, match="no method 'slda' ran"):
        plot_anytime(experiment, ax, methods=["slda"])
    with pytest.raises(ValueError, match="broken has no confusion matrix"):
        plot_confusion(experiment, ax, method="broken")
