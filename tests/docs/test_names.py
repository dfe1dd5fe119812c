"""Scenarios, commands, datasets and backbones that there are stand on their pages, with their options."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.main import get_command

from aircl.backbones import list_backbones
from aircl.cli import app
from aircl.data import list_datasets
from aircl.scenarios import list_scenarios

DOCS = Path(__file__).parents[2] / "docs"
STREAMS = (DOCS / "streams.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("info", list_scenarios(), ids=lambda info: info.name)
def test_scenarios_have_the_options_of_the_page(info):
    (row,) = re.findall(rf"^\| `{info.name}` \|.*\| (.*) \|$", STREAMS, re.MULTILINE)
    told = dict(re.findall(r"`(\w+)=([^`]*)`", row))
    assert {k: v if isinstance(info.options[k], str) else json.loads(v) for k, v in told.items()} == info.options


@pytest.mark.parametrize("info", [*list_datasets(), *list_backbones()], ids=lambda info: info.name)
def test_datasets_and_backbones_are_on_the_page(info):
    assert f"`{info.name}`" in STREAMS


def test_every_command_is_on_the_page():
    table = (DOCS / "command-line.md").read_text(encoding="utf-8").partition("## All commands")[2]
    first = "\n".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    assert set(re.findall(r"`([\w-]+)`", first)) == set(get_command(app).commands)
