"""Features are extracted once, whatever happens on the way."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from aircl.backbones.cache import FeatureCache

IMAGES = load_digits().images.astype(np.uint8)[..., None]


class Projection:
    """A backbone of one random layer that counts the rows it has seen."""

    name, kinds, width, batch_size = "projection", ("images",), 5, 64

    def __init__(self, seed=0, stops_after=None):
        self.weights = np.random.default_rng(seed).normal(size=(64, self.width)).astype(np.float32)
        self.fingerprint = f"projection {seed}"
        self.stops_after, self.rows = stops_after, 0

    def prepare(self, inputs):
        return np.reshape(inputs, (len(inputs), -1)).astype(np.float32)

    def forward(self, prepared):
        if self.rows == self.stops_after:
            time.sleep(600)  # until it is killed
        self.rows += len(prepared)
        return np.maximum(prepared @ self.weights, 0)


@pytest.fixture
def cache(tmp_path):
    return FeatureCache(tmp_path / "features")


def file_of(cache, name):
    (entry,) = cache.entries()
    return entry.path / name


def test_features_are_those_of_the_backbone_and_are_extracted_once(cache):
    backbone = Projection()
    X = cache.features(backbone, IMAGES, "digits")
    np.testing.assert_array_equal(X, Projection().forward(backbone.prepare(IMAGES)))
    assert isinstance(X, np.memmap)
    assert not X.flags.writeable
    assert backbone.rows == len(IMAGES)
    again = cache.features(backbone, IMAGES, "digits")
    assert backbone.rows == len(IMAGES)
    np.testing.assert_array_equal(again, X)


def test_another_backbone_or_other_data_has_an_entry_of_its_own(cache):
    X = cache.features(Projection(), IMAGES, "digits", data="digits/train")
    other = cache.features(Projection(seed=1), IMAGES, "digits", data="digits/train")
    fewer = cache.features(Projection(), IMAGES[:100], "digits, the first 100", data="digits/test")
    assert not np.allclose(X, other)
    np.testing.assert_array_equal(fewer, X[:100])
    assert len(cache.entries()) == 3
    assert all(entry.complete for entry in cache.entries())


def test_no_samples_no_entry(cache):
    assert cache.features(Projection(), IMAGES[:0], "nothing").shape == (0, 5)
    assert cache.entries() == []


def test_progress_starts_with_what_is_there(cache):
    steps = []
    cache.features(Projection(), IMAGES[:200], "digits", progress=lambda *step: steps.append(step))
    assert steps == [(0, 200), (64, 200), (128, 200), (192, 200), (200, 200)]
    steps.clear()
    cache.features(Projection(), IMAGES[:200], "digits", progress=lambda *step: steps.append(step))
    assert steps == [(200, 200)]


def test_a_failing_backbone_keeps_what_was_done(cache):
    class Failing(Projection):
        def forward(self, prepared):
            if self.rows >= 192:
                raise RuntimeError("out of luck")
            return super().forward(prepared)

    with pytest.raises(RuntimeError, match="out of luck"):
        cache.features(Failing(), IMAGES, "digits")
    (entry,) = cache.entries()
    assert not entry.complete
    assert entry.chunks == 3
    backbone = Projection()
    X = cache.features(backbone, IMAGES, "digits")
    assert backbone.rows == len(IMAGES) - 192
    np.testing.assert_array_equal(X, Projection().forward(backbone.prepare(IMAGES)))


@pytest.mark.parametrize(
    ("damage", "rows_lost"),
    [
        pytest.param(lambda path: flip(path / "features.npy", -1), 5, id="a bit of the last chunk"),
        pytest.param(lambda path: flip(path / "features.npy", 128 + 64 * 5 * 4), 64, id="a bit of the second chunk"),
        pytest.param(lambda path: truncate(path / "features.npy", 1000), 1797, id="file cut short"),
        pytest.param(lambda path: (path / "features.npy").unlink(), 1797, id="file gone"),
        pytest.param(lambda path: flip(path / "features.npy", 3), 1797, id="a bit of the header"),
        pytest.param(lambda path: truncate(path / "chunks.txt", -3), 5, id="last line of the log torn"),
        pytest.param(lambda path: (path / "chunks.txt").unlink(), 1797, id="log gone"),
        pytest.param(lambda path: (path / "about.json").write_text("{"), 0, id="description damaged"),
    ],
)
def test_damage_is_found_and_only_that_is_made_again(cache, damage, rows_lost):
    expected = np.array(cache.features(Projection(), IMAGES, "digits"))
    (entry,) = cache.entries()
    damage(entry.path)
    backbone = Projection()
    X = cache.features(backbone, IMAGES, "digits")
    assert backbone.rows == rows_lost
    np.testing.assert_array_equal(X, expected)
    assert [entry.complete for entry in cache.entries()] == [True]


def flip(path, offset):
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def truncate(path, size):
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda X: X[:-1], "float32 of shape"),
        (lambda X: X.astype(np.float64), "float64 of shape"),
        (lambda X: np.where(np.arange(len(X))[:, None] == 3, np.float32(np.nan), X), "not finite for sample 3"),
    ],
)
def test_what_is_not_features_is_refused(cache, wrong, message):
    class Wrong(Projection):
        def forward(self, prepared):
            return wrong(super().forward(prepared))

    with pytest.raises(ValueError, match=message):
        cache.features(Wrong(), IMAGES, "digits")
    assert [entry.chunks for entry in cache.entries()] == [0]


def test_a_full_disk_is_an_error(cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        cache.features(Projection(), IMAGES, "digits")


class Held(Projection):
    """A backbone that works when it is told to."""

    def __init__(self, seed=0):
        super().__init__(seed)
        self.started, self.go_on = threading.Event(), threading.Event()

    def forward(self, prepared):
        self.started.set()
        self.go_on.wait(600)
        return super().forward(prepared)


@contextmanager
def being_filled(cache, backbone):
    filling = threading.Thread(target=cache.features, args=(backbone, IMAGES, "digits"))
    filling.start()
    assert backbone.started.wait(600)
    yield
    backbone.go_on.set()
    filling.join(600)


def test_clear_removes_entries_but_not_one_that_is_being_filled(cache):
    cache.features(Projection(), IMAGES, "digits")
    with being_filled(cache, Held(seed=1)):
        (busy,) = cache.clear(cache.entries())
        assert not busy.complete
    (left,) = cache.entries()
    assert left.path == busy.path
    assert left.complete


SCRIPT = """
import sys
sys.path.insert(0, {here!r})
from test_cache import IMAGES, FeatureCache, Projection
backbone = Projection(stops_after={stops_after})
FeatureCache({directory!r}).features(backbone, IMAGES, "digits", waiting=lambda: print("waiting", flush=True))
print(backbone.rows)
"""


def start(cache, stops_after=None):
    script = SCRIPT.format(here=str(Path(__file__).parent), directory=str(cache.directory), stops_after=stops_after)
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def wait_for_chunks(cache, number):
    for _ in range(30_000):
        if any(entry.chunks >= number for entry in cache.entries()):
            return
        time.sleep(0.01)
    raise AssertionError("the process does not get on")


def test_killed_half_way_it_goes_on_to_the_same_bytes(cache, tmp_path):
    process = start(cache, stops_after=5 * 64)
    wait_for_chunks(cache, 5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (entry,) = cache.entries()
    assert entry.chunks == 5
    features = entry.path / "features.npy"
    before = np.lib.format.open_memmap(features, mode="r")[: 64 * entry.chunks].copy()

    backbone = Projection()
    X = cache.features(backbone, IMAGES, "digits")
    assert backbone.rows == len(IMAGES) - 64 * entry.chunks
    np.testing.assert_array_equal(X[: 64 * entry.chunks], before)

    undisturbed = FeatureCache(tmp_path / "undisturbed")
    undisturbed.features(Projection(), IMAGES, "digits")
    assert features.read_bytes() == file_of(undisturbed, "features.npy").read_bytes()


def test_two_processes_share_the_work_of_one(cache):
    first = Held()
    with being_filled(cache, first):
        second = start(cache)
        assert second.stdout.readline() == "waiting\n"
    assert second.communicate(timeout=600)[0] == "0\n"
    assert first.rows == len(IMAGES)


def test_about_is_readable(cache):
    cache.features(Projection(), IMAGES, "digits", data="digits/train")
    about = json.loads(file_of(cache, "about.json").read_text())
    assert about["data"] == "digits/train"
    assert (about["rows"], about["width"]) == (1797, 5)
