from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace

import pytest

from aircl.benchmark.results import Row
from aircl.report.estimates import Estimate
from aircl.report.formats import escape_latex, to_csv, to_latex, to_markdown
from aircl.report.reading import read_experiments
from aircl.report.tables import Cell, compare, mark


def final(method, seed, metric, value, dataset="cifar100", **values):
    return Row("run", f"{method}-{seed}", dataset, "some-net", "long-tail", "descending", method, seed, 0, 100, "final",
               metric, value, 2.0 * seed, 10**8, **values)  # fmt: skip


@pytest.fixture
def experiment():
    rows = [
        final("air", 1, "A_last", 0.50), final("air", 2, "A_last", 0.54),
        final("air", 1, "balanced_A_last", 0.60), final("air", 2, "balanced_A_last", 0.64),
        final("air", 1, "forgetting", 0.1), final("air", 2, "forgetting", 0.1),
        final("acil", 1, "A_last", 0.40, gamma=1000.0), final("acil", 1, "forgetting", 0.05),
        final("x_y|z", 1, "A_last", 0.30),
    ]  # fmt: skip
    failed = final("bad", 1, "", None, status="failed", reason="50 % of _ & more")
    return read_experiments([*rows, failed])[0]


def cells(comparison, key):
    return {line.method.name: line.cells[key] for line in comparison.lines if key in line.cells}


def test_numbers_by_hand(experiment):
    last = cells(compare(experiment), "A_last")
    assert last["air"].value == Estimate(pytest.approx(52.0), pytest.approx(4 / math.sqrt(2) / math.sqrt(2)), 2)
    assert (last["air"].text, last["air"].error) == ("52.00", "2.00")
    assert (last["acil"].text, last["acil"].error) == ("40.00", "")
    assert "bad" not in last


def test_balanced_where_there_is_such_a_thing(experiment):
    balanced = compare(experiment, balanced=True)
    assert cells(balanced, "A_last")["air"].text == "62.00"
    assert "acil" not in cells(balanced, "A_last")
    assert cells(balanced, "forgetting")["acil"].text == "5.00"


def test_the_best_two_are_marked_high_or_low(experiment):
    comparison = compare(experiment)
    assert {name: cell.place for name, cell in cells(comparison, "A_last").items()} == {"air": 1, "acil": 2, "x_y|z": 0}
    assert {name: cell.place for name, cell in cells(comparison, "forgetting").items()} == {"air": 0, "acil": 0}
    assert {name: cell.place for name, cell in cells(comparison, "gamma").items()} == {"acil": 0}


def test_what_looks_the_same_is_as_good():
    texts = {"a": "72.33", "b": "72.33", "c": "1,072.00", "d": "60.00"}
    shown = {name: Cell(Estimate(0.0, None, 1), text, "") for name, text in texts.items()}
    places = {name: cell.place for name, cell in mark(shown, "high").items()}
    assert places == {"a": 2, "b": 2, "c": 1, "d": 0}
    places = {name: cell.place for name, cell in mark(shown, "low").items()}
    assert places == {"a": 2, "b": 2, "c": 0, "d": 1}
    assert mark({"a": shown["a"]}, "high")["a"].place == 0  # best of one is no news


def test_half_a_stream_is_not_compared():
    unfinished = replace(final("air", 1, "accuracy", 0.5), point="phase", phase=1)
    comparison = compare(read_experiments([unfinished, final("acil", 1, "A_last", 0.4)])[0])
    assert comparison.lines[0].cells == {}
    assert comparison.lines[0].note == "unfinished: stopped after phase 1"
    assert cells(comparison, "seconds")["acil"].place == 0
    assert compare(read_experiments([unfinished])[0]).columns == ()


def test_columns_without_any_value_are_left_out(experiment):
    assert [column.key for column in compare(experiment).columns] == [
        "A_last", "forgetting", "seconds", "state_bytes", "kept", "gamma",
    ]  # fmt: skip


def test_published_numbers_stand_beside_ours(experiment):
    comparison = compare(experiment)
    by_name = {line.method.name: line.published[0] for line in comparison.lines}
    assert by_name["air"].values["A_last"].mean == 79.70
    assert by_name["acil"].name == "ACIL/RanPAC"
    assert by_name["bad"] is by_name["x_y|z"] is None
    assert compare(read_experiments([final("air", 1, "A_last", 0.5, dataset="digits")])[0]).published == ()


def test_markdown(experiment):
    text = to_markdown([compare(experiment)])
    lines = text.splitlines()
    assert lines[0] == "## cifar100 · long-tail · descending · some-net, per sample"
    header, _, air, acil, *_ = [line for line in lines if line.startswith("|")]
    assert header.startswith(r"| method | seeds | A\_last (%) | forgetting (%) | learning (s) | state (MB) |")
    assert header.endswith(r"| A\_avg (published, ViT-B/16) | A\_last (published, ViT-B/16) |")
    assert air.startswith("| air | 2 | **52.00** ± 2.00 | 10.00 ± 0.00 |")
    assert air.endswith("| 89.43 ± 0.02 | 79.70 ± 0.06 |")
    assert acil.startswith("| acil | 1 | <u>40.00</u> | 5.00 |")
    assert len({line.replace("\\|", "").count("|") for line in lines if line.startswith("|")}) == 1
    assert r"| x\_y\|z |" in text
    assert "Ours: some-net. Published, ViT-B/16: table 1 of the paper," in text
    assert "- bad: failed: 50 % of \\_ & more" in text


def test_csv_has_everything_once(experiment):
    rows = list(csv.DictReader(io.StringIO(to_csv([compare(experiment), compare(experiment, balanced=True)]))))
    assert [row["method"] for row in rows] == ["air", "acil", "x_y|z", "bad"]
    air, acil, _, bad = rows
    assert (air["A_last"], air["A_last_se"], air["balanced_A_last"]) == ("52", "2", "62")
    assert (air["published_backbone"], air["published_A_last"]) == ("ViT-B/16", "79.7")
    assert (acil["A_last_se"], acil["balanced_A_last"], acil["gamma"]) == ("", "", "1000")
    assert bad["note"] == "failed: 50 % of _ & more"
    assert bad["A_last"] == ""


def test_latex(experiment):
    text = to_latex([compare(experiment)])
    assert r"\usepackage{booktabs}" in text
    assert text.count("{") == text.count("}")
    for command in ("toprule", "midrule", "bottomrule"):
        assert text.count(f"\\{command}") == 1
    assert r"air & 2 & \textbf{52.00} {\tiny$\pm$2.00} & 10.00" in text
    assert r"acil & 1 & \underline{40.00} & 5.00" in text
    assert r"79.70 $\pm$ 0.06 \\" in text
    assert r"x\_y|z &" in text
    (shape,) = re.findall(r"\\begin\{tabular\}\{(l r*|lr+)\}", text)
    rows = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert {line.count(" & ") + 1 for line in rows} == {len(shape)}


def test_latex_specials():
    assert escape_latex(r"\ & % $ # _ { } ~ ^") == (
        r"\textbackslash{} \& \% \$ \# \_ \{ \} \textasciitilde{} \textasciicircum{}"
    )
