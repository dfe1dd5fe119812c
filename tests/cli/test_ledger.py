"""The ledger on the command line: a command may be repeated, killed and repeated, and nothing is counted twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits

from aircl import AIRClassifier

X, Y = load_digits(return_X_y=True)
X = X / 16
KILLS = 20


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path.with_name(f"{tmp_path.name}-cache")))
    for number in range(3):
        rows = slice(300 * number, 300 * number + 300)
        np.savez(f"{number}.npz", X=X[rows], y=Y[rows])
    (tmp_path / "key").write_bytes(os.urandom(32))
    return tmp_path


def bits(path):
    """Statistics and ledger of a model, to the bit."""
    state = AIRClassifier.load(path)._learner.sealed()
    arrays = {**state.statistics.arrays(), **state.ledger.arrays()}
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()} | {"header": state.ledger.header()}


def learn(*files, label="y"):
    return ("learn", *files, "--label", label)


def test_a_repeated_command_is_harmless(place, run):
    run(*learn("0.npz"), "--ledger", "--batch", 70, "-o", "m")
    again = learn("1.npz", "0.npz"), ("--append", "m", "-o", "m")
    before = bits("m")
    refused = run(*again[0], "--ledger", *again[1], code=1)
    assert "0.npz, rows 1 to 300: 300 of 300 rows were learned already" in refused.stderr
    assert "--on-duplicate skip leaves out" in refused.stderr
    assert bits("m") == before
    told = run(*again[0], *again[1], "--on-duplicate", "skip", "--json")
    assert '"known": 300' in told.stdout
    assert "300 of them known before" in told.stderr
    after = bits("m")
    run(*again[0], *again[1], "--on-duplicate", "skip")
    assert bits("m") == after
    assert AIRClassifier.load("m").class_count_.sum() == 600


def test_equal_rows_of_a_command_count_however_it_is_divided(place, run):
    rows = np.r_[0:100, 0:100, 100:150]
    np.savez("twice.npz", X=X[rows], y=Y[rows])
    run(*learn("twice.npz", "1.npz"), "--ledger-key", "key", "--batch", 60, "-o", "m")
    run(*learn("twice.npz", "1.npz"), "--ledger-key", "key", "--batch", 4096, "-o", "whole")
    assert AIRClassifier.load("m").class_count_.sum() == 550
    assert AIRClassifier.load("m")._learner.state.ledger.arrays().keys() == {"0.row", "0.slot"}
    for name, array in AIRClassifier.load("m")._learner.state.ledger.arrays().items():
        assert array.tobytes() == AIRClassifier.load("whole")._learner.state.ledger.arrays()[name].tobytes()


def test_only_what_was_learned_is_forgotten(place, run):
    run(*learn("0.npz", "1.npz"), "--dtype", "float32", "--store", "shared", "--ledger", "-o", "m")
    before = bits("m")
    refused = run("forget", "m", "2.npz", "--label", "y", "-o", "m", code=1)
    assert "300 of 300 rows were never learned" in refused.stderr
    assert bits("m") == before
    run("forget", "m", "1.npz", "--label", "y", "--batch", 100, "-o", "m")
    model = AIRClassifier.load("m")
    assert model.class_count_.sum() == len(model._learner.state.ledger) == 300
    assert "300 of 300 rows were never learned" in run("forget", "m", "1.npz", "--label", "y", "-o", "m", code=1).stderr


def test_models_of_one_key_are_compared_and_of_two_not(place, run):
    run(*learn("0.npz", "1.npz"), "--ledger-key", "key", "-o", "a")
    run(*learn("1.npz", "2.npz"), "--ledger-key", "key", "-o", "b")
    run(*learn("2.npz"), "--ledger-key", "key", "-o", "c")
    run(*learn("2.npz"), "--ledger", "-o", "d")
    assert "300 rows were learned by both" in run("merge", "a", "b", "-o", "m", code=1).stderr
    assert "Note" not in run("merge", "a", "c", "-o", "ac").stderr
    assert "nothing tells whether they have rows in common" in run("merge", "a", "d", "-o", "ad").stderr
    assert len(AIRClassifier.load("ad")._learner.state.ledger) == 900
    run(*learn("2.npz"), "-o", "bare")
    assert "the other has none" in run("merge", "a", "bare", "-o", "m", code=1).stderr
    # The key is in no model, and needed to learn and to forget.
    for command in ((*learn("2.npz"), "--append", "a"), ("forget", "a", "0.npz", "--label", "y")):
        assert "--ledger-key FILE" in run(*command, "-o", "m", code=1).stderr
        run(*command, "--ledger-key", "key", "-o", "m")


def test_a_ledger_is_there_from_the_first_row_or_not_at_all(place, run):
    run(*learn("0.npz"), "-o", "m")
    for option in (["--ledger"], ["--ledger-key", "key"]):
        refused = run(*learn("1.npz"), *option, "--append", "m", "-o", "m", code=1)
        assert f"has learned without a ledger, and {option[0]} comes too late" in refused.stderr
    refused = run(*learn("1.npz"), "--append", "m", "--on-duplicate", "skip", "-o", "m", code=1).stderr
    assert "and --on-duplicate comes too late" in refused
    refused = run(*learn("1.npz"), "--on-duplicate", "skip", "-o", "m2", code=1).stderr
    assert refused == "Error: --on-duplicate asks a ledger, and there is none: --ledger keeps one.\n"
    run(*learn("0.npz"), "--ledger", "--replaced", "1.npz", "-o", "m2", code=2)


APART = ("--engine", "joblib", "--workers", 1)


def rows_by_label(path):
    """The ledger of a model, whatever order its classes came in."""
    state = AIRClassifier.load(path)._learner.state
    arrays = state.ledger.arrays()
    return [array.tobytes() for array in (arrays["0.row"], state.labels.seen[arrays["0.slot"]])]


def test_an_engine_keeps_the_ledger_of_one_process(place, run):
    np.savez("3.npz", X=X[:20], y=Y[:20])  # of what 0 has: rows of one command count as often as they come
    files = ("0.npz", "1.npz", "3.npz")
    for name, engine in (("one", ()), ("apart", APART)):
        run(*learn(*files), "--ledger-key", "key", *engine, "-o", name)
    assert rows_by_label("apart") == rows_by_label("one")
    assert AIRClassifier.load("apart")._learner.state.ledger.own_keys == []
    before = bits("apart")
    again = (*learn("1.npz", "2.npz"), "--ledger-key", "key", *APART)
    first = (*again, "--append", "apart", "-o", "m")
    refused = run(*first, code=1)
    assert "1.npz, rows 1 to 300: 300 of 300 rows were learned already" in refused.stderr
    assert "--on-duplicate skip leaves out" in refused.stderr
    assert "300 of them known before" in run(*first, "--on-duplicate", "skip").stderr
    run(*learn("2.npz"), "--append", "one", "--ledger-key", "key", "-o", "one")
    assert rows_by_label("m") == rows_by_label("one")
    once_more = (*again, "--append", "m", "--on-duplicate", "skip", "-o")
    assert "600 of them known before" in run(*once_more, "m2").stderr
    assert bits("m2") == bits("m")
    assert bits("apart") == before
    run("forget", "m", "1.npz", "--label", "y", "--ledger-key", "key", "-o", "m")
    run(*once_more, "m")  # what was forgotten is new again
    assert rows_by_label("m") == rows_by_label("one")
    assert "leave --engine out" in run(*first, "--on-duplicate", "replace", code=2).stderr
    assert "not in the model" in run(*learn("2.npz"), "--append", "apart", *APART, "-o", "m", code=1).stderr


def test_a_key_that_is_drawn_stays_in_the_model_of_an_engine(place, run):
    run(*learn("0.npz", "1.npz"), "--ledger", *APART, "-o", "m")
    assert "300 rows were learned already" in run(*learn("1.npz"), "--append", "m", "-o", "m", code=1).stderr
    run(*learn("2.npz"), "--append", "m", *APART, "-o", "m")
    run("forget", "m", "2.npz", "--label", "y", "-o", "m")
    assert len(AIRClassifier.load("m")._learner.state.ledger) == 600


def test_an_id_names_one_row_also_in_two_files_of_an_engine(place, run):
    for name, label in (("a", "card"), ("b", "card"), ("c", "rate")):
        (place / f"{name}.csv").write_text(
            f"ticket,text,label\nt1,where is my card,{label}\n{name},hello {name},rate\n"
        )
    command = ("--id", "ticket", "--backbone", "char-ngrams", "--ledger-key", "key", *APART, "-o", "m")
    run("learn", "a.csv", "b.csv", *command)
    assert len(AIRClassifier.load("m")._learner.state.ledger) == 4
    refused = run("learn", "a.csv", "c.csv", *command, code=1)
    assert "1 ids stand for different rows in different shards or files" in refused.stderr


def test_a_model_merged_of_two_keys_goes_on_with_both(place, run):
    (place / "other").write_bytes(os.urandom(32))
    run(*learn("0.npz"), "--ledger-key", "key", "-o", "a")
    run(*learn("1.npz"), "--ledger-key", "other", "-o", "b")
    run("merge", "a", "b", "-o", "m")
    refused = run(*learn("2.npz"), "--append", "m", "--ledger-key", "key", "-o", "m", code=1)
    assert "After a merge of two keys, both are needed" in refused.stderr
    both = ("--ledger-key", "other", "--ledger-key", "key")
    for name in ("0.npz", "1.npz"):
        assert "learned already" in run(*learn(name), "--append", "m", *both, "-o", "m", code=1).stderr
    run(*learn("1.npz", "2.npz"), "--append", "m", *both, *APART, "--on-duplicate", "skip", "-o", "m")
    for name in ("1.npz", "2.npz"):
        run("forget", "m", name, "--label", "y", *both, "-o", "m")
        assert "never learned" in run("forget", "m", name, "--label", "y", *both, "-o", "m", code=1).stderr


@pytest.mark.parametrize(
    ("kills", "options"),
    [
        (4, ()),
        (4, ("--on-duplicate", "skip")),
        pytest.param(KILLS, (), marks=pytest.mark.slow),
        pytest.param(KILLS, ("--on-duplicate", "skip"), marks=pytest.mark.slow),
    ],
)
def test_killed_at_any_moment_and_repeated_it_is_as_if_undisturbed(kills, options, place, forks):
    """The same command again, after SIGKILL, gives statistics and ledger of one undisturbed run, bit by bit."""
    assert forks.run(*learn("0.npz"), "--expand", 100, "--ledger", "-o", "begun").code == 0
    command = (*learn("1.npz", "2.npz"), "--ledger", "--append", "m", "--batch", 50, *options, "-o", "m")
    shutil.copy("begun", "m")
    began = time.perf_counter()
    assert forks.run(*command).code == 0
    seconds, undisturbed = time.perf_counter() - began, bits("m")
    rng, before = random.Random(0), bits("begun")
    for _ in range(kills):
        shutil.copy("begun", "m")
        process = forks.start(*command)
        time.sleep(rng.uniform(0, 1.1 * seconds))
        os.kill(process.pid, signal.SIGKILL)  # it is there at least as one that nobody waited for
        process.wait()
        was_written = bits("m") == undisturbed
        assert was_written or bits("m") == before
        again = forks.run(*command)
        assert again.code == (1 if was_written and not options else 0), again.stderr
        assert bits("m") == undisturbed
    assert {path.name for path in place.iterdir()} == {"0.npz", "1.npz", "2.npz", "key", "begun", "m"}


# Kills its own process before or after a step of writing a model: the STEPth of all.
KILLS_ITSELF = """
import os, signal, sys
import aircl.cli.commands, aircl.classifiers.file as file, aircl.storage.writing as writing

left = int(os.environ["STEP"])

def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def between(function):
    def stepwise(*args):
        step()
        result = function(*args)
        step()
        return result
    return stepwise

for module, name in ((writing, "create"), (file, "_bytes"), (writing, "_sync"), (os, "chmod"), (os, "replace")):
    setattr(module, name, between(getattr(module, name)))
sys.argv[0] = "aircl"
aircl.cli.commands.main()
"""


@pytest.mark.slow
def test_killed_at_every_step_of_writing_the_file(place, forks):
    """The file is the old one or the new one, and the same command again makes it the new one, bit by bit."""
    assert forks.run(*learn("0.npz"), "--store", "shared", "--expand", 50, "--ledger", "-o", "begun").code == 0
    command = (*learn("1.npz"), "--ledger", "--append", "m", "-o", "m")
    shutil.copy("begun", "m")
    assert forks.run(*command).code == 0
    before, undisturbed = bits("begun"), bits("m")
    seen, ended = [], None
    while ended != 0:
        shutil.copy("begun", "m")
        ended = forks.run(*command, code=KILLS_ITSELF, env={"STEP": str(len(seen) + 1)}).code
        assert ended in (0, -signal.SIGKILL)
        seen.append(bits("m") == undisturbed)
        assert seen[-1] or bits("m") == before
        assert forks.run(*command).code == (1 if seen[-1] else 0)
        assert bits("m") == undisturbed
        assert {path.name for path in place.iterdir()} == {"0.npz", "1.npz", "2.npz", "key", "begun", "m"}
    assert len(seen) > 20
    assert seen == sorted(seen)  # the old one, up to a step, and from there on the new one
    assert 2 < sum(seen) < 6


# -- texts and images, by id and by what they are --
TEXTS = {
    "t1": ("where is my card", "card"),
    "t2": ("my card has not come", "card"),
    "t3": ("which rate do I get", "rate"),
    "t4": ("what is the rate of today", "rate"),
    "t5": ("please send a new card", "rate"),  # which is wrong
}


def write_texts(path, rows):
    lines = [f"{name},{text},{label}" for name, (text, label) in rows.items()]
    path.write_text("\n".join(["ticket,text,label", *lines]) + "\n")


@pytest.fixture
def tickets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    write_texts(tmp_path / "all.csv", TEXTS)
    write_texts(tmp_path / "right.csv", {"t5": (TEXTS["t5"][0], "card"), "t6": ("the rate please", "rate")})
    return tmp_path


def counts(path):
    model = AIRClassifier.load(path)
    return dict(zip(model.classes_.tolist(), model.class_count_.tolist(), strict=True))


def test_a_wrong_label_is_corrected_and_a_customer_forgotten_by_id(tickets, run):
    names = ("--text", "text", "--id", "ticket", "--backbone", "char-ngrams")
    run("learn", "all.csv", *names, "--ledger", "-o", "m")
    refused = run("learn", "right.csv", "--append", "m", "-o", "m", code=1).stderr
    assert "1 of 2 rows was learned already: ids 't5'" in refused
    assert "1 of them had other content, another label or weight" in refused
    replace = ("learn", "right.csv", "--append", "m", "--on-duplicate", "replace", "-o", "m")
    assert "have to be shown" in run(*replace, code=1).stderr
    run(*replace, "--replaced", "all.csv")
    assert counts("m") == {"card": 3, "rate": 3}
    state = bits("m")
    run(*replace, "--replaced", "all.csv")  # once more
    assert bits("m") == state
    # Afterwards it is the model that was right from the beginning.
    write_texts(tickets / "good.csv", TEXTS | {"t5": (TEXTS["t5"][0], "card"), "t6": ("the rate please", "rate")})
    run("learn", "good.csv", *names, "--gamma", 0.5, "-o", "good")
    np.testing.assert_allclose(
        AIRClassifier.load("m").set_params(gamma=0.5).coef_, AIRClassifier.load("good").coef_, rtol=1e-4, atol=1e-6
    )
    write_texts(tickets / "gone.csv", {"t3": TEXTS["t3"]})
    run("forget", "m", "gone.csv", "-o", "m")
    assert counts("m") == {"card": 3, "rate": 2}
    assert "never learned: ids 't3'" in run("forget", "m", "gone.csv", "-o", "m", code=1).stderr
    write_texts(tickets / "other.csv", {"t4": ("another text", "rate")})
    assert "with other content" in run("forget", "m", "other.csv", "-o", "m", code=1).stderr


def test_texts_are_known_by_what_they_say(tickets, run):
    run("learn", "all.csv", "--text", "text", "--backbone", "char-ngrams", "--ledger", "-o", "m")
    model = AIRClassifier.load("m")
    with pytest.raises(ValueError, match="1 of 2 rows was learned already"):
        model.partial_fit(["where is my card", "a new one"], ["card", "card"])  # in Python as on the command line
    model.forget(["where is my card"], ["card"])
    assert model.class_count_.tolist() == [1, 3]


def test_images_are_known_by_their_files_wherever_these_are(tmp_path, run, monkeypatch):
    pil = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for day, n in (("monday", 4), ("tuesday", 2)):
        for label in ("cat", "dog"):
            (tmp_path / day / label).mkdir(parents=True)
            for number in range(n):
                pixels = rng.integers(0, 255, (6, 6, 3), dtype=np.uint8)
                pil.fromarray(pixels).save(tmp_path / day / label / f"{number}.png")  # both days have a 0.png
    run("learn", "monday", "--backbone", "identity", "--ledger", "-o", "m")
    run("learn", "tuesday", "--append", "m", "-o", "m")
    assert counts("m") == {"cat": 6, "dog": 6}
    shutil.move("monday", "elsewhere")
    assert "8 of 8 rows were learned already" in run("learn", "elsewhere", "--append", "m", "-o", "m", code=1).stderr
    run("forget", "m", "elsewhere", "-o", "m")
    assert counts("m") == {"cat": 2, "dog": 2}
