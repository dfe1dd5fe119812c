"""Runs beside each other, and numbers of others beside ours."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
from aircl.cli import app
from aircl.report import compare, contrast, read_experiments, to_csv, to_latex, to_markdown, write_report
from aircl.report.side_by_side import find_changes, join_runs, run_names
from aircl.storage.errors import OutputError

STREAM = Experiment(
    "digits", "identity", "long-tail", {"phases": 5, "counts": "exp", "ratio": 0.025}, methods=("acil", "ncm"),
    seeds=(1, 2, 3), buffer=100, gamma=1.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return two runs, of which the second has a wider buffer, and one stream more."""
    place, cache = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("cache")
    wide, more = replace(STREAM, buffer=400), replace(STREAM, scenario="cil", options={"phases": 2}, methods=("ncm",))
    configs = {"narrow": (STREAM,), "wide": (wide, more)}
    for name, experiments in configs.items():
        Runner(RunConfig(name, experiments), RunDirectory(place / name), cache=cache).run()
    return [RunDirectory(place / name) for name in configs]


def test_methods_of_both_runs_are_one_experiment(runs):
    joint, single = join_runs(runs)
    assert [m.name for m in joint.methods] == ["acil @ narrow", "acil @ wide", "ncm @ narrow", "ncm @ wide"]
    assert len({method.style for method in joint.methods}) == 4
    assert single.remarks[-1] == "Only in wide."
    before = read_experiments(runs[0])[0].method("acil")
    assert joint.method("acil @ narrow").final("A_last") == before.final("A_last")


def test_differences_are_paired_over_the_same_test_samples(runs):
    changes = {(change.method, change.metric): change for change in find_changes(runs)}
    change = changes["acil", "A_last"]
    assert change.run == "wide"
    joint = join_runs(runs)[0]
    expected = contrast(joint.method("acil @ wide"), joint.method("acil @ narrow"), "A_last")
    assert change.contrast == expected
    assert 100 * expected.difference == pytest.approx(100 * (change.value.mean - change.first.mean))
    assert change.text.startswith(f"{100 * expected.difference:+.2f} (")
    same = changes["ncm", "A_last"]  # which has no buffer
    assert same.text == "≈+0.00 (+0.00 to +0.00)"
    assert changes["acil", "forgetting"].contrast is None


def test_a_run_is_compared_with_the_first_that_has_the_method_on_its_stream(runs, tmp_path):
    narrow, wide = runs
    copy = RunDirectory(shutil.copytree(wide.path, tmp_path / "wide"))
    changes = find_changes([narrow, wide, copy])  # the first has no such stream
    again = [change for change in changes if change.experiment.scenario == "cil"]
    assert {change.run for change in again} == {str(copy.path)}
    assert {change.contrast.difference for change in again if change.contrast} == {0}


def test_names_are_told_apart(runs, tmp_path):
    assert run_names(runs) == ["narrow", "wide"]
    assert run_names([runs[0], RunDirectory(runs[0].path)]) == [str(runs[0].path)] * 2


def test_a_page_of_both(runs, tmp_path):
    paths = write_report(runs, tmp_path / "both.html")
    assert [path.name for path in paths] == ["both.html", "both.md", "both.csv", "both.tex"]
    page, markdown, table, _ = (path.read_text() for path in paths)
    assert "Against the first run" in page
    assert 'data-method="acil @ wide"' in page
    assert "| acil | wide |" in markdown
    assert {row["method"] for row in csv.DictReader(table.splitlines())} >= {"acil @ narrow", "acil @ wide"}


def test_two_backbones_are_both_named(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("aircl.report.side_by_side.read_experiments", lambda run: [
        replace(read_experiments(run)[0], backbone="one" if run is runs[0] else "two")
    ])  # fmt: skip
    (joint,) = join_runs(runs)
    assert joint.backbone == "one / two"


def write(path, text):
    path.write_text(text)
    return path


def test_numbers_of_a_file_stand_beside_ours(runs, tmp_path):
    text = "method,A_last,A_last_se,dataset\nACIL,91.5,0.4,digits\nTheirs,95.0,,\nncm,50,,cifar100\n"
    file = write(tmp_path / "mine.csv", text)
    comparison = compare(read_experiments(runs[0])[0], baselines=[file])
    (source,) = comparison.published
    assert (source.label, source.metrics) == ("mine.csv", ("A_last",))
    acil, ncm, theirs = (line.published[0] for line in comparison.lines)
    assert acil.values["A_last"].mean == 91.5
    assert acil.values["A_last"].standard_error == 0.4
    assert ncm is None  # that row is of other data
    assert theirs.values["A_last"].mean == 95.0  # nobody ran it here, and it is not left out
    assert "| Theirs | - |" in to_markdown([comparison])
    assert "Theirs & - &" in to_latex([comparison])
    assert [row.name for row in source.methods] == ["ACIL", "Theirs"]
    rows = list(csv.DictReader(to_csv([comparison]).splitlines()))
    assert [(row["method"], row["mine.csv:A_last"]) for row in rows] == [
        ("acil", "91.5"),
        ("ncm", ""),
        ("Theirs", "95"),
    ]
    page = write_report(runs[0], tmp_path / "page.html", baselines=[file])[0].read_text()
    assert '<tr data-method="Theirs">' in page
    assert "mine.csv" in page
    assert compare(join_runs(runs)[0], baselines=[file]).lines[1].published[0].name == "ACIL"


def test_names_of_others_do_no_harm(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path / "=[red]\x1b.csv", "method,A_last\nacil,90\nx\x1b[2J,80\n")
    comparison = compare(read_experiments(runs[0])[0], baselines=[file])
    assert "'=[red]\x1b.csv:A_last" in to_csv([comparison]).partition("\n")[0]
    assert "\x1b" not in to_markdown([comparison])
    assert "\x1b" not in to_latex([comparison])
    shown = CliRunner().invoke(app, ["report", str(runs[0].path), "--baseline", file.name, "-o", "page.html"])
    assert shown.exit_code == 0, shown.output
    assert "=[red]\\x1b.csv" in shown.stdout
    assert "x\\x1b[2J" in shown.stdout
    assert "80.00" in shown.stdout


def test_a_baseline_is_not_replaced(runs, tmp_path):
    file = write(tmp_path / "page.csv", "dataset,backbone,scenario,order,method,A_last\n,,,,acil,90\n")
    with pytest.raises(OutputError, match="would replace the data it is made from"):
        write_report(runs[0], tmp_path / "page.html", baselines=[file])
    assert [path.name for path in tmp_path.iterdir()] == ["page.csv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("method,accuracy\nair,3\n", "has the columns method, accuracy. It should have method, and metrics"),
        ("A_last\n3\n", "It should have method"),
        ("method\nair\n", "some of A_auc, A_avg, A_last"),
        ("method,A_last\nair,much\n", "line 2: 'much' is not a number. Metrics are, in per cent"),
        ("", "has the columns none"),
        ("method,A_last\nair,nan\n", "line 2: 'nan' is not a number"),
        ("method,A_last\nair,1_0\n", "line 2: '1_0' is not a number"),
        ("method,A_last\nair,1e999\n", "line 2: '1e999' is not a number"),
        ("method,A_last\n,5\n", "line 2: it has no method"),
        ("method,A_last\nair,0.91\nacil,1\n", "seem to be shares. Write them in per cent: 87.5, not 0.875"),
        ("method,A_last\nair,5,6\n", "line 2: it has no method, or more cells than the header"),
    ],
)
def test_a_file_that_is_wrong_says_how(text, message, runs, tmp_path):
    with pytest.raises(ValueError, match=message):
        compare(read_experiments(runs[0])[0], baselines=[write(tmp_path / "wrong.csv", text)])
    with pytest.raises(ValueError, match="cannot be read as a CSV file"):
        compare(read_experiments(runs[0])[0], baselines=[tmp_path / "absent.csv"])
