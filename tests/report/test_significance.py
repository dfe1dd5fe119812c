"""What is said about differences holds: sums over samples are the metrics, intervals cover, ties are marked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
from aircl.benchmark.results import Details, Row
from aircl.report import compare, contrast, rank_methods, read_experiments, to_latex, to_markdown
from aircl.report.significance import TESTED, bootstrap, sample_scores, signed_rank

STREAM = Experiment(
    "digits", "identity", "long-tail", {"phases": 5, "counts": "exp", "ratio": 0.025}, methods=("air", "acil", "ncm"),
    seeds=(1, 2, 3), buffer=200, gamma=1.0, evaluate_every=100,
)  # fmt: skip


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    Runner(RunConfig("test", (STREAM,)), directory, cache=tmp_path_factory.mktemp("cache")).run()
    return read_experiments(directory)[0]


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("metric", TESTED)
def test_scores_of_samples_add_up_to_the_metric(experiment, metric, balanced):
    for job in experiment.method("acil").jobs:
        name = f"balanced_{metric}" if balanced and metric.startswith("A_") else metric
        assert sample_scores(job.details, metric, balanced).sum() == pytest.approx(job.final(name), abs=1e-12)


def test_classes_that_were_never_exposed_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    blurry = replace(STREAM, scenario="si-blurry", options={"phases": 4}, methods=("ncm",), seeds=(1,))
    Runner(RunConfig("test", (blurry,)), RunDirectory(tmp_path / "run")).run()
    (job,) = read_experiments(tmp_path / "run")[0].method("ncm").jobs
    assert (job.details.predicted == -1).any()
    for metric in ("A_avg", "A_last", "A_auc"):
        assert sample_scores(job.details, metric).sum() == pytest.approx(job.final(metric), abs=1e-12)


def test_a_difference_is_that_of_the_table_and_turns_around(experiment):
    air, acil = experiment.method("air"), experiment.method("acil")
    found = contrast(air, acil, "A_last")
    assert found.difference == pytest.approx(air.final("A_last").mean - acil.final("A_last").mean)
    assert found.low < found.difference < found.high
    assert found.is_clear
    assert found.samples_p < 0.01
    assert found.seeds == 3
    assert found.seeds_p is None  # of three seeds it could not be small
    back = contrast(acil, air, "A_last")
    assert back.difference == pytest.approx(-found.difference)
    assert back.low == pytest.approx(-found.high, abs=0.01)
    assert found.low <= found.samples_low  # seeds add to what test samples leave open
    assert contrast(air, air, "A_last").is_clear is False


def test_the_interval_is_that_of_a_paired_test(experiment):
    """Against the normal approximation, from the variance of single differences."""
    air, ncm = (experiment.method(name).jobs[0].details for name in ("air", "ncm"))
    each = (air.predicted == air.test_labels).astype(float) - (ncm.predicted == ncm.test_labels)
    single = [replace(experiment.method(name), jobs=experiment.method(name).jobs[:1]) for name in ("air", "ncm")]
    found = contrast(*single, "A_last")
    half = 1.96 * each.std() / np.sqrt(len(each))
    assert found.low == pytest.approx(each.mean() - half, abs=0.004)
    assert found.high == pytest.approx(each.mean() + half, abs=0.004)
    assert found.seeds_low is None


def test_intervals_cover_as_often_as_they_say():
    """Two methods that are equally good: 95 of 100 intervals should have zero in them."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        each = (rng.random(200) < 0.8).astype(float) - (rng.random(200) < 0.8)
        low, high = np.quantile(bootstrap(each / 200, 1000), [0.025, 0.975])
        covered.append(low <= 0 <= high)
    assert 0.91 < np.mean(covered) < 0.98


def test_seeds_that_vary_widen_what_is_not_clear():
    def results(name, lead):
        jobs = []
        for seed, right in enumerate(lead):
            hits = np.arange(400) < right
            details = Details(
                np.arange(2), np.array([[9, 9]]), np.zeros((2, 2), int), *[np.zeros(0)] * 3, np.zeros((1, 1)),
                test_labels=np.repeat([0, 1], 200), predicted=np.zeros(400, int), right=np.packbits(hits)[None],
                exposed=np.ones((1, 2), bool), periodic=np.zeros(1, bool),
            )  # fmt: skip
            row = Row("r", f"{name}{seed}", "d", "b", "cil", "", name, seed, 0, 9, "final", "A_last", right / 400, 1.0)
            jobs.append((row, details))
        (experiment,) = read_experiments([row for row, _ in jobs])
        method = experiment.method(name)
        loaded = [replace(job, load=lambda own=own: own) for job, (_, own) in zip(method.jobs, jobs, strict=True)]
        return replace(method, jobs=tuple(loaded))

    steady = contrast(results("a", [330, 330, 330, 330]), results("b", [300, 300, 300, 300]), "A_last")
    assert steady.is_clear
    assert steady.seeds_low == steady.seeds_high == pytest.approx(30 / 400)
    shaky = contrast(results("a", [390, 270, 390, 270]), results("b", [300, 300, 300, 300]), "A_last")
    assert shaky.difference == pytest.approx(steady.difference)
    assert shaky.samples_low > 0  # these test samples would say so, but the seeds do not
    assert not shaky.is_clear
    six = contrast(results("a", [330, 331, 332, 333, 334, 335]), results("b", [300] * 6), "A_last")
    assert six.seeds_p == pytest.approx(0.03125)


def test_the_signed_rank_test_needs_six_seeds():
    assert signed_rank(np.full(5, 0.1)) is None
    assert signed_rank(np.zeros(6)) == 1.0
    differences = np.array([0.1, -0.02, 0.3, 0.2, 0.15, 0.12, 0.11])
    assert signed_rank(differences) == stats.wilcoxon(differences).pvalue


def test_what_cannot_be_told_from_the_best_is_not_bold(experiment):
    comparison = compare(experiment)
    cells = {line.method.name: line.cells["A_avg"] for line in comparison.lines}
    assert (cells["air"].place, cells["air"].tied, cells["acil"].tied) == (1, False, False)
    assert f"**{cells['air'].text}**" in to_markdown([comparison])
    heads = {line.method.name: line.cells["head"] for line in comparison.lines}
    assert all(cell.tied for cell in heads.values())  # one class, which all of them know
    assert "≈100.00" in to_markdown([comparison])
    assert "≈: cannot be told from the best" in to_markdown([comparison])
    assert r"$\approx$100.00" in to_latex([comparison])


def test_ranks_over_streams():
    def stream(n, **values):
        return [
            Row("r", f"{m}{n}", f"d{n}", "b", "cil", "", m, 1, 0, 9, "final", "A_last", v, 1.0)
            for m, v in values.items()
        ]

    rows = [row for n in range(8) for row in stream(n, a=0.9, b=0.8 + n % 2 * 0.15, c=0.1, only=0.5 if n else 0.4)]
    experiments = read_experiments(rows)
    ranks = rank_methods(experiments, "A_last")
    assert ranks.methods == ("a", "b", "only", "c")
    assert ranks.ranks == (1.5, 1.5, 3.0, 4.0)
    # Demsar 2006, table 5: q = 2.569 for four classifiers at 0.05.
    assert ranks.critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 8)), abs=1e-3)
    table = [[e.method(name).final("A_last").mean for e in experiments] for name in ("a", "b", "c", "only")]
    assert ranks.p == pytest.approx(stats.friedmanchisquare(*table).pvalue)
    assert rank_methods(experiments[:5], "A_last") is None
    assert rank_methods(read_experiments([row for row in rows if row.method in "ab"]), "A_last") is None
