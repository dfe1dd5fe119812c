from __future__ import annotations

import csv
import json
import shutil

import pytest

from aircl.benchmark.results import Row, RunDirectory


def make_row(method, seed, metric="A_last", value=0.5, **values):
    return Row("run", f"{method}-{seed}", "cifar100", "some-net", "long-tail", "descending", method, seed, 0, 100,
               "final", metric, value, 1.5, 2 * 10**8, **values)  # fmt: skip


@pytest.fixture
def directory(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.write_about({"name": "small", "started": "2025-05-01T10:00:00+00:00"})
    run.append([make_row("air", 1, value=0.5), make_row("air", 2, value=0.6), make_row("acil", 1, value=0.4)])
    run.append([make_row("air", seed, "balanced_A_last", 0.25) for seed in (1, 2)])
    run.append([make_row("bad", 1, "", None, status="failed", reason="KeyError: [x]")])
    return run.path


def test_tables_on_stdout_the_page_in_a_file(run, directory):
    result = run("report", directory)
    assert result.stderr == f"Report: {directory}/report.html\n"
    assert result.stdout.startswith("cifar100 · long-tail · descending · some-net (per sample)\n")
    lines = [line.split() for line in result.stdout.splitlines()]
    (air,) = [line for line in lines if line[:1] == ["air"]]
    assert air == ["air", "55.00", "±5.00", "1.50", "200", "0", "89.43", "±", "0.02", "79.70", "±", "0.06"]
    assert "bad: failed: KeyError: [x]" in result.stdout
    assert "ViT-B/16" in result.stdout
    assert "<title>small" in (directory / "report.html").read_text()
    assert (directory / "report.md").read_text().startswith("# small\n")
    assert (directory / "table.tex").exists()
    with (directory / "table.csv").open() as file:
        assert [row["A_last"] for row in csv.DictReader(file)] == ["55", "40", ""]


def test_class_balanced(run, directory):
    out = run("report", directory, "--balanced").stdout
    assert "(class-balanced)" in out
    assert "25.00 ±0.00" in out
    assert "55.00" not in out


def test_another_place_and_json(run, directory, tmp_path):
    out = tmp_path / "pages"
    out.mkdir()
    result = run("report", directory, "-o", out / "paper.html", "--json")
    shown = json.loads(result.stdout)
    assert result.stderr == ""
    assert shown["files"] == [str(out / name) for name in ("paper.html", "paper.md", "paper.csv", "paper.tex")]
    assert sorted(path.name for path in out.iterdir()) == ["paper.csv", "paper.html", "paper.md", "paper.tex"]
    (experiment,) = shown["experiments"]
    assert experiment["order"] == "descending"
    air, acil, bad = experiment["methods"]
    assert air["A_last"] == {"mean": pytest.approx(55), "standard_error": pytest.approx(5)}
    assert air["published"] == {"published, ViT-B/16": {"A_avg": 89.43, "A_last": 79.70}}
    assert acil["seeds"] == 1
    assert bad["note"] == "failed: KeyError: [x]"


def test_a_run_without_results(run, tmp_path):
    RunDirectory(tmp_path).write_about({"name": "new"})
    assert run("report", tmp_path).stdout == "The run has no results yet.\n"


def test_what_is_refused(run, directory, tmp_path):
    assert "no run.json" in run("report", tmp_path, code=1).stderr
    assert "should end in .html" in run("report", directory, "-o", "x.pdf", code=2).stderr
    assert "does not exist" in run("report", directory, "-o", tmp_path / "no" / "x.html", code=1).stderr


def test_a_narrow_terminal_sees_what_matters_most(directory):
    from rich.console import Console
    from rich.measure import Measurement

    from aircl.cli.report import make_table
    from aircl.report import compare, read_experiments

    comparison = compare(read_experiments(directory)[0])
    console = Console(width=1000)

    def titles(width):
        table = make_table(comparison, width)
        assert width is None or Measurement.get(console, console.options, table).maximum <= width
        return [str(column.header).split("\n")[0] for column in table.columns]

    assert titles(None) == ["method", "A_last %", "learning s", "state MB", "kept", "A_avg %", "A_last %"]
    assert titles(60) == ["method", "A_last %", "A_avg %", "A_last %"]
    assert titles(30) == ["method", "A_last %"]


def test_several_runs_and_numbers_of_others(run, directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(directory, tmp_path / "again")
    (tmp_path / "own.csv").write_text("method,A_last\nair,60\n")
    result = run("report", directory, "again", "--baseline", "own.csv")
    assert result.stderr == "Report: comparison.html\n"
    assert "air @ run" in result.stdout
    assert "air @ again" in result.stdout
    assert "own.csv" in result.stdout
    assert "against the first run" in result.stdout
    shown = json.loads(run("report", directory, "again", "--json").stdout)
    assert {"method": "air", "run": "again", "metric": "A_last", "difference": "+0.00"} in shown["differences"]
    assert "cannot be read" in run("report", directory, "--baseline", "absent.csv", code=1).stderr
