from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from aircl.benchmark.results import Details, Row, RunDirectory
from aircl.report.estimates import Estimate, estimate
from aircl.report.reading import as_experiment, read_experiments


def row(method="air", seed=1, **values):
    shared = {"phase": 1, "samples": 10, "point": "phase", "metric": "accuracy", "value": 0.5, "seconds": 1.0}
    base = Row("run", f"{method}{seed}", "digits", "identity", "cil", "", method, seed, 0, 0, "", "", None, 0.0, 100)
    return replace(base, **{**shared, **values})


def test_means_and_standard_errors_by_hand():
    assert estimate([]) is None
    assert estimate([None, math.nan]) is None
    assert estimate([0.5]) == Estimate(0.5, None, 1)
    # Deviations -1, 0, 1: variance 2 / 2, standard error 1 / sqrt(3).
    assert estimate([1.0, 2.0, None, 3.0]) == Estimate(2.0, pytest.approx(1 / math.sqrt(3)), 3)


def test_a_run_is_sorted_into_experiments_methods_and_seeds(run):
    descending, ascending = read_experiments(run)
    assert (descending.order, ascending.order) == ("descending", "ascending")
    assert [method.name for method in descending.methods] == [
        "air", "acil", "air-shared", "centroids", "broken", "prompts",
    ]  # fmt: skip
    assert [job.seed for job in descending.method("air").jobs] == [1, 2, 3]
    assert descending.config["options"]["ratio"] == 0.02
    assert descending.title == "digits · long-tail · descending · identity"
    # A method looks the same in all experiments of a run.
    assert descending.method("acil").style == ascending.method("acil").style == 1


def test_what_went_wrong_is_said(run):
    descending, ascending = read_experiments(run)
    assert descending.method("broken").problems == [("failed", "ValueError: <b>3</b> is not 4 | x_y", [1, 2, 3])]
    assert descending.method("prompts").problems == [("incompatible", "prompts learns from images", [1, 2, 3])]
    assert ascending.method("acil").problems == [("unfinished", "stopped after phase 2", [2])]
    assert ascending.method("acil").n_seeds == 1
    assert ascending.method("acil").final("A_last").n == 1
    assert descending.method("broken").final("A_last") is None
    assert descending.method("broken").cost("seconds") is None
    with pytest.raises(ValueError, match=r"no method 'ari'.*air, acil"):
        descending.method("ari")


def test_only_unfinished_seeds_still_have_a_course():
    (experiment,) = read_experiments([row(), row(phase=2, samples=20, value=0.4)])
    method = experiment.method("air")
    np.testing.assert_array_equal(method.phases().mean, [0.5, 0.4])
    assert method.final("A_last") is None
    assert method.problems == [("unfinished", "stopped after phase 2", [1])]


def test_a_second_try_replaces_the_first():
    rows = [row(value=0.1), row(status="failed", reason="x", point="", metric="", value=None), row(value=0.7)]
    (experiment,) = read_experiments([*rows, row(point="final", phase=0, metric="A_last", value=0.7)])
    (job,) = experiment.method("air").jobs
    assert (job.status, job.reason) == ("ok", "")
    assert [r.value for r in job.course("phase", "accuracy")] == [0.7]


def test_curves_of_unlike_seeds_are_interpolated():
    def periodic(seed, points):
        return [row(seed=seed, point="periodic", samples=samples, value=value) for samples, value in points]

    (experiment,) = read_experiments([*periodic(1, [(10, 0.0), (30, 0.2)]), *periodic(2, [(20, 0.4), (40, 0.6)])])
    series = experiment.method("air").anytime()
    np.testing.assert_allclose(series.x, [15, 35])
    # Seed 1 at 15: 0.05, at 35: 0.2, its last; seed 2 at 15: 0.4, its first, at 35: 0.55.
    np.testing.assert_allclose(series.mean, [0.225, 0.375])
    np.testing.assert_allclose(series.standard_error, [0.175, 0.175])


def test_without_periodic_points_the_ends_of_phases_are_the_curve():
    (experiment,) = read_experiments([row(), row(phase=2, samples=25, value=0.3)])
    series = experiment.method("air").anytime()
    np.testing.assert_array_equal(series.x, [10, 25])
    np.testing.assert_array_equal(series.mean, [0.5, 0.3])
    assert np.isnan(series.standard_error).all()
    assert experiment.method("air").anytime("balanced_accuracy") is None


def test_costs_are_those_of_the_end():
    rows = [row(seconds=1.0, gamma=5.0, kept=3), row(phase=2, seconds=4.0, gamma=7.0, kept=2, buffer=9)]
    (experiment,) = read_experiments([*rows, row(seed=2, seconds=6.0, gamma=None)])
    method = experiment.method("air")
    assert method.cost("seconds") == Estimate(5.0, 1.0, 2)
    assert method.cost("gamma") == Estimate(7.0, None, 1)
    assert method.cost("buffer") == Estimate(9.0, None, 1)
    assert method.cost("kept").mean == 1.5


def make_details(classes, counts, confusion, norms=()):
    size = len(classes)
    return Details(np.array(classes), np.array(counts), np.array(confusion), np.array(norms, float), np.zeros(0),
                   np.zeros(0), np.full((1, 1), np.nan if size < 2 else 0.5))  # fmt: skip


def test_seeds_with_other_classes_are_aligned(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.write_about({})
    directory.append([row(seed=seed, point="final", phase=0, metric="A_last") for seed in (1, 2)])
    make_details([2, 5], [[3, 8]], [[1, 2], [0, 4]], [1.0, 3.0]).save(directory.details_path("air1"))
    make_details([5, 7], [[4, 20]], [[2, 0], [1, 1]], [5.0, 9.0]).save(directory.details_path("air2"))
    experiment = as_experiment(directory)
    assert experiment.class_counts == {2: 1.5, 5: 6.0, 7: 10.0}
    np.testing.assert_array_equal(experiment.classes, [7, 5, 2])
    by_seed = experiment.method("air").confusions(experiment.classes)  # never summed: they are of other classes
    np.testing.assert_array_equal(by_seed[1], [[0, 0, 0], [0, 4, 0], [0, 2, 1]])
    np.testing.assert_array_equal(by_seed[2], [[1, 1, 0], [0, 2, 0], [0, 0, 0]])
    norms = experiment.method("air").per_class("weight_norms", experiment.classes)
    np.testing.assert_array_equal(norms.mean, [9, 4, 1])
    np.testing.assert_array_equal(norms.standard_error, [np.nan, 1, np.nan])
    assert experiment.method("air").per_class("test_loss", experiment.classes) is None
    np.testing.assert_array_equal(experiment.stream_counts(), [[0, 0, 3, 0, 0, 8]])


def test_a_figure_needs_one_experiment(run):
    with pytest.raises(ValueError, match=r"has 2: digits · long-tail · descending.*read_experiments"):
        as_experiment(run)
    with pytest.raises(ValueError, match=r"has 0: none"):
        as_experiment([])


def test_a_directory_of_no_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no run\.json"):
        read_experiments(tmp_path)
