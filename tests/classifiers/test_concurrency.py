"""Concurrent predictions are safe: one solve, one answer, no deadlock."""

import itertools
import threading
from concurrent.futures import Future

import numpy as np
import pytest
from sklearn.base import clone

from aircl import ACILClassifier, AIRClassifier
from aircl.engine import Ridge, StoreError
from aircl.expansion import RandomReLU

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

STORES = ("per-class", "shared", "pooled")
LEARNERS = {
    f"{cls.__name__}-{store}": cls(store=store, **PAPER) for cls in (AIRClassifier, ACILClassifier) for store in STORES
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
every_store = pytest.mark.parametrize("store", STORES)
THREADS = 16
PATIENCE = 300.0  # seconds after which a thread that has not come back hangs


def rows(seed, n=60, n_features=40, classes=(0, 1, 2)):
    random = np.random.default_rng(seed)
    y = np.append(classes, random.choice(classes, n - len(classes)))
    return random.normal(size=(n, n_features)) + y[:, None] / 3, y


def all_at_once(*calls):
    """Run every call in a thread of its own, starting together; return what they return."""
    barrier = threading.Barrier(len(calls))
    outcomes = [Future() for _ in calls]

    def together(call, outcome):
        try:
            barrier.wait(PATIENCE)
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    for call, outcome in zip(calls, outcomes, strict=True):
        threading.Thread(
            target=together, args=(call, outcome), daemon=True
        ).start()  # one that hangs ends with the test
    return [outcome.result(PATIENCE) for outcome in outcomes]


def weights_of(clf):
    """Return the weights as if they were a prediction."""
    return lambda X: clf.coef_


class Counted:
    """A function that counts its calls and takes long enough for another thread to come in between."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *arguments):
        self.calls += 1
        threading.Event().wait(0.02)
        return self.function(*arguments)


@pytest.fixture
def solve(monkeypatch):
    solve = Counted(Ridge.solve_problem)
    monkeypatch.setattr(Ridge, "solve_problem", lambda *arguments: solve(*arguments))
    return solve


@every_learner
def test_threads_that_ask_at_once_get_one_answer_from_one_solve(learner, solve):
    X, y = rows(0)
    clf = clone(learner)
    for batch in range(3):
        clf.partial_fit(X + batch, y)
        solve.calls = 0
        calls = [clf.predict, clf.predict_proba, clf.decision_function, weights_of(clf)]
        answers = all_at_once(*(lambda call=call: call(X) for call in calls for _ in range(THREADS // 4)))
        assert solve.calls == 1
        twin = clone(learner)
        for learned in range(batch + 1):
            twin.partial_fit(X + learned, y).predict(X)  # gamma lags in the same way
        for i, call in enumerate([twin.predict, twin.predict_proba, twin.decision_function, weights_of(twin)]):
            group = answers[i * THREADS // 4 : (i + 1) * THREADS // 4]
            for answer in group:
                np.testing.assert_array_equal(answer, group[0])
            np.testing.assert_allclose(group[0], call(X), rtol=1e-10, atol=1e-12)


@every_learner
def test_a_solution_is_reused_until_something_changes(learner, solve):
    X, y = rows(0)
    clf = clone(learner).partial_fit(X, y)
    for _ in range(3):
        clf.predict(X), clf.predict_proba(X), clf.coef_, clf.gamma_, clf.class_weight_
    assert solve.calls == 1
    clf.set_params(gamma=clf.gamma).predict(X)
    clf.partial_fit(X[:0], y[:0]).predict(X)
    assert solve.calls == 1  # nothing changed
    clf.set_params(gamma=2.0).predict(X)
    assert solve.calls == 2
    clf.partial_fit(X, y).predict(X)
    assert solve.calls == 3


@every_learner
def test_learning_does_not_solve(learner, solve):
    clf = clone(learner)
    for seed in range(3):
        clf.partial_fit(*rows(seed))
    clf.end_phase()
    assert solve.calls == 0


@every_store
def test_an_expansion_predicts_from_many_threads(store):
    X, y = rows(0)
    clf = AIRClassifier(store=store, expansion=RandomReLU(50, random_state=0), calibrate=False).partial_fit(X, y)
    answers = all_at_once(*[lambda: clf.predict_proba(X)] * THREADS)
    for answer in answers:
        np.testing.assert_array_equal(answer, answers[0])


@every_store
def test_every_learned_attribute_may_be_read_at_once(store):
    X, y = rows(0)
    expected = np.bincount(y)
    for _ in range(5):
        clf = AIRClassifier(store=store, **PAPER).partial_fit(X, y)
        names = ("class_count_", "class_weight_", "gamma_", "coef_", "nbytes_", "gamma_path_", "classes_")
        answers = all_at_once(*(lambda clf=clf, name=name: getattr(clf, name) for name in names * 2))
        for counts in (answers[0], answers[len(names)]):
            np.testing.assert_array_equal(counts, expected)


@every_store
def test_counts_are_whole_while_another_thread_absorbs_what_waits(store, monkeypatch):
    X, y = rows(0)
    clf = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y)
    statistics = type(clf._learner.state.statistics)
    plus, absorbing, go_on = statistics.plus, threading.Event(), threading.Event()

    def paused(self, batch, reserve=0):
        absorbing.set()
        go_on.wait(PATIENCE)
        return plus(self, batch, reserve)

    monkeypatch.setattr(statistics, "plus", paused)  # holds the other thread between taking the rows and adding them
    predicting = threading.Thread(target=clf.predict, args=(X,), daemon=True)
    counted = []
    counting = threading.Thread(target=lambda: counted.append(clf.class_count_), daemon=True)
    predicting.start()
    assert absorbing.wait(PATIENCE)
    counting.start()
    counting.join(0.2)  # it may answer at once or wait for the other thread; it may not miscount
    go_on.set()
    predicting.join(PATIENCE)
    counting.join(PATIENCE)
    np.testing.assert_array_equal(counted[0], np.bincount(y))


@every_store
def test_predicting_and_saving_at_once_give_whole_answers(store, tmp_path):
    X, y = rows(0)
    expected = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y).coef_
    for repeat in range(5):
        clf = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y)
        paths = [tmp_path / f"{repeat}-{i}" for i in range(4)]
        all_at_once(
            *(lambda clf=clf, path=path: clf.save(path) for path in paths),
            *[lambda clf=clf: clf.predict(X)] * 4,
        )
        for path in paths:
            np.testing.assert_allclose(AIRClassifier.load(path).coef_, expected, rtol=1e-9, atol=1e-11)


@every_store
def test_of_two_that_merge_each_other_one_takes_all_and_the_other_stays(store):
    for _ in range(10):
        a, b, c, d = (
            AIRClassifier(0.5, store=store, **PAPER).partial_fit(*rows(i, n_features=8, classes=(3 * i, 3 * i + 1)))
            for i in range(4)
        )
        assert all_at_once(lambda a=a, b=b: attempt(b, a), lambda c=c, d=d: attempt(d, c)) == [True, True]
        outcomes = all_at_once(lambda b=b, d=d: attempt(b, d), lambda b=b, d=d: attempt(d, b))
        assert sorted(outcomes) == [False, True]
        assert sorted([b.class_count_.sum(), d.class_count_.sum()]) == [120, 240]


def attempt(into, other):
    """Merge; the second of two that merge each other finds its own samples and refuses."""
    try:
        into.merge(other)
    except StoreError:
        return False
    return True


def test_many_merges_and_predictions_at_once_do_not_deadlock():
    shards = [AIRClassifier(0.5, **PAPER).partial_fit(*rows(i, n_features=8)) for i in range(6)]
    X, _ = rows(9, n_features=8)
    pairs = list(itertools.permutations(range(6), 2))
    calls = [lambda i=i, j=j: attempt(shards[i], shards[j]) for i, j in pairs]
    calls += [lambda clf=clf: clf.predict(X) for clf in shards]
    all_at_once(*calls)


@every_store
def test_shards_merged_into_one_from_many_threads_are_each_there_once(store):
    shards = [
        AIRClassifier(0.5, store=store, **PAPER).partial_fit(*rows(i, n_features=8, classes=(2 * i, 2 * i + 1)))
        for i in range(4)
    ]
    targets = [
        AIRClassifier(0.5, store=store, **PAPER).partial_fit(*rows(9, n_features=8, classes=(90 + i,)))
        for i in range(4)
    ]

    def gather(target):
        for shard in shards:
            target.merge(shard)
        return target.class_count_.sum()

    # The shards are read by four threads at once, and sealed by whichever comes first.
    assert all_at_once(*(lambda target=target: gather(target) for target in targets)) == [5 * 60] * 4
    alone = clone(targets[0]).partial_fit(*rows(9, n_features=8, classes=(90,)))
    gather(alone)
    np.testing.assert_allclose(targets[0].coef_, alone.coef_, rtol=1e-9, atol=1e-12)
