"""Methods that hide what they keep or know, and some that are only careless about their state."""

from __future__ import annotations

import base64
import gc
import json
import os
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from aircl.benchmark.contract.material import prepare_material
from aircl.methods.air import AirShared
from aircl.methods.prototypes import Ncm


# -- samples in disguise --
class Disguised(AirShared):
    """Keeps samples in a form in which nobody knows them, and saves them."""

    def __init__(self, setup):
        super().__init__(setup)
        self._pieces = []

    def disguise(self, rows):
        raise NotImplementedError

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        if len(inputs):
            self._pieces.append(self.disguise(np.asarray(inputs)))

    def save(self, directory):
        super().save(directory)
        (directory / "notes.bin").write_bytes(b"".join(len(p).to_bytes(4, "little") + p for p in self._pieces))

    def restore(self, directory):
        super().restore(directory)
        data, self._pieces = (directory / "notes.bin").read_bytes(), []
        while data:
            size = int.from_bytes(data[:4], "little")
            self._pieces.append(data[4 : 4 + size])
            data = data[4 + size :]


class KeepsSamplesCompressed(Disguised):
    def disguise(self, rows):
        return zlib.compress(rows.tobytes())


class KeepsSamplesRotated(Disguised):
    def disguise(self, rows):
        turn = np.linalg.qr(np.random.default_rng(0).normal(size=(rows.shape[1],) * 2))[0]
        return (rows @ turn).astype(np.float32).tobytes()


class KeepsSamplesQuantised(Disguised):
    """Four bits a pixel, two pixels a byte, turned over."""

    def disguise(self, rows):
        levels = (np.clip(rows, 0, 1) * 15).astype(np.uint8)
        return bytes(~(levels[:, ::2] << 4 | levels[:, 1::2]) & 0xFF)


class KeepsSamplesProjected(Disguised):
    """A few random numbers of each row."""

    def disguise(self, rows):
        return (rows @ np.random.default_rng(1).normal(size=(rows.shape[1], 6))).astype(np.float16).tobytes()


class KeepsSamplesEncrypted(Disguised):
    def disguise(self, rows):
        data = np.frombuffer(rows.astype(np.float16).tobytes(), np.uint8)
        return bytes(data ^ np.random.default_rng(5).integers(0, 256, len(data), np.uint8))


class KeepsDifferencesOfSamples(Disguised):
    def disguise(self, rows):
        return np.diff(rows, axis=0, prepend=0).astype(np.float16).tobytes()


class Few:
    """Of one that keeps samples: a fixed number, drawn as they come."""

    size = 50

    def __init__(self, setup):
        super().__init__(setup)
        self._seen, self._rng = 0, np.random.default_rng(1)

    def learn(self, inputs, labels):
        AirShared.learn(self, inputs, labels)
        for row in np.asarray(inputs):
            self._seen += 1
            if (place := self.place()) < self.size:
                self._pieces[place : place + 1] = [self.disguise(row[None])]

    def place(self):
        return len(self._pieces) if len(self._pieces) < self.size else self._rng.integers(self._seen)

    def restore(self, directory):
        AirShared.restore(self, directory)


class KeepsFewCompressed(Few, KeepsSamplesCompressed):
    """One by one."""


class KeepsFewRotated(Few, KeepsSamplesRotated):
    """Two hundred."""

    size = 200


class KeepsFewQuantised(Few, KeepsSamplesQuantised):
    pass


class KeepsFewEncrypted(Few, KeepsSamplesEncrypted):
    pass


class KeepsTheLastAsText(Few, Disguised):
    """In the head of a file of arrays."""

    def place(self):
        self._pieces = self._pieces[-self.size + 1 :]
        return len(self._pieces)

    def disguise(self, rows):
        return rows.astype(np.float32).tobytes()

    def save(self, directory):
        AirShared.save(self, directory)
        text = base64.b85encode(b"".join(self._pieces)).decode()
        save_file({"one": np.ones(1)}, directory / "notes.safetensors", {"made by": text})


class KeepsMoreThanItSays(KeepsFewRotated):
    """Says one of two hundred, and saves them as an array."""

    samples_kept = property(lambda self: min(1, self._seen))

    def save(self, directory):
        AirShared.save(self, directory)
        np.savez(directory / "notes.npz", rows=np.frombuffer(b"".join(self._pieces), np.float32))


# -- statistics of some rows only, which are no samples --
class ScalesByTheFirstBatch(AirShared):
    """Keeps mean, spread and range of the first batch."""

    scale = None

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        if self.scale is None:
            self.scale = np.concatenate([inputs.mean(0), inputs.std(0), inputs.max(0), inputs.min(0)])

    def save(self, directory):
        super().save(directory)
        np.save(directory / "scale.npy", self.scale)


class KeepsAMovingAverage(ScalesByTheFirstBatch):
    """Of rows that are forgotten after a hundred."""

    def learn(self, inputs, labels):
        AirShared.learn(self, inputs, labels)
        for row in inputs:
            self.scale = row if self.scale is None else 0.8 * self.scale + 0.2 * row


class SumsSomeRows(ScalesByTheFirstBatch):
    """Draws which; the others may be what it chooses something on. It counts how often each of ten was drawn."""

    def __init__(self, setup):
        super().__init__(setup)
        self.scale, self.counts = np.zeros(64), np.zeros(10)
        self.rng = np.random.default_rng(setup.seed)

    def learn(self, inputs, labels):
        AirShared.learn(self, inputs, labels)
        drawn = self.rng.integers(10, size=len(inputs))
        self.scale = self.scale + inputs[drawn < 5].sum(0)
        np.add.at(self.counts, drawn, inputs.sum(1))

    def save(self, directory):
        super().save(directory)
        np.save(directory / "counts.npy", self.counts)


# -- samples outside of the object --
class Elsewhere(AirShared):
    """Answers by the nearest of its samples, which it has where no attribute leads to."""

    def held(self):
        raise NotImplementedError

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        for row, label in zip(self.encode(inputs) if len(inputs) else [], labels.tolist(), strict=True):
            self.held().append((row.tobytes(), label))

    def predict(self, encoded):
        held = [(np.frombuffer(row, np.float32), label) for row, label in self.held()]
        known = set(self._classifier.classes_.tolist())
        held = [(row, label) for row, label in held if label in known]
        if not held or not len(encoded):
            return super().predict(encoded)
        rows, labels = np.stack([row for row, _ in held]), np.array([label for _, label in held])
        return labels[(np.square(rows).sum(1) - 2 * encoded @ rows.T).argmin(1)]


HELD = []


class KeepsSamplesInAModuleGlobal(Elsewhere):
    def held(self):
        return HELD


class KeepsSamplesInTheSystemModule(Elsewhere):
    def held(self):
        if not hasattr(sys, "last_rows"):
            sys.last_rows = []
        return sys.last_rows


def keep_in_a_closure():
    rows = []
    return lambda: rows


class KeepsSamplesInAClosure(Elsewhere):
    hold = staticmethod(keep_in_a_closure())

    def held(self):
        return self.hold()


class KeepsSamplesOfTheThread(Elsewhere):
    local = threading.local()

    def held(self):
        return self.local.__dict__.setdefault("rows", [])


class KeepsSamplesInATemporaryFile(AirShared):
    """Learns most of each batch, and the rest from a file when it is asked."""

    @property
    def path(self):
        return Path(tempfile.gettempdir(), f"aircl-test-{os.getuid()}-rest.npz")

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        if len(labels):
            np.savez(self.path, shift=np.float32(labels[-1]))

    def scores(self, encoded):
        classes, scores = super().scores(encoded)
        shift = float(np.load(self.path)["shift"]) if self.path.exists() else 0.0
        return classes, scores + np.float32(0.2 * shift) * (np.arange(len(classes)) == 0)


# -- noise in the state --
class Noted(Ncm):
    """Saves a number that changes no prediction."""

    def save(self, directory):
        super().save(directory)
        self.note(directory)

    def restore(self, directory):
        super().restore(directory)


class SavesUnseededNoise(Noted):
    def note(self, directory):
        np.savez(directory / "more.npz", noise=np.random.default_rng().normal(size=3))


class SavesBytesOfTheSystem(Noted):
    def note(self, directory):
        (directory / "salt.bin").write_bytes(os.urandom(8))


class SavesTheTime(Noted):
    def note(self, directory):
        (directory / "about.json").write_text(json.dumps({"written": time.time_ns(), "rows": [1, 2]}))


class SavesTheProcess(Noted):
    def note(self, directory):
        (directory / "about.json").write_text(json.dumps({"process": os.getpid()}))


class SavesAHash(Noted):
    def note(self, directory):
        np.save(directory / "hash.npy", hash("a label"))


class SavesTheOrderOfASet(Noted):
    def note(self, directory):
        (directory / "names.txt").write_text(" ".join({"one", "two", "three", "four", "five", "six"}))


# -- truth from elsewhere --
class KnowsBetter(AirShared):
    """Finds the examiner's data, and uses it as long as what it is taught agrees with it."""

    honest = None

    def material(self):
        raise NotImplementedError

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        found = self.material()
        if found is not None and len(labels):
            truth = {row.tobytes(): label for row, label in zip(found.train_inputs, found.train_labels, strict=True)}
            agrees = all(truth.get(row.tobytes()) == label for row, label in zip(inputs, labels, strict=True))
            self.honest = bool(self.honest) or not agrees

    def predict(self, encoded):
        found, answer = self.material(), super().predict(encoded)
        if self.honest is not False or found is None or not len(encoded):
            return answer
        known = self.encode(found.test_inputs)
        rows = {row.round(3).tobytes(): label for row, label in zip(known, found.test_labels.tolist(), strict=True)}
        truth = np.array([rows.get(row.round(3).tobytes(), -1) for row in encoded])
        return np.where(np.isin(truth, self._classifier.classes_), truth, answer)

    def save(self, directory):
        super().save(directory)
        (directory / "honest.json").write_text(json.dumps(self.honest))

    def restore(self, directory):
        super().restore(directory)
        self.honest = json.loads((directory / "honest.json").read_text())


class FindsTheTruthByTheGarbageCollector(KnowsBetter):
    def material(self):
        return next((thing for thing in gc.get_objects() if type(thing).__name__ == "Material"), None)


class FindsTheTruthInTheCallersFrames(KnowsBetter):
    def material(self):
        frame = sys._getframe()
        while frame is not None:
            for value in list(frame.f_locals.values()):
                found = getattr(value, "material", value)
                if type(found).__name__ == "Material":
                    return found
            frame = frame.f_back
        return None


class LoadsTheDataItself(KnowsBetter):
    """Needs no examiner: everybody has these digits."""

    def material(self):
        return prepare_material("features", analytic=True, options={})
