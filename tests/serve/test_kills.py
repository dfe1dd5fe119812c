"""Services that are killed while they learn: every change that was answered is there, exactly once.

Real processes, and then images of the directory at every step of the writer, each of which is opened.
"""

from __future__ import annotations

import itertools
import random
import shutil
import threading

import numpy as np
import pytest

from aircl import AIRClassifier, Client, ServiceError
from aircl.serve.journal import Journal
from aircl.serve.service import serving
from aircl.serve.settings import Settings
from aircl.serve.versions import Directory

from .conftest import PATIENCE

WIDTH = 4
KILLS = 50  # of one service


def changes(seed):
    """Yield changes without end, after which something is learned: rows to learn, and now and then some to forget."""
    rng = np.random.default_rng(seed)
    learned = []
    while True:
        if len(learned) > 3 and rng.random() < 0.2:
            yield "forget", *learned.pop(rng.integers(len(learned)))
        else:
            rows = int(rng.integers(1, 6))
            X, y = rng.standard_normal((rows, WIDTH)), rng.choice(["a", "b", f"of {seed}"], rows)
            learned.append((X, y))
            yield "learn", X, y


class Load:
    """Threads that change a service, whoever runs it at the moment, and repeat what was not answered by its key."""

    def __init__(self, token, n_threads):
        self.token, self.made = token, []
        self.news, self.url, self.ending = threading.Condition(), None, False
        self.threads = [threading.Thread(target=self.run, args=(seed,)) for seed in range(n_threads)]

    def go_on(self, url, n):
        """Have another service changed, and return after n more answers."""
        with self.news:
            self.url, enough = url, len(self.made) + n
            self.news.notify_all()
            assert self.news.wait_for(lambda: len(self.made) >= enough, timeout=PATIENCE)

    def end(self):
        """Have every thread end after the change that it is making."""
        self.ending = True
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def run(self, seed):
        for number, (kind, X, y) in enumerate(changes(seed)):
            url = None
            while True:
                with self.news:
                    self.news.wait_for(lambda before=url: self.url != before, timeout=PATIENCE)
                    url = self.url
                try:
                    with Client(url, self.token, timeout=PATIENCE, patience=0) as client:
                        answer = getattr(client, kind)(X, y, key=f"{seed}-{number}")
                except (OSError, ServiceError):
                    continue  # it was killed: the next one will be asked
                break
            with self.news:
                self.made.append((answer["version"], kind, X, y))
                self.news.notify_all()
            if self.ending:
                return


def twin(made):
    """Return a model that made the same changes one after the other."""
    model = AIRClassifier(0.1, expansion=None, calibrate=False)
    for _, kind, X, y in sorted(made, key=lambda entry: entry[0]):
        model.partial_fit(X, y) if kind == "learn" else model.forget(X, y)
    return model


def same(model, other):
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_allclose(model.class_count_, other.class_count_, rtol=1e-9)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("kills", "options"), [(3, ()), (3, ("--no-journal",)), pytest.param(KILLS, (), marks=pytest.mark.slow)]
)
def test_nothing_that_was_answered_is_lost(kills, options, place, token, processes):
    rng, load = random.Random(0), Load(token, 3)
    options = (place.path, "--checkpoint-rows", "20", "--keep-versions", "3", "--log-level", "error", *options)
    for thread in load.threads:
        thread.start()
    for _ in range(kills):
        running = processes(*options)
        load.go_on(running.url, rng.randint(1, 6))
        running.kill()  # in the midst of the next changes
    running = processes(*options)
    load.go_on(running.url, 1)
    load.end()
    assert running.end() == 143
    versions = [version for version, *_ in load.made]
    assert len(versions) == len(set(versions)) > kills
    same(place.load(place.read().current), twin(load.made))


# -- every step --
def steps(monkeypatch, copy):
    """Have the directory copied before everything that changes it: what one step leaves, the next one finds."""
    for owner, names in ((Journal, ("append", "remove", "erase")), (Directory, ("save", "write", "remove_unlisted"))):
        for name in names:
            monkeypatch.setattr(owner, name, watched(getattr(owner, name), copy))


def watched(step, copy):
    def run(*args, **kwargs):
        copy(step.__qualname__)
        return step(*args, **kwargs)

    return run


@pytest.mark.parametrize("journal", [True, False])
def test_every_step_can_be_the_last_one(journal, place, tmp_path, local, monkeypatch):
    """A copy of the directory at a step is what a kill leaves there: all that was answered by then is in it, once."""
    X, y = np.eye(3), ["cat", "dog", "owl"]
    other = AIRClassifier(0.1, expansion=None, calibrate=False).fit(X, ["fox", "fox", "cat"])
    other.save(tmp_path / "other")
    asked = [
        lambda service: service.learn(X, y, key="1"),
        lambda service: service.learn(2 * X, y, key="2"),
        lambda service: service.post("/forget", {"features": X[:1].tolist(), "labels": ["cat"]}, key="3"),
        lambda service: service.post("/forget", {"features": X[:1].tolist(), "labels": ["lion"]}, key="refused"),
        lambda service: service.http.post(
            "/merge",
            content=(tmp_path / "other").read_bytes(),
            headers={"Content-Type": "application/octet-stream", "Idempotency-Key": "4"},
        ),
        lambda service: service.post("/rollback", {"version": 0}, key="5"),
        lambda service: service.learn(X, y, key="6"),
    ]
    expected = [
        {},
        {"cat": 1, "dog": 1, "owl": 1},
        {"cat": 2, "dog": 2, "owl": 2},
        {"cat": 1, "dog": 2, "owl": 2},
        {"cat": 1, "dog": 2, "owl": 2},
        {"cat": 2, "dog": 2, "owl": 2, "fox": 2},
        {},
        {"cat": 1, "dog": 1, "owl": 1},
    ]
    images, answered = [], 0

    def copy(step):
        images.append((step, answered, tmp_path / f"image {len(images)}"))
        shutil.copytree(place.path, images[-1][2], ignore=shutil.ignore_patterns("lock", ".aircl*"))

    with local(place, journal=journal, checkpoint_rows=6) as service:
        with monkeypatch.context() as patch:
            steps(patch, copy)
            for number, ask in enumerate(asked):
                answer = ask(service)
                assert answer.status_code == (422 if number == 3 else 200), answer.text
                # A checkpoint that is due follows the answer, in the writer's thread: it belongs to this change.
                if journal and number == 1:
                    service.wait_for_version(2)
                answered = number + 1
        assert service.rows() == expected[-1]
    assert len(images) > 15
    for step, answered, path in images:
        with local(Directory(path), journal=journal) as service:
            durable = service.service.writer.durable
            assert all(number > durable.catalogue.current.version for number, _ in durable.journal.after(-1)), step
            listed = {path / version.file for version in durable.catalogue.versions}
            assert {*(path / "versions").iterdir()} == listed, step
            rows = service.rows()
            assert rows in (expected[answered], expected[answered + 1]), (step, answered)
            for ask in asked[answered:]:  # whoever was not answered repeats it
                assert ask(service).status_code in (200, 422)
            assert service.rows() == expected[-1], (step, answered)


def test_keys_do_not_pile_up(place, local):
    with local(place, keep_keys=10, checkpoint_rows=10) as service:
        for number in range(50):
            assert service.learn(np.eye(1), ["a"], key=str(number)).status_code == 200
        service.wait_for_version(50)
    journal = Journal(place.path, place.read().id)
    kept = [number for number in range(50) if journal.find(f":{number}") is not None]
    journal.close()
    assert kept == list(range(40, 50))


def test_a_second_writer_is_refused(place, local):
    with local(place), pytest.raises(ValueError, match="served by another process"):  # noqa: SIM117
        with serving(place, Settings()):
            pass


def test_numbers_are_not_given_twice(place, local):
    given = []
    for _ in range(3):
        with local(place) as service:
            given += [service.learn(np.eye(1), ["a"]).json()["version"] for _ in range(2)]
    assert given == list(itertools.islice(itertools.count(1), 6))
