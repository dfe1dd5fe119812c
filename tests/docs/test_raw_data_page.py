"""The page about texts and images shows what its commands print, but for times."""

from __future__ import annotations

import shlex

import pytest
from typer.testing import CliRunner

from aircl.cli import app


def test_the_page_shows_what_is_printed(blocks, printed, as_shown, workplace):
    pytest.importorskip("wordllama")
    page, commands = blocks("raw-data.md"), 0
    for (language, text), (following, shown) in zip(page, [*page[1:], ("", "")], strict=True):
        if language == "python":
            assert printed(text, "raw-data.md") == (shown if following == "text" else "")
        elif language == "console":
            command, _, shown = text.partition("\n")
            command, _, lines = command.removeprefix("$ aircl ").partition(" | head -")
            result = CliRunner().invoke(app, shlex.split(command))
            assert result.exit_code == (1 if shown.startswith("Error") else 0), result.output
            assert as_shown(result.output)[: int(lines) if lines else None] == as_shown(shown), command
            commands += 1
    assert commands == sum(text.count("$ aircl ") for _, text in page) > 15
