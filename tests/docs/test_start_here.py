"""The page that a newcomer reads first shows what a newcomer gets."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aircl.cli import app

# Columns of the benchmark's table that are those of the machine.
VARYING = ("learning s", "predicting s")


def without_varying(text):
    """Return text in which the values of columns that vary are a tilde, and runs of spaces one space."""
    lines, places = [], []
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if VARYING[0] in cells:
            places = [cells.index(name) for name in VARYING]
        elif places and len(cells) > max(places):
            cells = ["~" if place in places else cell for place, cell in enumerate(cells)]
        lines.append(" ".join(cells) if places and "──" not in line else line)
    return [re.sub("─+", "─", line) for line in lines]


def test_the_page_shows_what_a_newcomer_gets(blocks, printed, workplace):
    page, variables, checked = blocks("index.md"), {}, 0
    for (language, text), (following, shown) in zip(page, [*page[1:], ("", "")], strict=True):
        if language == "python":
            output = printed(text, "index.md", variables)
            assert output == (shown if following == "text" else "")
            checked += 1
        elif language == "console":
            command, _, shown = text.partition("\n")
            result = CliRunner().invoke(app, shlex.split(command.removeprefix("$ aircl ")))
            assert result.exit_code == 0, result.output
            assert without_varying(result.output) == without_varying(shown)
            checked += 1
    assert checked == 7
    assert (workplace / "runs" / "first" / "report.html").is_file()
    (_, reading), (_, shown) = blocks("files.md")  # which goes on with the rows of this run
    assert printed(reading, "files.md") == shown


def test_other_snippets_print_what_is_shown(blocks, printed, workplace):
    pytest.importorskip("torch", reason="torch is not installed")
    page = blocks("choose.md")
    for (language, text), (following, shown) in pairwise(page):
        if language == "python":
            assert following == "text"
            assert printed(text, "choose.md") == shown


def test_the_commands_of_the_page_are_targets(blocks):
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^make (\w+)", "".join(text for _, text in blocks("index.md")), re.MULTILINE)
    assert commands == ["run", "test"]
    for target in commands:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
