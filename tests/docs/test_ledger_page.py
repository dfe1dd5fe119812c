"""The page about ledgers shows what its commands print, but for times."""

from __future__ import annotations

import shlex

import pytest
from typer.testing import CliRunner

from aircl.cli import app


def test_the_page_shows_what_is_printed(blocks, printed, as_shown, workplace, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    page, commands = blocks("ledger.md"), 0
    for (language, text), (following, shown) in zip(page, [*page[1:], ("", "")], strict=True):
        if language == "python":
            assert printed(text, "ledger.md") == (shown if following == "text" else "")
        elif language == "console":
            command, _, shown = text.partition("\n")
            result = CliRunner().invoke(app, shlex.split(command.removeprefix("$ aircl ")))
            assert result.exit_code == (1 if shown.startswith("Error") else 0), result.output
            assert as_shown(result.output) == as_shown(shown), command  # as on a terminal
            commands += 1
    assert commands == sum(text.count("$ aircl ") for _, text in page) > 15
