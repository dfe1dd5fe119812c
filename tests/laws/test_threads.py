"""Threads that do everything at once: what was learned is what one thread would have learned, in some order."""

import itertools
import sys
import threading

import numpy as np
import pytest
from laws_learners import LEARNERS, STORES, rows
from sklearn.base import clone

import aircl
from aircl import engine
from aircl.engine import Learner, Ridge

PATIENCE = 120
pytestmark = pytest.mark.filterwarnings("ignore::aircl.engine.memory.MemoryLimitWarning")


@pytest.fixture(autouse=True)
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def all_at_once(*calls):
    """Run calls in threads that start together; raise what one of them has raised."""
    barrier, errors = threading.Barrier(len(calls)), []

    def run(call):
        barrier.wait(PATIENCE)
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    if errors:
        raise errors[0]


def batches(number, count=6):
    """Batches of one thread: a class of its own in every one, and two that all threads bring."""
    for k in range(count):
        X, y = rows(100 * number + k, n=8, classes=(0, 1))
        yield X, np.where(np.arange(8) < 3, 10 + 10 * number + k, y)


def assert_equal_to_serial(clf, name, data):
    serial = clone(LEARNERS[name])
    for X, y in data:
        serial.partial_fit(X, y)
    np.testing.assert_array_equal(clf.classes_, serial.classes_)
    np.testing.assert_allclose(clf.class_count_, serial.class_count_)
    query = rows(99)[0]
    np.testing.assert_allclose(clf.decision_function(query), serial.decision_function(query), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("first", [True, False], ids=["from the first batch on", "later"])
@pytest.mark.parametrize("name", STORES)
def test_writers_that_bring_classes(name, first):
    for _ in range(4):
        clf, start = clone(LEARNERS[name]), list(batches(9, 1))
        if not first:
            clf.partial_fit(*start[0])
        own = [list(batches(number)) for number in range(4)]
        all_at_once(*(lambda clf=clf, part=part: [clf.partial_fit(X, y) for X, y in part] for part in own))
        assert_equal_to_serial(clf, name, itertools.chain([] if first else start, *own))


@pytest.mark.parametrize("name", STORES)
def test_readers_beside_writers_see_whole_states(name, tmp_path):
    clf = clone(LEARNERS[name]).partial_fit(*rows(0))
    query, done = rows(99)[0], threading.Event()
    own = [list(batches(number, 10)) for number in range(2)]

    def write(part):
        for X, y in part:
            clf.partial_fit(X, y)

    def predict():
        while not done.is_set():
            scores, before = clf.decision_function(query), len(clf.classes_)
            assert scores.shape[1] <= before
            assert set(clf.predict(query).tolist()) <= set(clf.classes_.tolist())
            snapshot = clf.snapshot()
            assert snapshot.decision_function(query).shape[1] == len(snapshot.classes_)
            assert len(clf.class_count_) <= len(clf.classes_)

    def save():
        path = tmp_path / "m.safetensors"
        while not done.is_set():
            clf.save(path)
            loaded = type(clf).load(path)
            assert (loaded.class_count_.sum() - 40) % 8 == 0  # whole batches

    def write_all():
        try:
            all_at_once(*(lambda part=part: write(part) for part in own))
        finally:
            done.set()

    all_at_once(write_all, predict, predict, save)
    assert_equal_to_serial(clf, name, itertools.chain([rows(0)], *own))


@pytest.mark.parametrize("name", ["per-class", "per-class, spilling"])
def test_forgetting_classes_beside_predictions_never_changes_a_label(name):
    """Classes stand far apart: whatever is there is predicted right, or is gone."""
    centres = 50 * np.eye(12)[:6]
    clf = clone(LEARNERS[name]).partial_fit(np.repeat(centres, 8, axis=0), np.repeat(np.arange(6), 8))
    done = threading.Event()

    def change():
        try:
            for _ in range(30):
                clf.forget(classes=[0, 1])
                clf.partial_fit(np.repeat(centres[:2], 8, axis=0), np.repeat([0, 1], 8))
        finally:
            done.set()

    def predict():
        while not done.is_set():
            assert clf.predict(centres[2:]).tolist() == [2, 3, 4, 5]

    all_at_once(change, predict, predict)
    assert clf.class_count_.tolist() == [8] * 6


@pytest.mark.parametrize("name", STORES)
def test_merging_beside_learning_counts_everything_once(name):
    clf = clone(LEARNERS[name]).partial_fit(*rows(0, classes=(0, 1)))
    parts = [clone(LEARNERS[name]).partial_fit(*rows(k, n=12, classes=(50 + k,))) for k in range(4)]
    more = [rows(60 + k, n=6, classes=(0, 1)) for k in range(6)]
    all_at_once(
        lambda: [clf.merge(part) for part in parts[:2]],
        lambda: [clf.merge(part) for part in parts[2:]],
        lambda: [clf.partial_fit(X, y) for X, y in more],
        lambda: [part.partial_fit(*rows(70, n=2, classes=(50 + k,))) for k, part in enumerate(parts)],
    )
    assert clf.class_count_[:2].sum() == 40 + 36
    assert all(count in (12, 14) for count in clf.class_count_[2:].tolist())
    with pytest.raises(aircl.StoreError):
        clf.merge(parts[0])


def test_a_solution_made_while_a_change_ends_keeps_what_its_temperature_needs():
    class Late(Learner):
        """A reader solves the new state before the writer has let go of the old solution."""

        def _release(self):
            self.solution(rule)
            super()._release()

    rule = Ridge(1.0, "inverse", "mean")
    learner = Late.empty(engine.STORES["per-class"], engine.Space(n_features=12, dtype=np.float64))
    for seed in range(2):
        learner.learn(*rows(seed))
        assert learner.solved(rule).version == learner.state.version
        assert learner.solution(rule).temperature > 0


def test_a_solution_that_a_writer_releases_while_a_reader_begins_is_made_again():
    class Early(Learner):
        """While a reader begins, another one solves the state and a writer changes it."""

        is_disturbed = False

        def absorb(self, room=None):
            state = super().absorb(room)
            if self.is_disturbed:
                self.is_disturbed = False
                self.solution(rule)
                self.learn(*rows(1))
            return state

    rule = Ridge(1.0, "inverse", "mean")
    learner = Early.empty(engine.STORES["per-class"], engine.Space(n_features=12, dtype=np.float64))
    learner.learn(*rows(0))
    learner.is_disturbed = True
    before = learner.solved(rule)
    assert before.version < learner.state.version
    assert before.solution.temperature > 0
    assert learner.solution(rule).temperature > 0
