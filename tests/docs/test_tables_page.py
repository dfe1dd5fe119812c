"""The commands of the page about the paper's tables are valid, and the operations are those that are counted."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from aircl.backbones.catalogue import split_options
from aircl.benchmark import plan, preset_config
from aircl.methods import list_methods

TEXT = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
COLUMNS = ("features", "air", "l2p", "coda-prompt", "dap")


def test_the_commands_name_what_there_is(blocks):
    commands = [shlex.split(text) for language, text in blocks("tables.md") if language == "sh"]
    assert len(commands) == 2
    for number, words in enumerate(commands, 1):
        given = dict(pairwise(words))
        assert given["--preset"] == f"table{number}"
        assert preset_config(given["--preset"], given["--dataset"], given["--backbone"])
        assert set(given["--methods"].split(",")) <= set(list_methods())
    bare, options = split_options(dict(pairwise(commands[0]))["--backbone"])
    assert (bare, options) == ("checkpoint:vit_b16.safetensors", {"mean": (0.5,) * 3, "std": (0.5,) * 3})


@pytest.mark.parametrize("row", re.findall(r"^\| (\d), `([\w-]+)` \| (.*) \|$", TEXT, re.MULTILINE), ids=str)
def test_operations_are_those_that_are_counted(row, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.delenv("AIRCL_DATA", raising=False)
    monkeypatch.setattr(plan, "SECONDS", 0.001)
    table, dataset, cells = row
    told = dict(zip(COLUMNS, cells.split("|"), strict=True))
    methods = tuple(name for name in COLUMNS[1:] if told[name].strip())
    config = preset_config(f"table{table}", dataset, "checkpoint:none.pth").changed(methods=methods)
    for task in plan.make_plan(config).tasks:
        petaflops = (task.network_flops + task.other_flops) / 1e15
        (value,) = re.findall(r"([\d.]+) PFLOP", told[task.what])
        decimals = len(value.partition(".")[2])
        assert float(value) == pytest.approx(petaflops, abs=0.5001 * 10**-decimals), task.what
        if task.nbytes:
            assert f"{task.nbytes / 1e6:.0f} MB" in told["features"]
