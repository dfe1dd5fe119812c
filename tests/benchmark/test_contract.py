from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from aircl.benchmark.contract import CHECKS, check_method, load_method_class, material
from aircl.benchmark.contract.kept_samples import SampleSearch
from aircl.methods import METHODS
from aircl.methods.acil import Acil

BROKEN = Path(__file__).with_name("broken_methods.py")

(LEARNS, NEWEST, ONLINE, EXPOSED, UNTAUGHT, NAMES, ALONE, ENCODES, PURE, GIVEN, EMPTY, SINGLE, BATCHES) = CHECKS[:13]
(GAPS, SEED, STATE, BETWEEN, WITHIN, ELSEWHERE, KEPT, GROWTH, PLACE) = CHECKS[13:]

# Which law each broken method breaks, and words of the reason.
CAUGHT = {
    "LooksAtTestLabels": (UNTAUGHT, "right about 100% of the test digits"),
    "PredictsUnexposedClasses": (EXPOSED, "predicted the classes [10]"),
    "IgnoresWhatItIsTaught": (LEARNS, "guessing gives 10%"),
    "CrashesOnEmptyPhase": (
        EMPTY,
        "end_phase of an empty phase raised ValueError: attempt to get argmax of an empty sequence",
    ),
    "CrashesOnEmptyBatch": (
        EMPTY,
        "learn with a batch of 0 rows raised ValueError: zero-size array",
    ),
    "ForgetsItsRandomState": (BETWEEN, "the random state included"),
    "ForgetsTheOpenPhase": (WITHIN, "restored within phase 3"),
    "KeepsSamplesInSecret": (KEPT, "keeps 0 samples, but 48 of its training rows"),
    "KeepsSamplesInItsFiles": (KEPT, "the saved file more.npz"),
    "KeepsEncodedSamples": (KEPT, "are in last"),
    "SaysOneNeighbour": (KEPT, "keeps 1 samples, but 48 of its training rows"),
    "HoldsThePhaseOnline": (KEPT, "after phase 1 of an online stream it says that it keeps 0 samples, but 48"),
    "SaysTooManyNeighbours": (KEPT, "it has seen only 48 samples"),
    "PredictionsDependOnBatchMates": (ALONE, "depends on the other rows of its batch"),
    "LearnsFromPredicting": (PURE, "predicted twice in a row"),
    "CountsItsPredictions": (PURE, "predict changed what is saved: asked.npz (number) differs"),
    "EncodesWithWhatItLearns": (ENCODES, "What changes by learning belongs into predict"),
    "PredictsAtRandom": (PURE, "predicted twice in a row"),
    "DrawsFromTheGlobalGenerator": (SEED, "two runs with seed 7 differ"),
    "SortsInPlace": (GIVEN, "it changed the inputs of learn in place"),
    "NeedsTwoRows": (BATCHES, "learn with a batch of 1 row raised RuntimeError: Expected more"),
    "TakesLabelsForPositions": (GAPS, "names, not positions"),
}
# The same of methods that hide what they keep or know.
DISHONEST = {
    "KeepsSamplesCompressed": (GROWTH, "bytes more for each further row, while it says that it keeps 0 samples"),
    "KeepsSamplesRotated": (GROWTH, "256.2 bytes more for each further row"),
    "KeepsSamplesQuantised": (GROWTH, "32.2 bytes more for each further row"),
    "KeepsSamplesProjected": (GROWTH, "12.2 bytes more for each further row"),
    "KeepsSamplesEncrypted": (GROWTH, "128.2 bytes more for each further row"),
    "KeepsDifferencesOfSamples": (GROWTH, "128.2 bytes more for each further row"),
    "KeepsFewCompressed": (PLACE, "(notes.bin) depend on some rows of a batch and not on others that are the same"),
    "KeepsFewRotated": (PLACE, "while it says that it keeps 0 samples"),
    "KeepsFewQuantised": (PLACE, "while it says that it keeps 0 samples"),
    "KeepsFewEncrypted": (PLACE, "while it says that it keeps 0 samples"),
    "KeepsTheLastAsText": (PLACE, "(notes.safetensors (texts)) depend"),
    "KeepsMoreThanItSays": (PLACE, "(notes.npz (rows)) depend on some rows of a batch"),
    "KeepsSamplesInAClosure": (ELSEWHERE, "also what is kept outside of the object"),
    "KeepsSamplesOfTheThread": (ELSEWHERE, "also what is kept outside of the object"),
    "KeepsSamplesInAModuleGlobal": (ELSEWHERE, "also what is kept outside of the object"),
    "KeepsSamplesInTheSystemModule": (ELSEWHERE, "also what is kept outside of the object"),
    "KeepsSamplesInATemporaryFile": (ELSEWHERE, "also what is kept outside of the object"),
    "SavesUnseededNoise": (STATE, "save different states: more.npz (noise) differs"),
    "SavesBytesOfTheSystem": (STATE, "save different states: salt.bin differs"),
    "SavesTheTime": (STATE, "save different states: about.json differs"),
    "SavesTheProcess": (ELSEWHERE, "it saves something else: about.json differs"),
    "SavesAHash": (ELSEWHERE, "it saves something else: hash.npy differs"),
    "SavesTheOrderOfASet": (ELSEWHERE, "it saves something else: names.txt differs"),
    "LoadsTheDataItself": (NAMES, "100% are right with the true names and"),
    "FindsTheTruthByTheGarbageCollector": (NAMES, "100% are right with the true names and"),
    "FindsTheTruthInTheCallersFrames": (NAMES, "100% are right with the true names and"),
}
# What else a broken method cannot keep to, for the same reason.
ALSO = {
    "LooksAtTestLabels": {NAMES},
    "PredictsUnexposedClasses": {GAPS, NAMES},
    "IgnoresWhatItIsTaught": {NEWEST, ONLINE, EMPTY, GAPS},
    "ForgetsItsRandomState": {WITHIN, ELSEWHERE},
    "KeepsSamplesInItsFiles": {GROWTH, ELSEWHERE, PLACE},
    "SaysOneNeighbour": {GROWTH, PLACE},
    "SaysTooManyNeighbours": {GROWTH, PLACE},
    "PredictsAtRandom": {ALONE, ENCODES},
    "EncodesWithWhatItLearns": {PURE},
    "DrawsFromTheGlobalGenerator": {PURE, BETWEEN, WITHIN, ENCODES, STATE, NAMES},
    "LearnsFromPredicting": {ALONE, ENCODES},
    "NeedsTwoRows": {SINGLE},
    "TakesLabelsForPositions": {EXPOSED, NAMES},
}
IN_ORDER = ["NearestNeighbour", "Reservoir", "Noisy"]


def findings_of(name, *checks, file=BROKEN, **options):
    findings = check_method(load_method_class(file, name), checks=checks or CHECKS, **options)
    assert [finding.name for finding in findings] == list(checks or CHECKS)
    return {finding.name: finding for finding in findings}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_broken_method_is_caught_by_the_law_it_breaks(name):
    law, words = CAUGHT[name]
    (finding,) = findings_of(name, law).values()
    assert finding.result == "failed"
    assert words in finding.reason


@pytest.mark.parametrize("name", DISHONEST)
def test_a_dishonest_method_is_caught(name):
    law, words = DISHONEST[name]
    (finding,) = findings_of(name, law, file=BROKEN.with_name("dishonest_methods.py")).values()
    assert finding.result == "failed"
    assert words in finding.reason


@pytest.mark.parametrize("name", ["ScalesByTheFirstBatch", "KeepsAMovingAverage", "SumsSomeRows"])
def test_a_statistic_of_some_rows_is_no_sample(name):
    (finding,) = findings_of(name, PLACE, file=BROKEN.with_name("dishonest_methods.py")).values()
    assert (finding.result, finding.reason) == (
        "passed", "equal rows of a batch change the same numbers of what it saves, but for 0 bytes; it keeps 0."
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CAUGHT)
def test_a_broken_method_keeps_the_other_laws(name):
    failed = {finding.name for finding in findings_of(name).values() if finding.result == "failed"}
    assert failed == {CAUGHT[name][0]} | ALSO.get(name, set())


@pytest.mark.parametrize("name", IN_ORDER)
def test_an_honest_method_passes(name):
    failed = [finding for finding in findings_of(name).values() if finding.result != "passed"]
    assert failed == []


def test_what_is_kept_is_counted():
    assert findings_of("Reservoir", KEPT)[KEPT].reason == "it says 40 of 120 samples; 40 training rows were found."


def test_an_exception_fails_its_check_and_says_where():
    findings = findings_of("CrashesOnEmptyPhase", EMPTY)
    line = 1 + BROKEN.read_text().splitlines().index(
        "        self.largest_class = phase.classes[phase.counts.argmax()]"
    )
    assert f"(broken_methods.py, line {line}, in end_phase)" in findings[EMPTY].reason


def test_a_method_that_cannot_be_made_fails_every_check():
    findings = findings_of("CannotBeMade").values()
    assert {finding.result for finding in findings} == {"failed"}
    assert all(finding.reason.startswith("creating it raised KeyError: 'momentum'") for finding in findings)
    findings = findings_of("CannotBeMade", options={"momentum": 0.9}).values()
    assert all(finding.reason.startswith("creating it raised KeyError: 0.9") for finding in findings)


def test_a_wrong_kind_of_prediction_is_described():
    reason = findings_of("ReturnsScores", LEARNS)[LEARNS].reason
    assert "predict returned an array of shape (359, 10) and dtype float32 for 359 rows" in reason


def test_a_restore_that_does_nothing_is_caught():
    findings = findings_of("HasNoRestore", BETWEEN, WITHIN)
    assert findings[BETWEEN].result == "failed"
    assert findings[WITHIN].result == "failed"


def test_declining_is_no_failure_where_it_is_allowed():
    findings = findings_of("DeclinesOnlineStreams", LEARNS, ONLINE, BATCHES)
    online = findings.pop(ONLINE)
    assert (online.result, online.reason) == ("skipped", "it declines: it needs several passes over a phase")
    assert {finding.result for finding in findings.values()} == {"passed"}
    everything = findings_of("DeclinesEverything", LEARNS)
    assert everything[LEARNS].result == "failed"
    assert "I would rather not." in everything[LEARNS].reason


def test_findings_are_the_same_again_and_random_states_are_left_alone():
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    first = findings_of("DrawsFromTheGlobalGenerator", LEARNS, SEED)
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002
    again = findings_of("DrawsFromTheGlobalGenerator", LEARNS, SEED)
    assert [finding.reason for finding in first.values()] == [finding.reason for finding in again.values()]


def test_a_check_that_there_is_not():
    with pytest.raises(ValueError, match=r"there is no check 'learns'. Known: 'learns its training data', "):
        check_method("acil", checks=["learns"])
    with pytest.raises(ValueError, match="Did you mean 'slda'"):
        check_method("slad")


def test_progress_and_an_unknown_consumption():
    told = []
    check_method(Acil, checks=CHECKS[:2], progress=lambda done, name: told.append((done, name)))
    assert told == list(enumerate(CHECKS[:2]))

    class Odd(Acil):
        consumes = "smells"

    findings = check_method(Odd)
    assert {finding.result for finding in findings} == {"failed"}
    assert "'smells'; it should be 'features' or 'images'" in findings[0].reason


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.slow
def test_a_method_on_images():
    failed = [finding for finding in findings_of("OnImages").values() if finding.result != "passed"]
    assert failed == []


def test_without_torch_a_method_on_images_is_skipped(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find_spec(name, *rest)
    )
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(
        material, "_trial_network", material._trial_network.__wrapped__
    )  # another test may have made it
    findings = findings_of("OnImages").values()
    assert {finding.result for finding in findings} == {"skipped"}
    assert all("torch" in finding.reason for finding in findings)


class Slotted:
    __slots__ = ("inside",)

    def __init__(self, inside):
        self.inside = inside


ROWS = np.random.default_rng(0).random((6, 16)).astype(np.float32)
# Not a view: that would keep all rows.
ROW = ROWS[2].copy()
HIDEOUTS = {
    "list of floats": lambda: [ROW.tolist()],
    "tuple in a dict": lambda: {"a": (0, ROW)},
    "key of a dict": lambda: {tuple(ROW.tolist()): 1},
    "column": lambda: ROW[None].T.copy(),
    "with a label": lambda: np.append(ROW, 7.0),
    "in a larger buffer": lambda: np.vstack([np.zeros((9, 16)), ROW[None]]),
    "bytes": lambda: b"beginning" + ROW.tobytes() + b"end",
    "another precision": lambda: ROW.astype(np.float64),
    "an object array": lambda: np.array([None, ROW], dtype=object),
    "a record": lambda: np.array([(1, ROW)], dtype=[("label", int), ("row", np.float32, 16)]),
    "a closure": lambda: (lambda row: lambda: row)(ROW),
    "a default": lambda: lambda row=ROW: row,
    "slots": lambda: Slotted(ROW),
    "a method of an object": lambda: Slotted(ROW).__getattribute__,
    "what a view is of": lambda: ROW[:3],
    "a set": lambda: {ROW.tobytes()},
}


@pytest.mark.parametrize("hideout", HIDEOUTS)
def test_a_row_is_found_wherever_it_is(hideout):
    holder = type("Holder", (), {})()
    holder.place = HIDEOUTS[hideout]()
    found = SampleSearch(ROWS.copy()).in_object(holder)
    assert set().union(*found.values()) == {2}
    assert all(place.startswith("place") for place in found)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_is_found_in_a_tensor(dtype):
    import torch

    layer = torch.nn.Linear(16, 3)
    assert SampleSearch(ROWS).in_object(layer) == {}
    layer.register_buffer("memory", torch.from_numpy(ROWS[[4, 1]]).to(getattr(torch, dtype)))
    assert SampleSearch(ROWS).in_object(layer) == {"_buffers['memory']": {1, 4}}
    layer.memory = layer.memory[0, :2]  # a view of what is still there
    assert SampleSearch(ROWS).in_object(layer) == {"_buffers['memory']": {1, 4}}
    layer.memory = layer.memory.clone()
    assert SampleSearch(ROWS).in_object(layer) == {}


def test_a_single_number_is_no_sample():
    assert SampleSearch(ROWS[:, :1], ROWS[:, :4]).in_object(Slotted(ROWS)) == {}


def test_means_and_zeros_are_not_samples():
    holder = Slotted([ROWS[:3].mean(0), np.zeros((20, 16)), ROWS.T @ ROWS])
    assert SampleSearch(np.vstack([ROWS, np.zeros((1, 16))])).in_object(holder) == {}


@pytest.mark.parametrize("suffix", ["safetensors", "npz", "npy", "json", "pickle"])
def test_a_row_is_found_in_files(suffix, tmp_path):
    import json
    import pickle

    from safetensors.numpy import save_file

    path = tmp_path / f"memory.{suffix}"
    rows = ROWS[[5, 0]]
    {
        "safetensors": lambda: save_file({"rows": rows}, path),
        "npz": lambda: np.savez_compressed(path, rows=rows),
        "npy": lambda: np.save(path, rows),
        "json": lambda: path.write_text(json.dumps({"rows": rows.tolist()})),
        "pickle": lambda: path.write_bytes(pickle.dumps({"rows": rows})),
    }[suffix]()
    assert SampleSearch(ROWS).in_files(tmp_path) == {path.name: {0, 5}}
    path.write_bytes(path.read_bytes()[:40])  # damaged files are searched, not trusted
    assert SampleSearch(ROWS).in_files(tmp_path) == {}


def test_a_file_that_registers_its_method_can_be_loaded_again(tmp_path):
    path = tmp_path / "again.py"
    path.write_text(
        "from aircl.methods import register_method\n"
        "from aircl.methods.air import Air\n"
        "@register_method('again')\nclass Again(Air):\n    'It.'\n"
    )
    try:
        first, second = load_method_class(path), load_method_class(str(path))
        assert first is not second
        assert METHODS["again"] is second
    finally:
        METHODS._entries.pop("again", None)


def test_a_class_is_found_in_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from aircl.methods.air import Air\nclass Mine(Air):\n    'It.'\n")
    assert load_method_class(path).__name__ == "Mine"
    assert load_method_class(path, "Air").__name__ == "Air"
    with pytest.raises(ValueError, match=r"no subclass of aircl.methods.Method named 'Yours'. It defines Mine."):
        load_method_class(path, "Yours")
    with pytest.raises(ValueError, match=r"defines several methods: LooksAtTestLabels, .* Name the class"):
        load_method_class(BROKEN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", r"defines no method: no class in it is a complete subclass of aircl.methods.Method\.$"),
        (
            "from aircl.methods import Method\nclass Half(Method):\n    def learn(self, inputs, labels): ...\n",
            r"Half lacks predict, restore, save",
        ),
        ("import aircl\nimport torhc\n", r"mine.py, line 2: ModuleNotFoundError: No module named 'torhc'"),
        ("x = 1\ny = (\n", r"mine.py, line 2: SyntaxError"),
        ("def f():\n    return 1 / 0\n\nf()\n", r"mine.py, line 2: ZeroDivisionError"),
    ],
)
def test_a_file_without_a_method_says_why(text, message, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_method_class(path)


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(ValueError, match="does not exist or is not a file"):
        load_method_class(tmp_path / "absent.py")
    (tmp_path / "method.txt").write_text("")
    with pytest.raises(ValueError, match=r"should end in \.py"):
        load_method_class(tmp_path / "method.txt")


def test_a_class_that_another_process_cannot_import_is_left_out():
    class Local(Acil):
        """Of this function only."""

    (finding,) = check_method(Local, checks=[ELSEWHERE])
    assert finding.result == "skipped"
    assert "another process cannot import its class" in finding.reason


def test_a_module_that_was_found_since_the_other_process_began(tmp_path, monkeypatch):
    findings_of("Reservoir", ELSEWHERE)
    (tmp_path / "found_later.py").write_text("from aircl.methods.acil import Acil\nclass Late(Acil):\n    'It.'\n")
    monkeypatch.syspath_prepend(tmp_path)
    import found_later

    (finding,) = check_method(found_later.Late, checks=[ELSEWHERE])
    monkeypatch.delitem(sys.modules, "found_later")
    assert finding.result == "passed"
