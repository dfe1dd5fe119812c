"""A disk that fails at the k-th operation: the learner and its file are as before or as after, and nothing is left."""

import builtins
import errno
import os
from pathlib import Path

import numpy as np
import pytest
from laws_learners import LEARNERS, begun, differences, look, other, rows
from sklearn.base import clone

SPILLING = ("per-class, spilling", "pooled, spilling")
pytestmark = pytest.mark.filterwarnings("ignore::aircl.engine.memory.MemoryLimitWarning")


class Disk:
    """Counts operations on files, and fails at one of them as a full disk does."""

    def __init__(self, monkeypatch, at=None):
        self.at, self.n = at, 0
        for owner, name in (
            (os, "posix_fallocate"), (os, "fsync"), (os, "replace"), (Path, "open"), (np, "memmap"), (np, "fromfile"),
            (builtins, "open"),
        ):  # fmt: skip
            monkeypatch.setattr(owner, name, self._counting(getattr(owner, name)))

    def _counting(self, operation):
        def call(*arguments, **named):
            self.n += 1
            if self.n == self.at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return operation(*arguments, **named)

        return call


def learn(clf, _):
    clf.partial_fit(*rows(12, n=300, classes=(0, 1, 5)))
    clf._learner.absorb()


def merge(clf, more):
    clf.merge(more)


def forget(clf, _):
    X, y = rows(0)
    clf.forget(X[:7], y[:7])


@pytest.mark.parametrize("operation", [learn, merge, forget])
@pytest.mark.parametrize("name", SPILLING)
def test_a_failing_disk_while_spilling_tears_nothing(name, operation, monkeypatch, tmp_path):
    if operation is forget and name.startswith("pooled"):
        pytest.skip("pooled cannot forget")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = look(begun(name))
    done = begun(name)
    with monkeypatch.context() as patch:
        disk = Disk(patch)
        operation(done, other(name))
        total = disk.n
    after = look(done)
    del done
    assert total > 3
    for at in range(1, total + 1, max(1, total // 40)):
        clf, more = begun(name), other(name)
        failed = None
        with monkeypatch.context() as patch:
            Disk(patch, at)
            try:
                operation(clf, more)
            except (OSError, MemoryError) as error:
                failed = error
        assert failed is None or "No space" in str(failed)
        now = look(clf)
        assert not differences(now, before) or not differences(now, after), (at, failed)
        del clf, more, failed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", LEARNERS)
def test_a_failing_disk_while_saving_leaves_the_old_file(name, monkeypatch, tmp_path):
    path = tmp_path / "m.safetensors"
    clf = begun(name)
    clf.save(path)
    content = path.read_bytes()
    changed = begun(name).partial_fit(*rows(11, n=9, classes=(0, 4)))
    expected = look(changed)
    changed.save(tmp_path / "trial.safetensors")  # which seals: from now on, every save does the same
    with monkeypatch.context() as patch:
        disk = Disk(patch)
        changed.save(tmp_path / "trial.safetensors")
        total = disk.n
    (tmp_path / "trial.safetensors").unlink()
    assert total >= 3
    for at in range(1, total + 1):
        failed = False
        with monkeypatch.context() as patch:
            Disk(patch, at)
            try:
                changed.save(path)
            except OSError:
                failed = True
        if failed and path.read_bytes() != content:  # only the last one comes after the rename
            assert at == total
            assert not differences(look(type(clf).load(path)), expected)
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
        assert not differences(look(changed), expected)


def test_spilled_files_go_with_what_they_hold(monkeypatch, tmp_path):
    """Forgetting removes them; forgetting and learning again and again leaves as many as there were."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    clf = clone(LEARNERS["per-class, spilling"])
    classes = tuple(range(20))
    X, y = rows(5, n=600, classes=classes)
    clf.partial_fit(X, y).end_phase()

    def files():
        return len(list(tmp_path.glob("*/*")))

    everything = files()
    assert everything >= 10
    clf.forget(classes=list(classes[:15]))
    assert files() <= 5
    for _ in range(5):
        clf.partial_fit(X[y < 15], y[y < 15]).end_phase()
        clf.forget(classes=list(classes[:15]))
    assert files() <= 5
    pooled = clone(LEARNERS["pooled, spilling"])
    for phase in range(4):
        pooled.partial_fit(*rows(phase, n=300, classes=(10 * phase, 10 * phase + 1, 10 * phase + 2))).end_phase()
    assert files() <= 5
    del clf, pooled
    assert list(tmp_path.iterdir()) == []
