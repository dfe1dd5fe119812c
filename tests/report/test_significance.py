"""What is said about differences holds: sums over samples are the metrics, intervals cover, ties are marked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import __version__ as scipy_version
from scipy import stats
from sklearn.utils.fixes import parse_version

from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
from aircl.benchmark.results import Details, Row
from aircl.report import compare, contrast, rank_methods, read_experiments, to_latex, to_markdown
from aircl.report.significance import TESTED, sample_scores, signed_rank

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


def results(name, hits):
    """Return a method that was right about these of its test samples, an array for each seed."""
    rows, kept = [], {}
    for seed, right in enumerate(hits):
        n = len(right)
        kept[seed] = Details(
            np.arange(2), np.array([[9, 9]]), np.zeros((2, 2), int), *[np.zeros(0)] * 3, np.zeros((1, 1)),
            test_labels=np.arange(n) % 2, predicted=np.zeros(n, int), right=np.packbits(right)[None],
            exposed=np.ones((1, 2), bool), periodic=np.zeros(1, bool),
        )  # fmt: skip
        share = float(np.mean(right))
        rows.append(Row("r", f"{name}{seed}", "d", "b", "cil", "", name, seed, 0, 9, "final", "A_last", share, 1.0))
    method = read_experiments(rows)[0].method(name)
    return replace(method, jobs=tuple(replace(job, load=lambda own=kept[job.seed]: own) for job in method.jobs))


@pytest.mark.parametrize(("seeds", "seed_effect"), [(1, 0.0), (3, 0.0), (5, 0.3)])
def test_intervals_cover_the_true_difference_as_often_as_they_say(seeds, seed_effect):
    """Methods, seeds and test samples are drawn from a model whose true difference is known in closed form."""
    rng, n, gap = np.random.default_rng(0), 300, 0.2
    spread = np.sqrt(2 + seed_effect**2)
    true = stats.norm.cdf((1 + gap) / spread) - stats.norm.cdf(1 / spread)
    covered = []
    for _ in range(60):
        ease = rng.normal(size=n)  # of the test samples, for both methods and all seeds
        skills = rng.normal([1 + gap, 1], seed_effect, (seeds, 2))
        hits = rng.random((2, seeds, n)) < stats.norm.cdf(skills.T[:, :, None] + ease)
        found = contrast(results("a", hits[0]), results("b", hits[1]), "A_last")
        covered.append(found.low <= true <= found.high)
    assert np.mean(covered) > stats.binom.ppf(0.001, 60, 0.95) / 60
    if seeds == 1:
        assert 0.05 < found.high - found.low < 0.2


def test_seeds_that_vary_widen_what_is_not_clear():
    def of(name, *rights):
        return results(name, [np.arange(400) < right for right in rights])

    steady = contrast(of("a", 330, 330, 330, 330), of("b", 300, 300, 300, 300), "A_last")
    assert steady.is_clear
    assert steady.seeds_low == steady.seeds_high == pytest.approx(30 / 400)
    shaky = contrast(of("a", 390, 270, 390, 270), of("b", 300, 300, 300, 300), "A_last")
    assert shaky.difference == pytest.approx(steady.difference)
    assert shaky.samples_low > 0  # these test samples would say so, but the seeds do not
    assert not shaky.is_clear
    six = contrast(of("a", 330, 331, 332, 333, 334, 335), of("b", *[300] * 6), "A_last")
    assert six.seeds_p == pytest.approx(0.03125)
    differences = stats.ttest_1samp(np.array([30, 31, 32, 33, 34, 35]) / 400, 0).confidence_interval(0.95)
    assert (six.seeds_low, six.seeds_high) == pytest.approx((differences.low, differences.high))


def test_the_bootstrap_is_that_of_scipy():
    each = np.repeat([1.0, -1.0, 0.0], [50, 30, 320])
    one, other = results("a", [each > 0]), results("b", [each < 0])
    found = contrast(one, other, "A_last")
    seed = {"rng" if parse_version(scipy_version) >= parse_version("1.15") else "random_state": 1}
    theirs = stats.bootstrap((each,), np.mean, method="percentile", n_resamples=4000, **seed).confidence_interval
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)
    assert found.difference == pytest.approx(each.mean())
    # The sign test of the samples that the two disagree about.
    p = stats.binomtest(int((each > 0).sum()), int((each != 0).sum())).pvalue
    assert found.samples_p == pytest.approx(p, abs=0.02)


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
