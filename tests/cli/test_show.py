from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from aircl.scenarios import PRESETS, SCENARIOS, make_stream

CIFAR = ("--classes", 100, "--per-class", 500)
SMALL = ("--classes", 10, "--per-class", 6)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIRCL_DATA", raising=False)
    return tmp_path


def test_json_is_the_stream_and_nothing_else(run, here):
    shown = json.loads(run("show", "long-tail", *CIFAR, "--counts", "exp", "--order", "ascending", "--json").stdout)
    stream = make_stream("long-tail", np.repeat(np.arange(100), 500), counts="exp", order="ascending")
    assert shown == {
        "total": 8155,
        "left_out": [],
        "phases": [
            {
                "samples": len(phase.train),
                "classes": phase.classes.tolist(),
                "new_classes": phase.new_classes.tolist(),
            }
            for phase in stream.phases
        ],
    }
    assert not list(here.iterdir())


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_every_scenario_can_be_shown(name, run, here):
    extra = {"domain-incremental": ("--domains", 3), "long-tail": ("--ratio", 1)}.get(name, ())
    result = run("show", name, *SMALL, *extra, "--seed", 1)
    assert result.stdout.splitlines()[-1].split()[:3] == ["total", "60", "10"]
    assert result.stderr == f"Drawn in {name}.png\n"
    assert (here / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    again = run("show", name, *SMALL, *extra, "--seed", 1, "--json")
    assert json.loads(again.stdout)["total"] == 60
    assert again.stderr == ""


def test_a_stream_can_be_written_as_for_a_run(run):
    flags = run("show", "long-tail", *CIFAR, "--counts", "exp", "--ratio", "1/50", "--phases", 4, "--seed", 2, "--json")
    written = run("show", "long-tail,counts=exp,ratio=1/50,phases=9,seed=2", *CIFAR, "--phases", 4, "--json")
    assert written.stdout == flags.stdout
    assert "takes no --base" in run("show", "long-tail,base=0.5", *SMALL, code=2).stderr
    assert "'phases' is not of the form" in run("show", "cil,phases", *SMALL, code=2).stderr
    ways = (("domain-incremental", "--domains", 3), ("domain-incremental,domains=3",))
    domains = [run("show", *way, *SMALL, "--json").stdout for way in ways]
    assert domains[0] == domains[1]


def test_the_table_has_a_line_a_phase_and_remarks(run):
    lines = run("show", "si-blurry", "--classes", 13, "--per-class", 1, "--phases", 6, "--seed", 3).stdout.splitlines()
    assert lines[0].split() == ["phase", "samples", "classes", "new"]
    rows = [line.split() for line in lines if line.strip()[:1].isdigit()]
    assert [row[0] for row in rows] == list("123456")
    assert all((row[1] == "0") == (row[-1] == "empty") for row in rows)
    assert any(row[-1] == "empty" for row in rows)
    stream = make_stream("si-blurry", np.arange(13), phases=6, seed=3)
    assert [int(row[1]) for row in rows] == [len(phase.train) for phase in stream.phases]
    assert lines[-1] == f"Left out, as they cannot be dealt evenly: class {stream.dropped_classes[0]}."


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_picture(suffix, run, here):
    result = run("show", "cil", *SMALL, "-o", f"stream{suffix}", "--json")
    assert json.loads(result.stdout)["total"] == 60
    assert result.stderr == f"Drawn in stream{suffix}\n"
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert (here / f"stream{suffix}").read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("long-tail", "--ratio", "1/10", "--counts", "step", "--phases", 2), [30, 5]),
        (("long-tail", "--ratio", 0.1, "--counts", "step", "--phases", 2), [30, 5]),
        (("cil", "--base", 0.5, "--phases", 6), [30, 6, 6, 6, 6, 6]),
        (("blurry-m", "--disjoint", 0, "--phases", 3), [20, 20, 20]),
        (("i-blurry", "--disjoint", 0.5, "--blurry", 0.5, "--phases", 5), [12] * 5),
        (("domain-incremental", "--domains", 4), [15] * 4),
        (("task-incremental", "--order", "natural", "--phases", 5), [12] * 5),
    ],
)
def test_options_reach_the_scenario(options, expected, run):
    phases = json.loads(run("show", *options, *SMALL, "--json").stdout)["phases"]
    assert [phase["samples"] for phase in phases] == expected


def test_faithful(run, monkeypatch):
    pytest.importorskip("torch")
    shown = run("show", "si-blurry", "--faithful", "--blurry", 0, "--seed", 1, *CIFAR, "--json")
    phases = json.loads(shown.stdout)["phases"]
    assert [len(phase["classes"]) for phase in phases] == [13, 6, 20, 44, 17]
    monkeypatch.setitem(sys.modules, "torch", None)
    refused = run("show", "si-blurry", "--faithful", *CIFAR, code=1)
    assert "pip install 'aircl[torch]'" in refused.stderr


def test_presets(run):
    shown = run("show", "--preset", "table1-cifar100-ascending", *CIFAR, "--json")
    assert [phase["samples"] for phase in json.loads(shown.stdout)["phases"]][:3] == [10, 30, 60]
    changed = run("show", "long-tail", "--preset", "table1-cifar100-ascending", *CIFAR, "--counts", "exp", "--json")
    assert json.loads(changed.stdout)["total"] == 8155
    assert all(name in said(run("show", "--preset", "table3", *CIFAR, code=2)) for name in PRESETS)
    assert "is of long-tail, not cil" in said(run("show", "cil", "--preset", "table1-cifar100-shuffled", code=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("cil", *SMALL, "--ratio", "1/5"), "cil takes no --ratio. Its options: --phases, --base, --order, --seed."),
        (("cil", *SMALL, "--domains", 2), "cil takes no --domains"),
        (("si-blury", *SMALL), "Did you mean 'si-blurry'"),
        (("cil", *SMALL, "--phases", 11), "phases=11 is more than 10"),
        (("cil", *SMALL, "--order", "ascending"), "order='ascending' is not known"),
        (("cil", *SMALL, "--order", "upwards"), "'upwards' is not one of"),
        (("long-tail", *SMALL, "--ratio", "1/0"), "neither a number nor a fraction"),
        (("long-tail", *SMALL, "--ratio", 500), "For 1 to 500 give 1/500"),
        (("cil", "--classes", 3), "--classes and --per-class go together"),
        (("cil", *SMALL, "--dataset", "digits"), "not both"),
        (("domain-incremental", *SMALL), "say how many domains there are"),
        (("domain-incremental", "--dataset", "digits", "--domains", 2), "it goes with --classes"),
        (("cil", *SMALL, "-o", "stream.txt"), "should end in one of .png, .svg, .pdf"),
        (SMALL, "name a scenario, or a --preset"),
        (("cil",), "labels of what? Give --dataset NAME, or --classes C and --per-class N"),
    ],
)
def test_wrong_usage(options, message, run, here):
    result = run("show", *options, code=2)
    assert message in said(result)
    assert result.stdout == ""
    assert not list(here.iterdir())


def said(result):
    """Return what is on stderr without the frame around it, in one line."""
    return " ".join(result.stderr.replace("│", " ").split())


def test_a_picture_that_was_not_asked_for_replaces_nothing_else(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    args = ("show", "cil", "--classes", 4, "--per-class", 2, "--phases", 2)
    run(*args), run(*args)
    (tmp_path / "cil.png").write_text("mine")
    assert "cil.png is there already" in run(*args, code=1).stderr
    assert (tmp_path / "cil.png").read_text() == "mine"
    run(*args, "-o", "cil.png")


def test_a_picture_that_cannot_be_written(run):
    assert "cannot write" in run("show", "cil", *SMALL, "-o", "absent/stream.png", code=1).stderr


def test_labels_of_a_dataset(run, monkeypatch):
    train = SimpleNamespace(labels=np.repeat(np.arange(4), [9, 3, 2, 1]), domains=np.arange(15) % 2)
    asked = []

    def open_dataset(name, data):
        asked.append((name, data))
        return SimpleNamespace(train=train, class_names=tuple("abcd"))

    monkeypatch.setattr("aircl.cli.show.open_dataset", open_dataset)
    tail = run("show", "long-tail", "--dataset", "d", "--data", "there", "--counts", "natural", "--phases", 4, "--json")
    assert [phase["samples"] for phase in json.loads(tail.stdout)["phases"]] == [9, 3, 2, 1]
    assert [phase["classes"] for phase in json.loads(tail.stdout)["phases"]] == [["a"], ["b"], ["c"], ["d"]]
    domains = run("show", "domain-incremental", "--dataset", "d", "--json")
    assert [phase["samples"] for phase in json.loads(domains.stdout)["phases"]] == [8, 7]
    assert asked == [("d", "there"), ("d", None)]
    train.domains = None
    assert "choose a dataset that has them" in said(run("show", "domain-incremental", "--dataset", "d", code=2))


def test_an_embedded_dataset(run):
    from aircl.data import load_dataset

    shown = run("show", "long-tail", "--dataset", "digits", "--counts", "natural", "--json")
    assert json.loads(shown.stdout)["total"] == len(load_dataset("digits").train)
    assert "there is no dataset 'digit'" in run("show", "cil", "--dataset", "digit", code=1).stderr


def test_classes_have_their_names(run, here):
    shown = run("show", "si-blurry", "--dataset", "digits", "--phases", 4, "--seed", 1)
    assert "Left out, as they cannot be dealt evenly: classes 3, 5." in shown.stdout
    assert json.loads(run("show", "si-blurry", "--dataset", "digits", "--phases", 4, "--seed", 1, "--json").stdout)[
        "left_out"
    ] == ["3", "5"]
