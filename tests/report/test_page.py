from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from aircl.benchmark.results import Row, RunDirectory
from aircl.report import read_experiments, write_report
from aircl.report.page_data import embed, run_lengths


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    assert [p.name for p in write_report(run, path)] == ["report.html", "report.md", "table.csv", "table.tex"]
    assert sorted(p.name for p in path.parent.iterdir()) == ["report.html", "report.md", "table.csv", "table.tex"]
    return path.read_text(encoding="utf-8")


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.open, self.attributes = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.attributes += [(tag, *pair) for pair in attributes]
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


def test_the_page_is_whole_and_asks_for_nothing(page):
    tags = Tags(page)
    assert tags.open == []
    assert {value for _, name, value in tags.attributes if name in ("src", "href")} <= {"data:,", "#results", "#about"}
    assert "@import" not in page
    assert "url(http" not in page
    assert len(page) < 250_000
    ids = [value for _, name, value in tags.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_strings_of_a_run_cannot_break_out(page):
    assert "digits &lt;/script&gt; &amp; co" in page
    assert "ValueError: &lt;b&gt;3&lt;/b&gt;" in page
    assert "<b>3</b>" not in page
    hostile = {"a": "</script><script>alert(1)</script>&amp;<!--"}
    assert "<" not in embed(hostile)
    assert json.loads(embed(hostile)) == hostile


def test_charts_have_the_numbers_of_the_run(page, run):
    data = data_of(page)
    first, second = data["experiments"]
    assert [method["name"] for method in first["methods"]] == ["air", "acil", "air-shared", "centroids"]
    assert [method["name"] for method in second["methods"]] == ["air", "acil"]
    experiment = read_experiments(run)[0]
    acil = first["methods"][1]
    np.testing.assert_allclose(
        acil["phases"]["accuracy"]["mean"], 100 * experiment.method("acil").phases().mean, rtol=1e-5
    )
    np.testing.assert_allclose(
        acil["weight_norms"]["error"],
        experiment.method("acil").per_class("weight_norms", experiment.classes).standard_error,
        rtol=1e-5,
    )
    assert first["methods"][3]["weight_norms"] is None
    assert first["classes"] == list(map(experiment.name_of, experiment.classes.tolist()))
    for seed, cells in acil["confusion"]:
        expected = experiment.method("acil").confusions(experiment.classes)[seed]
        np.testing.assert_array_equal(expand(cells, 100).reshape(10, 10), expected)
    assert [seed for seed, _ in acil["confusion"]] == [1, 2, 3]


def expand(runs, length):
    flat, place = np.zeros(length, np.int64), 0
    for value in runs:
        if value < 0:
            place -= value
        else:
            flat[place] = value
            place += 1
    assert place <= length
    return flat


@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_run_lengths_lose_nothing(density):
    rng = np.random.default_rng(0)
    table = rng.integers(1, 9, (13, 17)) * (rng.random((13, 17)) < density)
    np.testing.assert_array_equal(expand(run_lengths(table), table.size).reshape(table.shape), table)


def test_every_figure_of_the_paper_has_its_place(page):
    charts = set(re.findall(r'data-chart="(\w+)"', page))
    assert charts == {"anytime", "phases", "groups", "class_phases", "confusion", "weight_norms", "test_loss",
                      "train_loss", "stream", "seconds", "memory", "pareto_seconds", "pareto_state",
                      "expected"}  # fmt: skip
    assert 'class="flow"' in page
    script = (files("aircl.report") / "templates" / "report.js").read_text()
    assert all(re.search(rf"\b{chart}: ", script) for chart in charts)


def test_facts_and_problems_are_shown(page):
    for fact in ("1 May 2025, 10:00 UTC", "aircl 0.1.0", "abc1234+", "unfinished", "not yet", "counts\u00a0exp",
                 "stopped after phase 2", "prompts learns from images"):  # fmt: skip
        assert fact in page, fact
    headline = r"air ends at [\d.]+ % accuracy: it is right about [\d.]+ more of 597 test samples than the runner-up, "
    assert re.search(headline + r"air-shared \(95 % interval -[\d.]+ to [\d.]+\), no clear difference\.", page)


def test_published_numbers_are_named_as_such(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.write_about({"name": "table"})
    row = Row("r", "j", "cifar100", "my-net", "long-tail", "descending", "air", 1, 0, 9, "final", "A_last", 0.5, 1.0, 1)
    directory.append([row])
    page = write_report(directory)[0].read_text()
    assert "ours, my-net" in page
    assert "published, ViT-B/16" in page
    assert re.search(r'title="AIR, published, ViT-B/16">79.70', page)
    assert "CODA-Prompt" in page
    assert data_of(page)["experiments"][0]["methods"] == []


def test_a_run_that_has_not_begun_and_one_without_details(run, tmp_path):
    empty = RunDirectory(tmp_path / "empty")
    empty.path.mkdir()
    empty.write_about({"name": None, "config": "?", "versions": 3})
    assert "no results yet" in write_report(empty)[0].read_text()
    bare = RunDirectory(tmp_path / "bare")
    bare.path.mkdir()
    for name in ("run.json", "rows.jsonl"):
        shutil.copy(run.path / name, bare.path)
    first = data_of(write_report(bare.path)[0].read_text())["experiments"][0]
    assert first["stream"] is None
    assert first["classes"] == []
    assert first["methods"][0]["confusion"] == []
    assert first["methods"][0]["phases"]["accuracy"]["mean"]


def test_a_hundred_classes_stay_small(tmp_path):
    rng = np.random.default_rng(0)
    confusion = rng.poisson(0.3, (200, 200)) + np.diag(rng.integers(0, 40, 200))
    assert 20 * len(embed(run_lengths(confusion))) < 2_000_000


def test_tables_can_be_taken_from_the_page(page, run):
    tables = data_of(page)["tables"]
    assert len(tables) == 2
    assert tables[0]["csv"].splitlines()[1].split(",")[4] == "air"
    assert "\\begin{tabular}" in tables[0]["tex"]
    assert tables[1]["md"].startswith("## digits · long-tail · ascending")


def test_long_lists_are_folded_and_facts_closed(page, run, tmp_path):
    directory = RunDirectory(tmp_path)
    directory.write_about({"name": "x", "classes": {"letters": list("abcdefghijkl"), "bits": ["0", "1"]}})
    text = write_report(directory)[0].read_text()
    assert re.search(r"<dd><details><summary>12 items</summary>a, b, c", text)
    assert "<dd>0, 1</dd>" in text
    assert re.search(r'<details id="facts">\s*<summary><h2 id="about">', page)


def test_ranks_where_there_are_enough_streams(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.write_about({"name": "many"})
    for n in range(6):
        directory.append(
            Row("r", f"{m}{n}", f"data{n}", "net", "cil", "", m, 1, 0, 9, "final", "balanced_A_last", v, 1.0)
            for m, v in (("air", 0.9), ("acil", 0.7), ("ncm", 0.8))
        )
    page = write_report(directory)[0].read_text()
    assert 'data-chart="ranks"' in page
    assert data_of(page)["ranks"]["methods"] == ["air", "ncm", "acil"]
