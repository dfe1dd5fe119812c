from __future__ import annotations

import json

import pytest

WHAT = ["datasets", "scenarios", "backbones", "methods"]


@pytest.mark.parametrize("what", WHAT)
def test_names_and_descriptions(what, run):
    entries = json.loads(run("list", what, "--json").stdout)[what]
    assert entries
    table = run("list", what).stdout
    assert table.split()[0] == "name"
    for entry in entries:
        assert entry["name"] in table
        assert entry["description"] in table


def test_datasets_that_are_there_and_that_are_not(run, tmp_path, monkeypatch):
    monkeypatch.delenv("AIRCL_DATA", raising=False)

    def row(*args):
        (line,) = (line for line in run("list", "datasets", *args).stdout.splitlines() if "imagenet-r" in line)
        return line

    assert row().endswith("no: a data directory: --data DIR or AIRCL_DATA")
    assert row("--data", tmp_path).endswith(f"no: imagenet-r.tar or imagenet-r/ in {tmp_path}")
    (tmp_path / "imagenet-r").mkdir()
    assert row("--data", tmp_path).endswith("yes")
    monkeypatch.setenv("AIRCL_DATA", str(tmp_path))
    assert row().endswith("yes")
    (entry,) = (
        entry
        for entry in json.loads(run("list", "datasets", "--json").stdout)["datasets"]
        if entry["name"] == "hf:NAME"
    )
    assert set(entry) == {"name", "kind", "description", "needs", "available", "missing"}


def test_a_wrong_word_is_wrong_usage(run):
    message = run("list", "data", code=2).stderr
    assert all(word in message for word in WHAT)
    assert run("list", code=2).stdout == ""


def test_methods_have_other_names_that_are_understood(run):
    entries = {entry["name"]: entry for entry in json.loads(run("list", "methods", "--json").stdout)["methods"]}
    assert entries["ncm"]["aliases"] == ["simplecil"]
    assert entries["acil"]["aliases"] == ["afl"]
    assert entries["air"]["aliases"] == []
    assert "simplecil" in run("list", "methods").stdout
