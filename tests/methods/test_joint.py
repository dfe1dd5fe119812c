"""The upper bound is what scikit-learn makes of all samples, and is shown as a bound."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
from aircl.methods import Setup, create_method
from aircl.report import compare, plot_pareto, read_experiments


def taught(digits, **options):
    method = create_method("joint", Setup(seed=1, n_features=64, buffer=100, gamma=1.0, options=options))
    for phase in digits.stream(5).phases:
        digits.teach(method, phase)
    return method


def test_it_is_logistic_regression_on_everything(digits):
    method = taught(digits)
    rows = np.concatenate([phase.train for phase in digits.stream(5).phases])
    model = LogisticRegression(class_weight="balanced", max_iter=300)
    X = digits.features[rows].astype(np.float64)
    oracle = make_pipeline(StandardScaler(), model).fit(X, digits.labels[rows])
    np.testing.assert_array_equal(method.predict(digits.test_features), oracle.predict(digits.test_features))
    assert method.samples_kept == len(rows)


def test_air_on_everything_is_air(digits):
    joint = taught(digits, classifier="air")
    air = create_method("air", Setup(seed=1, n_features=64, buffer=100, gamma=1.0))
    for phase in digits.stream(5).phases:
        digits.teach(air, phase)
    answer = air.predict(air.encode(digits.test_features))
    assert np.mean(joint.predict(digits.test_features) != answer) < 0.005


def test_options_that_are_wrong():
    for options, message in (({"classifier": "tree"}, "'tree' is not known"), ({"c": 1}, "there is no option 'c'")):
        with pytest.raises(ValueError, match=message):
            create_method("joint", Setup(seed=1, n_features=4, options=options))


def test_the_report_does_not_rank_it(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    stream = Experiment(
        "digits", "identity", "long-tail", {"phases": 2, "ratio": 0.1}, methods=("acil", "ncm", "joint")
    )
    Runner(RunConfig("x", (stream,)), RunDirectory(tmp_path / "run")).run()
    (experiment,) = read_experiments(tmp_path / "run")
    cells = {line.method.name: line.cells["A_last"] for line in compare(experiment).lines}
    assert cells["joint"].value.mean > max(cells["acil"].value.mean, cells["ncm"].value.mean)
    assert (cells["joint"].place, cells["joint"].tied) == (0, False)
    assert experiment.notes["joint"] == ["An upper bound: it keeps every sample, and is not ranked."]
    front = plot_pareto(experiment, metric="A_last", ax=_axes()).get_lines()[-1].get_ydata()
    assert 100 * experiment.method("joint").final("A_last").mean not in front.tolist()


def _axes():
    from matplotlib.figure import Figure

    return Figure().subplots()
