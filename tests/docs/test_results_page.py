"""The script behind docs/results.md: its runs can be made, and its tables come from rows as they are now."""

from __future__ import annotations

import dataclasses
import importlib
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
from aircl.data import Dataset, Split
from aircl.data.samples import ArrayInputs
from aircl.methods import METHODS
from aircl.methods.registry import load_methods
from aircl.report import read_experiments

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def record():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("record")


@pytest.fixture(scope="module")
def kept(record, tmp_path_factory):
    """A small run that stands for table 1 of the page, and what is kept of it."""
    folder = tmp_path_factory.mktemp("record")
    tail = Experiment(
        "digits", "identity", "long-tail", {"phases": 2, "counts": "exp", "ratio": 0.02},
        orders=("ascending", "descending", "shuffled"), methods=("air", "acil"), seeds=(1, 2), buffer=50,
    )  # fmt: skip
    run = RunDirectory(folder / "runs" / "table1" / "all-1")
    Runner(RunConfig("table1", (tail,)), run).run()
    rows = importlib.import_module("record_rows")
    rows.keep(folder / "rows" / "table1.csv", rows.lines_of(run))
    return record.Record(folder / "rows", folder / "runs")


def cells(table):
    """Return the rows of a table of a page, by their first cell."""
    lines = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    header = [cell.strip() for cell in lines[0]]
    return {line[0].strip(): dict(zip(header[1:], (c.strip() for c in line[1:]), strict=True)) for line in lines[2:]}


def written(record, kept, folder):
    """Write a page of all tables and figures, and return the tables by name."""
    page = folder / "page.md"
    page.write_text("".join(f"<!-- {name} -->\nas it was\n<!-- end -->\n" for name in record.TABLES), encoding="utf-8")
    record.write(kept, page)
    return dict(re.findall(r"<!-- ([\w-]+) -->\n(.*?)<!-- end -->", page.read_text(encoding="utf-8"), re.DOTALL))


def test_tables_tell_what_was_measured(record, kept, tmp_path):
    tables = written(record, kept, tmp_path)
    assert {name for name, table in tables.items() if "as it was" not in table} == {"long-tail", "long-tail-groups"}
    (directory,) = kept.pieces("table1")
    (air,) = (m for m in read_experiments(directory)[1].methods if m.name == "air")
    accuracy, state = air.final("A_last"), air.cost("state_bytes")
    text = f"{100 * accuracy.mean:.2f} ± {100 * accuracy.standard_error:.2f}"
    assert cells(tables["long-tail"])["air"]["A_last descending"] == text
    own = cells(tables["long-tail-groups"])["air"]
    assert own["state MB"] == f"{state.mean / 1e6:,.3g}"
    assert own["A_last"] == text
    assert f"Revision `{directory.about['revision'] or ''}`." in tables["long-tail"]
    assert {path.name for path in (tmp_path / "results").iterdir()} == {
        "confusion.svg", "norms-and-loss.svg", "groups.svg", "orders.svg",
    }  # fmt: skip


def test_a_gain_is_the_difference_of_two_methods_seed_by_seed(record, kept):
    from record_tables import gain

    methods = kept.methods("table1", order="ascending")
    finals = [np.array([job.final("tail") for job in methods[name].jobs]) for name in ("air", "acil")]
    points = 100 * (finals[0] - finals[1])
    assert len(points) == 2
    expected = f"{points.mean():+.1f} ± {points.std(ddof=1) / 2**0.5:.1f}"
    assert gain(methods, "air", "acil", "tail") == expected
    one = {**methods, "acil": dataclasses.replace(methods["acil"], jobs=methods["acil"].jobs[1:])}
    assert gain(one, "air", "acil", "tail") == f"{points[1]:+.1f}"
    assert gain(methods, "air", "er", "tail") == gain({}, "air", "acil", "tail") == "-"


def test_the_page_is_the_same_without_the_directories_of_runs(record, kept, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    away = record.Record(kept.rows, tmp_path / "elsewhere")
    assert written(record, away, tmp_path) == written(record, kept, tmp_path)
    assert away.experiments("table1")[1].method("air").details == []


def test_what_is_kept_is_not_run_again(record, kept, monkeypatch):
    import record_runs
    from record_rows import forget, read

    arguments = (
        "--preset table1 --gamma grid --seeds 2 --methods air,acil,er --option er.memory=9 --option air.store=shared"
    )
    monkeypatch.setitem(record.RUNS, "table1", arguments)
    common = "--preset table1 --gamma grid --seeds"
    orders = ("ascending", "descending", "shuffled")
    left = [
        (f"{common} {seed}, --methods er --orders {order} --option er.memory=9", f"{order}-{seed}")
        for seed in (1, 2)
        for order in orders
    ]
    assert sorted(record_runs.missing(kept, "table1")) == sorted(left)
    assert [place for _, place in record_runs.missing(kept, "table1", 1)] == [f"{order}-1" for order in orders]
    path, text = kept.rows / "table1.csv", (kept.rows / "table1.csv").read_text(encoding="utf-8")
    try:
        forget(path, ["air"])
        assert {line["method"] for line in read(path).values()} == {"acil"}
        words = [words for words, _ in record_runs.missing(kept, "table1")]
        assert all("--methods air,er " in one and "--option air.store=shared" in one for one in words)
    finally:
        path.write_text(text, encoding="utf-8")


def test_on_images_every_method_is_a_piece(record, tmp_path):
    import record_runs

    none = record.Record(tmp_path / "rows", tmp_path / "runs")
    pieces = list(record_runs.missing(none, "prompts"))
    assert [place for _, place in pieces] == ["descending-1"] * 7 + ["ascending-1"] * 7
    for (words, _), method in zip(pieces, record_runs.PROMPTED * 2, strict=True):
        assert f"--methods {method} " in words
        assert words.endswith(f"--option {method}.epochs=1")


def test_a_run_stopped_or_not_is_kept_piece_by_piece(record, tmp_path, monkeypatch):
    import record_runs
    from record_rows import read

    arguments = "--dataset digits --backbone identity --scenario cil,phases=2 --seeds 2 --methods ncm,slda"
    monkeypatch.setitem(record.RUNS, "table1", arguments)
    own = record.Record(tmp_path / "rows", tmp_path / "runs")
    record_runs.run(own, "table1", str(tmp_path))
    lines = read(own.rows / "table1.csv")
    assert sorted((line["method"], line["seed"], line["status"]) for line in lines.values()) == [
        ("ncm", "1", "ok"), ("ncm", "2", "ok"), ("slda", "1", "ok"), ("slda", "2", "ok"),
    ]  # fmt: skip
    assert list(record_runs.missing(own, "table1")) == []
    monkeypatch.setattr(record_runs.subprocess, "run", lambda *_, **__: pytest.fail("it was run again"))
    record_runs.run(own, "table1", str(tmp_path))


def test_every_run_names_methods_that_there_are(record):
    load_methods()
    for arguments in record.RUNS.values():
        words = shlex.split(arguments)
        named = words[words.index("--methods") + 1].split(",") if "--methods" in words else []
        assert set(named) <= set(METHODS)


def test_commands_of_the_page_are_those_of_the_runs(record):
    """A reader can make each by `aircl run`: its arguments are shown, with the options that were chosen for it."""
    shown = dict(re.findall(r"<!-- runs ([\w-]+) -->\n\n```sh\n(.*?)\n```\n\n<!-- end -->", PAGE, re.DOTALL))
    assert set(shown) == set(record.GROUPS)
    for group, text in shown.items():
        commands = [shlex.split(line) for line in re.sub(r"\\\n", "", text).splitlines()]
        assert [[word for word in words if word not in ("--data", "DIR")] for words in commands] == [
            ["aircl", "run", *record.command(record.RUNS[name])] for name in record.GROUPS[group]
        ]


def test_parts_of_the_dataset_stream_what_table_1_does(record, tmp_path, monkeypatch):
    from aircl.data import load_dataset
    from aircl.scenarios import make_stream

    rng = np.random.default_rng(0)
    names = tuple(f"class{n}" for n in range(20))
    train, test = (
        Split(ArrayInputs(rng.integers(0, 256, (20 * n, 2, 2, 3), np.uint8)), np.tile(np.arange(20), n), "all")
        for n in (120, 7)
    )
    monkeypatch.setattr(record, "load_dataset", lambda *_, **__: Dataset("x", "images", train, test, names))
    tail, small = (load_dataset(f"image-folder:{path.name}", root=tmp_path) for path in record.subset(tmp_path))
    assert len(tail.test) == 140
    assert np.bincount(small.test.labels).tolist() == [5] * 20
    assert np.bincount(small.train.labels).max() == 100
    assert np.bincount(small.train.labels).min() == 1
    whole = make_stream("long-tail", train.labels, seed=3, phases=10, ratio=0.002, order="shuffled")
    part = make_stream("long-tail", tail.train.labels, seed=3, phases=10, counts="natural", order="shuffled")
    for one, other in zip(whole.phases, part.phases, strict=True):
        pixels = [
            sorted(zip(split.labels[rows].tolist(), split.inputs[rows].reshape(len(rows), -1).tolist(), strict=True))
            for split, rows in ((train, one.train), (tail.train, other.train))
        ]
        assert pixels[0] == pixels[1]
