"""Whatever is raised, wherever: a learner is as before the call or as after it, never between.

A trace function raises at the k-th line that runs inside aircl. `make test` tries a sample of the lines, `make
test-laws` every one of them (AIRCL_EVERY_LINE=1); of a line that runs more than a hundred times in one call, for every
row of a loop, the first and last runs and every fiftieth.
"""

import copy
import gc
import os
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest
from laws_learners import LEARNERS, QUERY, STORES, begun, differences, look, other, rows
from sklearn.base import clone

import aircl
from aircl.engine.learner import Learner

EVERY = bool(os.environ.get("AIRCL_EVERY_LINE"))
SAMPLE = 12  # lines of each operation in the fast tests
HOME = str(Path(aircl.__file__).parent)

pytestmark = [
    pytest.mark.filterwarnings("ignore::aircl.engine.memory.MemoryLimitWarning"),
    # An exception between opening a file and the block that closes it: the file is closed when it is collected.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger or a coverage tool is tracing"),
]


class Injected(BaseException):
    """What is raised: not an Exception, as an interrupt is none."""


class Tracer:
    """Notes the lines that run in aircl, and raises at one of them."""

    def __init__(self, at=None):
        self.at, self.ran = at, []

    @property
    def lines(self):
        return len(self.ran)

    def chosen(self):
        """Return which lines to raise at, counted from 1."""
        if not EVERY:
            return sorted({1 + k * self.lines // SAMPLE for k in range(SAMPLE)} | {self.lines})
        total, runs = Counter(self.ran), Counter()
        chosen = []
        for at, line in enumerate(self.ran, start=1):
            runs[line] += 1
            if total[line] <= 100 or runs[line] % 50 == 0 or not 25 < runs[line] <= total[line] - 25:
                chosen.append(at)
        return chosen

    def __call__(self, frame, event, argument):
        # A finaliser has nobody to raise to: what it did not remove goes with its directory.
        if not frame.f_code.co_filename.startswith(HOME) or frame.f_code.co_name == "_discard":
            return None
        if event == "line":
            self.ran.append((frame.f_code, frame.f_lineno))
            if self.lines == self.at:
                raise Injected(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return self


def run(operation, clf, at=None):
    """Run an operation under a tracer; return it, and where it raised."""
    tracer, where = Tracer(at), None
    gc.disable()  # a finaliser that is called in between is not the operation
    sys.settrace(tracer)
    try:
        operation(clf)
    except Injected as error:
        where = str(error)
    finally:
        sys.settrace(None)
        gc.enable()
    return tracer, where


def learn(clf):
    clf.partial_fit(*rows(11, n=9, classes=(0, 4)))


def learn_much(clf):
    clf.partial_fit(*rows(12, n=4200, classes=(0, 1, 5)))


def merge(clf):
    clf.merge(clf.other)


def forget_rows(clf):
    X, y = rows(0)
    clf.forget(X[:7], y[:7])


def forget_classes(clf):
    clf.forget(classes=[1, 3])


def end_phase(clf):
    clf.end_phase()


def refresh(clf):
    clf.refresh()


def predict(clf):
    clf.predict(QUERY)


def fit(clf):
    clf.fit(*rows(13, classes=(7, 8)))


OPERATIONS = (learn, learn_much, merge, forget_rows, forget_classes, end_phase, refresh, predict, fit)


def refuses(operation, clf):
    """Whether the operation is one that this learner declines."""
    try:
        operation(clf)
    except aircl.StoreError:
        return True
    return False


def twin_of(name):
    clf = begun(name)
    clf.other = other(name)
    return clf


def twin(clf):
    """Another learner with the same state, which is a value: whatever one of them does, the other must not notice."""
    twin = copy.copy(clf)
    twin._learner = Learner(clf._learner.state, clf._learner.memory)
    twin._learner._last = clf._learner._last
    return twin


CASES = [
    (name, operation)
    for name in LEARNERS
    for operation in OPERATIONS
    if EVERY or name in STORES or operation in (learn, merge, end_phase)
]


@pytest.mark.parametrize(("name", "operation"), CASES, ids=[f"{n}-{o.__name__}" for n, o in CASES])
def test_an_exception_at_any_line_leaves_the_state_before_or_after(name, operation, record_property):
    first = twin_of(name)
    before = look(twin(first))
    if refuses(operation, changed := twin(first)):
        assert not differences(look(changed), before)
        pytest.skip("declined, and nothing was changed")
    tracer, _ = run(operation, changed := twin(first))
    after, chosen = look(changed), tracer.chosen()
    record_property("lines", len(chosen))
    torn = []
    for at in chosen:
        clf = twin(first)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, where = run(operation, clf, at)
        if where is None:  # it ran fewer lines this time
            continue
        now = look(clf)
        if differences(now, before) and differences(now, after):
            torn.append((at, where, differences(now, before), differences(now, after)))
            continue
        clf.partial_fit(*rows(21, n=5, classes=(30,)))  # and it goes on
        if clf.class_count_.sum() != now["count"].sum() + 5 or 30 not in clf.classes_.tolist():
            torn.append((at, where, "does not go on"))
    assert not torn, f"{len(torn)} of {len(chosen)} lines: {torn[:3]}"


def test_an_exception_at_any_line_of_a_replacement_leaves_the_old_row_or_the_new(record_property):
    X, y = rows(31, n=20)
    old = {"X": X, "y": y, "ids": list(range(20))}

    def learned():
        return clone(LEARNERS["ledger"]).fit(X, y, ids=range(20))

    def replace(clf):
        clf.partial_fit(X[15:] + 1, y[15:], ids=range(15, 20), on_duplicate="replace", replaced=old)

    before, after = learned(), learned()
    tracer, _ = run(replace, after)
    before, after = look(before), look(after)
    assert differences(before, after)
    record_property("lines", len(tracer.chosen()))
    for at in tracer.chosen():
        clf = learned()
        _, where = run(replace, clf, at)
        assert not differences(look(clf), before) or not differences(look(clf), after), where


@pytest.mark.parametrize("name", LEARNERS if EVERY else STORES)
def test_an_exception_at_any_line_of_save_leaves_the_old_file_or_the_new(name, tmp_path, record_property):
    path = tmp_path / "m.safetensors"

    def save(clf):
        clf.save(path)

    old = begun(name)
    old.save(path)
    old_file, old = path.read_bytes(), look(old)
    new = begun(name).partial_fit(*rows(11, n=9, classes=(0, 4)))
    tracer, _ = run(save, twin(new))
    cls, new_look = type(new), look(twin(new))
    record_property("lines", len(tracer.chosen()))
    for at in tracer.chosen():
        path.write_bytes(old_file)
        clf = twin(new)
        _, where = run(save, clf, at)
        found = look(cls.load(path))
        assert not differences(found, old) or not differences(found, new_look), where
        assert not differences(look(clf), new_look), where
        assert [p.name for p in tmp_path.iterdir()] == [path.name], where
