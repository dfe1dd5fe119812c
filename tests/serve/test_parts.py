"""What the parts of a service promise each other."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
import warnings

import numpy as np
import pytest

from aircl import AIRClassifier, Client, ServiceError
from aircl.cli import served as served_module
from aircl.serve.changes import Change, Rows
from aircl.serve.errors import BusyError, StorageError
from aircl.serve.gatherer import Gatherer
from aircl.serve.journal import Entry, Journal, JournalError
from aircl.serve.logs import log_to_stderr
from aircl.serve.solver import Moment, solve
from aircl.serve.tokens import Tokens, add_token, read_tokens, remove_token
from aircl.serve.versions import Directory
from aircl.storage.errors import InputError

X, Y = np.eye(3), ["cat", "dog", "owl"]


# -- predictions --
class Held:
    """Predictions whose first product waits until it is let go."""

    def __init__(self, solved):
        self.solved, self.products, self.threads = solved, [], set()
        self.begun, self.let_go = threading.Event(), threading.Event()

    def __call__(self, X):
        self.products.append(len(X))
        self.threads.add(threading.current_thread())
        self.begun.set()
        assert self.let_go.wait(60)
        return self.solved, self.solved.snapshot.predict_log_proba(X)


@pytest.fixture
def solved():
    return solve(Moment(AIRClassifier(0.1, expansion=None, calibrate=False).fit(X, Y), 1, 3))


def gathered(solved, rows, max_rows=1000):
    """Ask for predictions of many, all but the first while its product is being made."""
    held = Held(solved)
    gatherer = Gatherer(held, max_rows)

    async def ask():
        first = asyncio.create_task(gatherer.ask(rows[0]))
        await asyncio.sleep(0)
        await asyncio.to_thread(held.begun.wait, 60)
        others = [asyncio.create_task(gatherer.ask(part)) for part in rows[1:]]
        await asyncio.sleep(0)  # they ask
        held.let_go.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    try:
        return asyncio.run(ask()), held.products
    finally:
        gatherer.stop()


def test_predictions_that_wait_are_made_by_one_product(solved):
    expected = solved.snapshot.predict_log_proba(X)
    answers, products = gathered(solved, [X[:1], X[1:2], X[2:], X])
    assert products == [1, 5]
    for (used, log_p), part in zip(answers, (expected[:1], expected[1:2], expected[2:], expected), strict=True):
        assert used is solved
        np.testing.assert_allclose(log_p, part, rtol=1e-12)


@pytest.mark.parametrize(("short", "in_loop"), [(60.0, True), (0.0, False)])
def test_what_is_asked_in_one_turn_is_one_product_and_a_short_one_stays_in_the_loop(short, in_loop, solved):
    held = Held(solved)
    held.let_go.set()
    gatherer = Gatherer(held, 1000, short)

    async def ask():
        await gatherer.ask(X)  # in the thread: nobody knows yet how long it takes
        held.threads.clear()
        return await asyncio.gather(*(gatherer.ask(X[i : i + 1]) for i in range(3)))

    try:
        answers = asyncio.run(ask())
    finally:
        gatherer.stop()
    assert held.products == [3, 3]
    assert held.threads == {threading.main_thread()} or not in_loop
    assert threading.main_thread() not in held.threads or in_loop
    np.testing.assert_allclose(np.concatenate([a[1] for a in answers]), solved.snapshot.predict_log_proba(X))


def test_one_that_fails_fails_alone(solved):
    answers, _ = gathered(solved, [X[:1], X[1:], np.ones((1, 7)), X])
    assert isinstance(answers[2], ValueError)
    assert [len(answers[i][1]) for i in (0, 1, 3)] == [1, 2, 3]


def test_what_waits_is_limited(solved):
    answers, _ = gathered(solved, [X[:1], X[:2], X[:2]], max_rows=3)
    assert [isinstance(answer, BusyError) for answer in answers] == [False, False, True]


def test_a_prediction_says_how_far_behind_it_is(place, local):
    with local(place) as service:
        service.learn(X, Y)
        service.wait()
        with service.service.writer.model._learner._solving:  # so nothing is solved for now
            service.learn(-X, ["fox"] * 3)
            answer = service.predict(X[0]).json()
            assert (answer["version"], answer["rows_behind"]) == (1, 3)
        service.wait()
        answer = service.predict(-X).json()
        assert (answer["version"], answer["rows_behind"]) == (2, 0)
        assert answer["predictions"][0]["label"] == "fox"


# -- the journal --
def test_a_group_is_one_transaction(tmp_path):
    journal = Journal(tmp_path, "a")
    twice = [
        Entry(1, "k", b"", "{}", Change("learn", Rows(X, Y))),
        Entry(2, "k", b"", "{}", Change("learn", Rows(X, Y))),
    ]
    with pytest.raises(StorageError):
        journal.append(twice)
    assert list(journal.after(0)) == []
    journal.append(twice[:1])
    ((number, change),) = journal.after(0)
    assert number == 1
    np.testing.assert_array_equal(change.rows.X, X)
    journal.close()


def test_a_journal_of_another_service_or_a_damaged_one_is_refused(tmp_path):
    Journal(tmp_path, "a").close()
    with pytest.raises(JournalError, match="another service"):
        Journal(tmp_path, "b")
    (tmp_path / "journal.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(JournalError, match="damaged"):
        Journal(tmp_path, "a")


def test_a_digest_depends_on_the_service(tmp_path):
    digests = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        journal = Journal(tmp_path / name, name)
        digests |= {journal.digest(b"x", b"y"), journal.digest(b"xy")}
        journal.close()
    assert len(digests) == 4


# -- tokens --
def test_tokens_are_kept_as_hashes(tmp_path):
    path = tmp_path / "tokens.json"
    secret = add_token(path, "app", ("predict",))
    assert secret not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ValueError, match="already"):
        add_token(path, "app", ("predict",))
    with pytest.raises(ValueError, match="no token for 'web'"):
        remove_token(path, "web")
    remove_token(path, "app")
    assert read_tokens(path) == ()
    assert path.stat().st_mode & 0o777 == 0o600


# -- directories --
def test_a_directory_is_made_once(place, tmp_path):
    with pytest.raises(ValueError, match="is there already"):
        place.make(AIRClassifier())
    with pytest.raises(ValueError, match="not the directory of a service"):
        Directory(tmp_path).read()
    assert place.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"format": 1, "versions": []}', '{"format": 1}'])
def test_a_damaged_list_is_refused(text, place):
    (place.path / "service.json").write_text(text)
    with pytest.raises(ValueError, match=r"service\.json"):
        place.read()


def test_damaged_files_are_refused_or_read(place, tmp_path):
    """Bytes that are changed at random: an error of our own, or what can be used."""
    rng, refused = random.Random(0), 0
    add_token(place.path / "tokens.json", "app", ("predict", "learn"))
    for name, read in (("service.json", place.read), ("tokens.json", lambda: read_tokens(place.path / "tokens.json"))):
        path = place.path / name
        good = path.read_bytes()
        for _ in range(100):
            content = bytearray(good)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(content))
                content[at : at + rng.choice((0, 1, 9))] = rng.choice((b"", b"\xff", b"[", b'"', b"-1", b"null", b"{}"))
            path.write_bytes(content)
            try:
                read()
            except InputError:
                refused += 1
    assert refused > 100


# -- client and command line --
def test_the_client_does_everything(place, token, processes, client_of, tmp_path):
    AIRClassifier(0.1, expansion=None, calibrate=False).fit(-X, ["fox"] * 3).save(tmp_path / "m")
    with client_of(processes(place.path, "--checkpoint-rows", "3")) as client:
        first = client.learn(X, Y, key="mine")
        assert client.learn(X, Y, key="mine") == {**first, "repeated": True}
        client.merge(tmp_path / "m")
        assert client.classes() == {"cat": 1, "dog": 1, "owl": 1, "fox": 3}
        client.forget(classes=["dog"])
        client.forget(X[:1], ["cat"])
        assert client.classes() == {"owl": 1, "fox": 3}
        client.rollback(first["version"])
        assert client.classes() == {"cat": 1, "dog": 1, "owl": 1}
        assert client.versions()[-1]["reason"] == f"rolled back to {first['version']}"
        assert client.expected_accuracy()["expected"] is None
        with pytest.raises(ServiceError, match="3 rows but 1 labels") as refused:
            client.learn(X, ["cat"])
        assert refused.value.status == 422


def test_a_client_gives_up_after_a_while():
    with Client("http://127.0.0.1:9", timeout=1, patience=0) as client, pytest.raises(OSError):  # noqa: PT011
        client.health()


def test_predict_asks_a_service(place, token, processes, forks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    rows = 3 * X[y] + rng.standard_normal((60, 3))
    np.savez("rows.npz", X=rows, y=y)
    assert forks.run("learn", "rows.npz", "--label", "y", "-o", "model.safetensors").code == 0
    place = Directory(tmp_path / "other")
    place.make(AIRClassifier.load("model.safetensors"))
    url = processes(place.path).url
    for options in ((), ("--proba",)):
        local = forks.run("predict", "model.safetensors", "rows.npz", "--label", "y", *options)
        served = forks.run("predict", "--server", url, "rows.npz", "--label", "y", *options)
        assert local.code == served.code == 0
        if options:
            mine, theirs = ([list(map(float, line.split(","))) for line in out.splitlines()[1:]]
                            for out in (local.stdout, served.stdout))  # fmt: skip
            np.testing.assert_allclose(theirs, mine, atol=1e-9)
        else:
            assert served.stdout == local.stdout
    asked = []  # rows of a request: so many that their probabilities are not too many for one answer
    ask = Client.ask
    monkeypatch.setattr(Client, "ask", lambda self, X, **options: asked.append(len(X)) or ask(self, X, **options))
    monkeypatch.setattr(served_module, "_PROBABILITIES", 21)
    served = served_module.ServedModel(url, None)
    p = served.predict_proba(rows)
    served._client.close()
    np.testing.assert_allclose(p, AIRClassifier.load("model.safetensors").predict_proba(rows), atol=1e-9)
    assert asked == [7] * 8 + [4]
    assert forks.run("predict", "model.safetensors").code == 2
    gone = forks.run("predict", "--server", url, "--token", "x", "absent.npz")
    assert gone.code == 1


def test_predict_sends_texts_and_images(processes, forks, tmp_path, monkeypatch):
    """What a service with a backbone is asked is what a file of the same model answers."""
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    for number in range(12):
        folder = tmp_path / "pictures" / ("night", "day")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (5, 4), (200 * (number % 2) + number,) * 3).save(folder / f"{number}.png")
    names = ["Paris", "Lyon", "Nantes", "Tokyo", "Osaka", "Kyoto"]
    rows = [f'"{name}",{"fr" if place < 3 else "jp"}' for place, name in enumerate(names)]
    (tmp_path / "cities.csv").write_text("city,label\n" + "\n".join(rows) + "\n")
    for files, backbone in (("cities.csv", "char-ngrams"), ("pictures", "identity")):
        model = f"{backbone}.safetensors"
        assert forks.run("learn", files, "--backbone", backbone, "-o", model).code == 0
        url = processes(tmp_path / backbone, "--init", "--model", model).url
        column = ("--text", "city") if files == "cities.csv" else ()
        for options in ((), ("--proba",), ("--confidence", "0.5", "--novelty", "0.01")):
            local = forks.run("predict", model, files, *options)
            served = forks.run("predict", "--server", url, files, *column, *options)
            assert local.code == served.code == 0, served.stderr
            if options:
                assert served.stdout.splitlines()[0] == local.stdout.splitlines()[0]
            else:
                assert served.stdout == local.stdout
        assert forks.run("predict", "--server", url, files, *column, "--priors", "equal").code == 1


def test_logs_hold_no_contents(place, token, processes, client_of):
    running = processes(place.path, "--log-level", "debug")
    with client_of(running) as client:
        client.learn([[0.123456, 2.0]], ["a very secret label"])
        with pytest.raises(ServiceError):
            client.learn([[0.123456, 2.0]], ["a very secret label", "another"])
        with pytest.raises(ServiceError):
            client.forget([[0.123456, 9.0]], ["an unknown secret"])
    running.end()
    entries = [json.loads(line) for line in running.process.stderr.splitlines()]
    assert {"recovered", "change", "refused", "checkpoint"} <= {entry["event"] for entry in entries}
    assert "secret" not in running.process.stderr
    assert "123456" not in running.process.stderr


def test_a_warning_is_logged_without_what_it_says(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        shown, loggers = (
            warnings.showwarning,
            [logging.getLogger(name) for name in ("aircl.serve", "uvicorn", "asyncio")],
        )
        before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
        try:
            log_to_stderr("info")
            warnings.warn("a row: [0.123456]", RuntimeWarning, stacklevel=1)
            logging.getLogger("asyncio").error("never retrieved\nfuture: ValueError('a row: [0.123456]')")
        finally:
            warnings.showwarning = shown
            for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
                logger.handlers, logger.propagate = handlers, propagate
                logger.setLevel(level)
    warned, lost = map(json.loads, capsys.readouterr().err.splitlines())
    assert (warned["event"], warned["warning"]) == ("warned", "RuntimeWarning")
    assert warned["where"].startswith("test_parts.py:")
    assert lost["event"] == "never retrieved"


def test_tokens_are_made_and_taken_back(place, forks, tmp_path):
    file = tmp_path / "who.json"
    made = forks.run("token", place.path, "app", "--scope", "learn", "--tokens", file)
    assert made.code == 0
    secret = made.stdout.strip()
    assert Tokens(file).find(secret).scopes == ("learn",)
    assert not (place.path / "tokens.json").exists()
    assert file.stat().st_mode & 0o077 == 0
    assert "Remove it first" in forks.run("token", place.path, "app", "--tokens", file).stderr
    assert forks.run("token", place.path, "app", "--tokens", file, "--remove").code == 0
    assert Tokens(file).find(secret) is None
    assert "It has: none" in forks.run("token", place.path, "app", "--tokens", file, "--remove").stderr
    assert forks.run("token", place.path, "app", "--scope", "everything").code == 2
    for absent in (("nowhere", "app"), (place.path, "app", "--remove")):
        refused = forks.run("token", *absent)
        assert (refused.code, "Traceback" in refused.stderr) == (1, False)


def test_when_it_last_learned_is_known_after_a_restart(place, local):
    with local(place) as service:
        assert service.service.catalogue.last_learned is None
        service.learn(X, Y)
    with local(place) as service:
        assert service.service.writer.recent.last_learned is None
        assert service.service.catalogue.last_learned == service.service.catalogue.current.made
