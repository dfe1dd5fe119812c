"""Settings that are chosen on held-out training samples: what is held out, and that no test sample is looked at."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from aircl.benchmark.grid import hold_out, learn_most
from aircl.benchmark.job import Samples
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
    import record

    monkeypatch.setattr(record, "CHOSEN", tmp_path / "settings.json")
    assert record.chosen("--preset table1 --methods er,rm") == []
    record.CHOSEN.write_text('{"table1": {"er": {"learning_rate": 0.3}, "lwf": {"epochs": 2}}}', encoding="utf-8")
    assert record.chosen("--preset table1 --methods er,rm") == ["--option", "er.learning_rate=0.3"]
    assert record.chosen("--preset table2 --methods er,rm") == []
    assert record.chosen("") == []
