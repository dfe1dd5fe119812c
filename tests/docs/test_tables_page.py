"""The commands of the page about the paper's tables are valid, and the operations are those that are counted."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from aircl.backbones.catalogue import split_options
from aircl.benchmark import plan, preset_config
from aircl.cli.run import parse_method_options
from aircl.methods import list_methods, resolve_options
from aircl.report.published import read_published
from aircl.scenarios import PRESETS

TEXT = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
COLUMNS = ("features", "air", "l2p", "coda-prompt", "dap", "mvp-r", "all", "hours")


@pytest.fixture
def commands(blocks):
    """The options of the commands by table, those of the paper's methods first."""
    lines = "".join(
        text.replace("\\\n", " ") for language, text in blocks("tables.md") if language == "sh"
    ).splitlines()
    return {table: [shlex.split(line) for line in lines if f"table{table} " in line] for table in (1, 2)}


def test_the_commands_name_what_there_is(commands):
    assert [len(found) for found in commands.values()] == [1, 2]
    for words in commands[1] + commands[2]:
        given = dict(pairwise(words))
        assert preset_config(given["--preset"], given["--dataset"], given["--backbone"])
        assert set(given["--methods"].split(",")) <= set(list_methods())
        options = [value for name, value in pairwise(words) if name == "--option"]
        for method, values in parse_method_options(options).items():
            assert method in given["--methods"].split(",")
            assert values.items() <= resolve_options(method, values, online=True).items()
    bare, options = split_options(dict(pairwise(commands[1][0]))["--backbone"])
    assert (bare, options) == ("checkpoint:vit_b16.safetensors", {"mean": (0.5,) * 3, "std": (0.5,) * 3})


@pytest.mark.parametrize(("table", "memories"), [(1, [("0", "20/cls")]), (2, [("0", "2000"), ("500",)])])
def test_the_commands_have_all_rows_of_the_paper(commands, table, memories):
    for words, kept in zip(commands[table], memories, strict=True):
        given = dict(pairwise(words))
        ours = {name.replace("-", "") for name in given["--methods"].split(",")}
        columns = {preset.column for preset in PRESETS.values() if preset.table == table}
        rows = [row for column, row in read_published() if column in columns and row.memory in kept]
        assert ours == {row.name.split("/")[0].lower().replace("-", "") for row in rows}


@pytest.mark.parametrize("row", re.findall(r"^\| (\d), `([\w-]+)` \| (.*) \|$", TEXT, re.MULTILINE), ids=str)
def test_operations_are_those_that_are_counted(row, commands, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.delenv("AIRCL_DATA", raising=False)
    monkeypatch.setattr(plan, "SECONDS", 0.001)
    table, dataset, cells = row
    told = {name: cell.strip() for name, cell in zip(COLUMNS, cells.split("|"), strict=True)}
    methods = tuple(dict(pairwise(commands[int(table)][0]))["--methods"].split(","))
    config = preset_config(f"table{table}", dataset, "checkpoint:none.pth").changed(methods=methods)
    tasks = plan.make_plan(config).tasks
    counted = {task.what: (task.network_flops + task.other_flops) / 1e15 for task in tasks}
    counted["all"] = sum(counted.values())
    counted["hours"] = counted["all"] * 1e15 / 1e13 / 3600
    assert {name for name in COLUMNS if told[name]} == set(COLUMNS) & set(counted)
    for name in filter(told.get, COLUMNS):
        value = re.match(r"[\d.]+", told[name])[0]
        decimals = len(value.partition(".")[2])
        assert float(value) == pytest.approx(counted[name], abs=0.5001 * 10**-decimals), name
    assert told["features"].endswith(f"({tasks[0].nbytes / 1e6:.0f} MB)")
