"""Outputs: nothing is replaced that was not asked for, and of two writers none is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import time

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.cli.info import MOST_CLASSES
from aircl.storage.locks import locked


@pytest.fixture
def model(files, run):
    run("learn", "train.csv", "--label", "y", "--gamma", 1, "-o", "m")
    return files / "m"


@pytest.mark.parametrize(
    "args",
    [
        ("forget", "m", "train.csv", "--label", "y", "-o", "train.csv"),
        ("learn", "train.csv", "--label", "y", "-o", "train.csv"),
        ("learn", "train.csv", "--label", "y", "--append", "m", "-o", "train.csv"),
        ("learn", "maker:rows", "-o", "maker.py"),
        ("predict", "m", "train.csv", "-o", "train.csv"),
        ("predict", "m.npz", "train.csv", "-o", "m.npz"),
        ("info", "m", "--plot", "m"),
        ("features", "features:ds.npz", "--backbone", "identity", "-o", "ds.npz"),
        ("features", "features:train.csv,ds.npz", "--backbone", "identity", "-o", "ds.npz"),
        ("features", "digits", "--backbone", "checkpoint:net.safetensors", "-o", "net.safetensors"),
    ],
)
def test_an_output_that_is_an_input_is_refused(args, files, model, run, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(files / "cache"))
    monkeypatch.syspath_prepend(str(files))
    shutil.copy(model, "m.npz")
    (files / "net.safetensors").write_bytes(b"weights")
    (files / "maker.py").write_text("import numpy as np\ndef rows():\n    yield np.eye(2), [0, 1]\n")
    with np.load("train.npz") as rows:
        X, y = rows["X"], rows["y"]
    np.savez("ds.npz", X_train=X, y_train=y, X_test=X, y_test=y, X=X, y=y)
    before = {path: path.read_bytes() for path in files.iterdir() if path.is_file()}
    assert "would replace" in run(*args, code=1).stderr
    assert {path: path.read_bytes() for path in files.iterdir() if path.is_file()} == before
    sys.modules.pop("maker", None)


def test_models_keep_their_mode_and_links_stay_links(files, model, run):
    model.chmod(0o600)
    (files / "link").symlink_to("m")
    run("learn", "train.csv", "--label", "y", "--append", "link", "-o", "link")
    assert (files / "link").is_symlink()
    assert stat.S_IMODE(model.stat().st_mode) == 0o600
    assert AIRClassifier.load(model).class_count_.sum() == 620


@pytest.mark.parametrize(
    "args", [("learn", "train.csv", "--label", "y"), ("merge", "m", "m2"), ("forget", "m", "--class", "3")]
)
def test_devices_and_pipes_are_not_replaced(args, files, model, run):
    run("learn", "train.npz", "--label", "y", "--gamma", 1, "-o", "m2")
    os.mkfifo("pipe")
    for output in ("/dev/null", "pipe"):
        assert "a device, a pipe or a socket" in run(*args, "-o", output, code=1).stderr
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_a_model_may_go_to_stdout(name, files, model, forks):
    command = ("forget", "m", "--class", "3", "-o", name)
    written = forks.run(*command, stdout="copy")
    assert written.code == 0
    assert AIRClassifier.load(files / "copy").classes_.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert "Forgot 40 rows" in written.stderr
    assert "--json" in forks.run(*command, "--json").stderr


def test_predictions_may_go_to_stdout_by_name(model, run):
    assert run("predict", "m", "test.csv", "-o", "-").stdout == run("predict", "m", "test.csv").stdout


def test_processes_that_add_to_one_model_all_count(files, model, forks):
    command = ("learn", "train.csv", "--label", "y", "--append", "m", "-o", "m", "--json")
    for process in [forks.start(*command) for _ in range(5)]:
        assert process.wait() == 0
        assert json.loads(process.stdout)["rows"] == 310
    assert AIRClassifier.load(model).class_count_.sum() == 6 * 310


@pytest.mark.parametrize(
    "args",
    [
        ("learn", "train.csv", "--label", "y", "--append", "m"),
        ("merge", "m", "m2"),
        ("forget", "m", "--class", "3"),
    ],
)
def test_a_model_that_another_process_changes_is_waited_for(args, files, model, run, forks):
    run("learn", "train.csv", "--label", "y", "--gamma", 1, "-o", "m2")
    before = model.read_bytes()
    with locked(model):
        waiter = forks.start(*args, "-o", "m")
        while not waiter.stderr.endswith("\n"):
            assert forks.ask({"wait": waiter.pid}) is None  # it lives
            time.sleep(0.01)
        assert waiter.stderr == "Another process is changing m: waiting for it.\n"
        assert model.read_bytes() == before
    assert waiter.wait() == 0
    assert model.read_bytes() != before


def test_a_report_replaces_nothing_but_reports(files, run, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(files / "cache"))
    args = ("--dataset", "digits", "--backbone", "identity", "--scenario", "cil,phases=2", "--methods", "ncm")
    quiet = run("run", *args, "-o", "r", "--quiet")
    assert quiet.output == ""
    out = files / "out"
    out.mkdir()
    (out / "table.csv").write_text("mine")
    run("report", "r", "-o", "out/page.html")
    run("report", "r", "-o", "out/page.html")
    run("report", "r", "-o", "out/other.html")
    assert (out / "table.csv").read_text() == "mine"
    assert len(list(out.iterdir())) == 9
    for name in ("page.csv", "page.md", "page.tex"):
        before = (out / name).read_bytes()
        (out / name).write_text("mine")
        assert f"{name} is there already" in run("report", "r", "-o", "out/page.html", code=1).stderr
        assert (out / name).read_text() == "mine"
        (out / name).write_bytes(before)
    (files / "r" / "report.html").write_text("mine")
    assert "report.html is there already" in run("report", "r", code=1).stderr
    run("report", "r", "-o", "r/report.html")


def test_quiet_commands_print_nothing(files, run, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(files / "cache"))
    assert run("features", "digits", "--backbone", "identity", "-q").output == ""
    assert run("features", "digits", "--backbone", "identity", "-o", "f.npz", "-q").output == ""


@pytest.mark.parametrize("name", ["f.npz", "f.safetensors"])
def test_a_full_disk_is_one_line_and_leaves_the_old_file(name, files, forks):
    (files / name).write_bytes(b"old")
    args = ("features", "features:train.csv,test.csv", "--backbone", "identity", "-o", name)
    result = forks.run(*args, env={"AIRCL_CACHE": str(files / "cache")}, limits={"FSIZE": 250_000})
    assert result.code == 1
    assert re.search(r"^Error: .*File too large", result.stderr.splitlines()[-1])
    assert "Traceback" not in result.stderr
    assert (files / name).read_bytes() == b"old"
    assert {path.name for path in files.iterdir()} == {"train.npz", "train.csv", "test.csv", name, "cache"}


def test_a_table_of_very_many_classes_is_cut(tmp_path, run):
    X = np.random.default_rng(0).normal(size=(5, 3))
    clf = AIRClassifier(1.0).partial_fit(X, np.arange(5), classes=np.arange(MOST_CLASSES + 500))
    clf.save(tmp_path / "m")
    shown = run("info", tmp_path / "m").stdout
    assert "and 500 more" in shown
    assert len(json.loads(run("info", tmp_path / "m", "--json").stdout)["classes"]) == MOST_CLASSES + 500
