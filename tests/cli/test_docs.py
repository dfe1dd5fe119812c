"""Every command of docs/command-line.md runs and ends as the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_the_page_runs_as_it_stands(tmp_path, monkeypatch, run):
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(script, str(PAGE), "exec"), {})
    commands = re.findall(r"```console\n\$ aircl ([^|;\n]*)(.*?)```", text, re.DOTALL)
    assert len(commands) > 10
    for command, shown in commands:
        result = run(*shlex.split(command), code=1 if "\nError: " in shown else 0)
        error = re.search(r"^Error: .*$", shown, re.MULTILINE)
        assert error is None or result.stderr == error[0] + "\n"
