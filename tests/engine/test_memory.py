"""Beyond the memory limit the same numbers come from files; nothing is silent and nothing is left behind."""

import errno
import gc
import os
import pickle

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.engine import Space, moments
from aircl.engine.memory import DiskSpace, MemoryLimitWarning, OnDisk, available_memory, parse_bytes

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

F, C = 400, 12
WORKSPACE = Space(F, np.float64).workspace_bytes


def stream(seed=0, batches=30):
    """Classes large enough to be packed, and small ones that stay factors."""
    rng = np.random.default_rng(seed)
    tail = 0.75 ** np.arange(C)
    for _ in range(batches):
        y = rng.choice(C, size=200, p=tail / tail.sum())
        yield np.maximum(rng.normal(size=(200, F)) + 0.1 * y[:, None], 0), y


def learn(clf, seed=0):
    for X, y in stream(seed):
        clf.partial_fit(X, y)
        clf.class_count_  # noqa: B018 (a look does no harm)
    return clf


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


@pytest.fixture(scope="module")
def unlimited():
    return learn(AIRClassifier(1.0, **PAPER))


# Room for about two packed matrices of F features beside the workspace.
LIMIT = WORKSPACE + 2 * F * (F + 1) * 4 + 2 * C * F * 8


def test_files_give_the_same_solution_and_go_away(directory, unlimited):
    with pytest.warns(MemoryLimitWarning, match="memory_limit"):
        limited = learn(AIRClassifier(1.0, memory_limit=LIMIT, **PAPER)).end_phase()
    store = limited._learner.state.statistics
    assert store.moments.nbytes + store.space.workspace_bytes <= LIMIT
    assert len(list(directory.iterdir())) == 1
    assert sum(moment.nbytes == 0 for moment in store.own_moments) >= 3
    np.testing.assert_allclose(limited.coef_, unlimited.coef_, rtol=1e-9, atol=1e-12)
    del limited, store
    gc.collect()
    assert list(directory.iterdir()) == []


@pytest.mark.filterwarnings("ignore::aircl.engine.memory.MemoryLimitWarning")
def test_every_operation_works_on_files(directory, unlimited, tmp_path_factory):
    limited = learn(AIRClassifier(1.0, memory_limit=LIMIT, **PAPER))
    # auto gamma, which reads every class's own second moment
    auto = AIRClassifier(**PAPER).merge(unlimited)
    limited.set_params(gamma="auto")
    assert limited.gamma_ == pytest.approx(auto.gamma_)
    limited.set_params(gamma=1.0)
    # persistence and pickling take what is in the files along
    path = tmp_path_factory.mktemp("models") / "clf.safetensors"
    limited.save(path)
    for copied in (AIRClassifier.load(path), pickle.loads(pickle.dumps(limited))):
        np.testing.assert_allclose(copied.coef_, unlimited.coef_, rtol=1e-9, atol=1e-12)
    # merging and forgetting, rows and classes
    other = learn(AIRClassifier(1.0, memory_limit=LIMIT, **PAPER), seed=1)
    both = learn(AIRClassifier(1.0, **PAPER).merge(unlimited), seed=1)
    limited.merge(other)
    np.testing.assert_allclose(limited.coef_, both.coef_, rtol=1e-9, atol=1e-12)
    for X, y in stream(1):
        limited.forget(X, y)
    np.testing.assert_allclose(limited.coef_, unlimited.coef_, rtol=1e-8, atol=1e-10)
    limited.forget(classes=[0, C - 1])
    assert limited.classes_.tolist() == list(range(1, C - 1))


@pytest.mark.filterwarnings("ignore::aircl.engine.memory.MemoryLimitWarning")
def test_learning_beyond_the_limit_writes_rows_once_and_factors_nothing(directory, monkeypatch):
    """Classes mixed in every batch: to factor a class whenever it goes to a file takes for ever."""
    rng, written = np.random.default_rng(0), []
    clf = AIRClassifier(1.0, memory_limit=WORKSPACE + 2**20, **PAPER)
    X, y = rng.normal(size=(C * 150, F)), np.arange(C * 150) % C
    with monkeypatch.context() as patch:
        patch.delattr(moments, "factor")
        patch.setattr(moments, "OnDisk", type("Counted", (OnDisk,), {"__init__": counting(written)}))
        for part in np.split(np.arange(len(X)), 10):
            clf.partial_fit(X[part], y[part])
            clf._learner.absorb()
    assert X.nbytes / 2 < sum(written) <= X.nbytes
    np.testing.assert_allclose(clf.coef_, AIRClassifier(1.0, **PAPER).fit(X, y).coef_, rtol=1e-9, atol=1e-12)


def counting(written):
    def write(self, array, directory):
        written.append(array.nbytes)
        OnDisk.__init__(self, array, directory)

    return write


@pytest.mark.filterwarnings("ignore::aircl.engine.memory.MemoryLimitWarning")
def test_saving_and_loading_hold_one_matrix_at_a_time(directory, unlimited, tmp_path_factory, monkeypatch):
    limited = learn(AIRClassifier(1.0, memory_limit=LIMIT, **PAPER)).end_phase()
    path = tmp_path_factory.mktemp("models") / "clf.safetensors"
    with monkeypatch.context() as patch:
        patch.delattr(OnDisk, "read")  # which would bring a file into memory
        limited.save(path)
        loaded = AIRClassifier.load(path)
    store = loaded._learner.state.statistics
    assert store.moments.nbytes + store.space.workspace_bytes <= LIMIT
    assert sum(moment.nbytes == 0 for moment in store.own_moments) >= 3
    np.testing.assert_allclose(loaded.coef_, unlimited.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="only Linux tells what is mapped")
@pytest.mark.filterwarnings("ignore::aircl.engine.memory.MemoryLimitWarning")
def test_a_file_is_mapped_no_longer_than_it_is_used(directory):
    with open("/proc/self/maps") as maps:
        held = OnDisk(np.arange(10.0), DiskSpace())  # the file goes when this goes
        with held.mapped() as array:
            assert array[3] == 3.0
            kept = [array]  # a forgotten reference must not keep the pages
            assert str(held.path) in maps.read()
        maps.seek(0)
        assert str(held.path) not in maps.read()
    assert len(kept) == 1
    np.testing.assert_array_equal(held.read(), np.arange(10.0))


@pytest.mark.filterwarnings("ignore::aircl.engine.memory.MemoryLimitWarning")
def test_a_full_disk_is_a_clear_error(directory, monkeypatch):
    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(MemoryError, match="TMPDIR"):
        learn(AIRClassifier(1.0, memory_limit=LIMIT, **PAPER))


def test_a_limit_below_one_solve_is_refused():
    with pytest.raises(ValueError, match="Raise memory_limit"):
        AIRClassifier(memory_limit="1MB", **PAPER).fit(np.eye(F), np.arange(F) % 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4GB", 4 * 2**30), ("512 MiB", 2**29), ("1.5k", 1536), ("100", 100), (2**31, 2**31), (1e9, 10**9), (None, None)],
)
def test_sizes(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("bad", ["four", "-1GB", 0, -5, "GB", True, float("nan"), float("inf"), ""])
def test_what_is_not_a_size_is_refused(bad):
    with pytest.raises(ValueError, match="memory_limit"):
        parse_bytes(bad)


def test_the_default_limit_is_within_the_machine():
    assert 0 < available_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
