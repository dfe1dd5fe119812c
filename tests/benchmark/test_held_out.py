"""Settings that are chosen on held-out training samples: what is held out, and that no test sample is looked at."""

from __future__ import annotations

import importlib.util
import pkgutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from aircl.benchmark.config import GAMMA_GRID
from aircl.benchmark.evaluation import Samples
from aircl.benchmark.grid import choose_gamma, hold_out, learn_most
from aircl.data import load_dataset
from aircl.methods import Setup, create_method
from aircl.scenarios import make_stream

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    spec = importlib.util.spec_from_file_location("settings_benchmark", FOLDER / "settings.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(str(FOLDER))
    spec.loader.exec_module(module)
    return module


def test_a_fifth_of_each_class_is_held_out_and_nothing_of_a_class_of_one():
    labels = np.random.default_rng(0).permutation(np.repeat([3, 5, 8, 9], [50, 11, 2, 1]))
    out = hold_out(labels)
    assert Counter(labels[out].tolist()) == {3: 10, 5: 2, 8: 1}


def test_what_is_held_out_is_not_learned_and_is_what_it_is_judged_by():
    split = load_dataset("digits").train
    stream = make_stream("cil", split.labels, phases=5, seed=1)
    features = np.asarray(split.inputs[np.arange(len(split))]).reshape(len(split), -1).astype(np.float32) / 255
    method = create_method("ncm", Setup(1, 64))
    seen, asked = [], []
    learn, predict = method.learn, method.predict
    method.learn = lambda inputs, labels: seen.extend(map(bytes, inputs)) or learn(inputs, labels)
    method.predict = lambda encoded: asked.extend(map(bytes, encoded)) or predict(encoded)
    score = learn_most(method, stream, Samples(features, split.labels), 64)
    assert 0.8 < score() < 1
    assert score() == score()
    assert set(seen).isdisjoint(asked)
    assert {*seen, *asked} == set(map(bytes, features))
    assert len(set(asked)) == pytest.approx(len(features) / 5, rel=0.05)


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("air", "aircl.engine.moments.Moments.summed"),
        ("air-shared", "aircl.engine.means.Shared.gram"),
        ("acil", "aircl.engine.means.Shared.gram"),
        ("aef-ocl", "aircl.classifiers.aefocl.RebalancedRidge.pseudo_features"),
    ],
)
def test_every_gamma_is_solved_for_from_what_was_learned_and_weighed_once(name, work, monkeypatch):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), [60, 30, 20, 12, 8, 6])
    X = rng.standard_normal((6, 20))[labels] + rng.standard_normal((len(labels), 20))
    stream, train = make_stream("cil", labels, phases=3, seed=1), Samples(X, labels)
    anew = {}
    for gamma in GAMMA_GRID:
        anew[gamma] = learn_most(create_method(name, Setup(1, 20, buffer=30, gamma=gamma)), stream, train, 16)()
    times = []
    place, function = work.rsplit(".", 1)
    original = getattr(pkgutil.resolve_name(place), function)
    monkeypatch.setattr(work, lambda self, *given: times.append(1) or original(self, *given))
    chosen = choose_gamma(lambda: create_method(name, Setup(1, 20, buffer=30)), stream, train, 16)
    assert anew[chosen] == max(anew.values()) > min(anew.values())
    assert chosen == max(gamma for gamma in anew if anew[gamma] == anew[chosen])
    assert len(times) == 1


def test_the_script_chooses_what_does_best_without_a_look_at_the_test_set(script, tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path))
    monkeypatch.setattr(script, "CHOSEN", tmp_path / "settings.json")
    only_train = SimpleNamespace(train=load_dataset("digits").train)  # there is no test set to look at
    monkeypatch.setattr(script, "load_dataset", lambda name, root: only_train)
    command = "settings.py --methods er --orders descending --values learning_rate=0.1,0.000001 --values epochs=2"
    monkeypatch.setattr("sys.argv", command.split())
    script.main()
    out = capsys.readouterr().out
    assert "chosen: --option er.learning_rate=0.1 --option er.epochs=2" in out
    scores = [float(line.split(" +-")[0].split()[-1]) for line in out.splitlines() if line.startswith("er ")]
    assert len(scores) == 2
    assert scores[0] > scores[1] + 10


def test_the_record_takes_what_was_chosen(script, tmp_path, monkeypatch):
    import record_runs

    chosen = tmp_path / "settings.json"
    monkeypatch.setattr(record_runs, "CHOSEN", chosen)
    table1, table2 = "--preset table1 --methods er,rm", "--preset table2 --methods er,rm"
    assert record_runs.command(table1) == table1.split()
    chosen.write_text('{"table1": {"er": {"learning_rate": 0.3}, "lwf": {"epochs": 2}}}', encoding="utf-8")
    assert record_runs.command(table1) == [*table1.split(), "--option", "er.learning_rate=0.3"]
    assert record_runs.command(table2) == table2.split()
    assert record_runs.command("") == []
