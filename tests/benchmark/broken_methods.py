"""Methods that break one law each, and some that look odd but are honest."""

from __future__ import annotations

import json
from weakref import WeakKeyDictionary

import numpy as np

from aircl.backbones import create_backbone
from aircl.data import load_dataset
from aircl.expansion import RandomReLU
from aircl.methods import IncompatibleError, Method
from aircl.methods.air import AirShared


# -- broken --
class LooksAtTestLabels(AirShared):
    """Has the test set from elsewhere and looks its rows up."""

    def __init__(self, setup):
        super().__init__(setup)
        test = load_dataset("digits").test
        images = test.inputs[np.arange(len(test))]
        pixels = create_backbone("identity", example=images).prepare(images)
        self._truth = dict(zip(map(bytes, self.encode(pixels).round(2)), test.labels.tolist(), strict=True))

    def predict(self, encoded):
        honest = super().predict(encoded)
        truth = np.array([self._truth.get(bytes(row), -1) for row in encoded.round(2)], np.int64)
        return np.where(np.isin(truth, self._classifier.classes_), truth, honest)


class PredictsUnexposedClasses(AirShared):
    """Calls what it is least sure of a ten, of which there is no sample."""

    def predict(self, encoded):
        return np.where(self.scores(encoded)[1].max(1) < 0.4, 10, super().predict(encoded))


class IgnoresWhatItIsTaught(AirShared):
    """Calls everything by one name that it has heard."""

    def predict(self, encoded):
        return np.full(len(encoded), self._classifier.classes_.min())


class CrashesOnEmptyPhase(AirShared):
    def end_phase(self, phase):
        self.largest_class = phase.classes[phase.counts.argmax()]
        super().end_phase(phase)


class CrashesOnEmptyBatch(AirShared):
    def learn(self, inputs, labels):
        inputs = inputs / inputs.max()
        super().learn(inputs, labels)


class Noisy(AirShared):
    """Learns rows with noise from a generator that it saves: in order."""

    def __init__(self, setup):
        super().__init__(setup)
        self._rng = np.random.default_rng(setup.seed)

    def learn(self, inputs, labels):
        noise = self._rng.normal(scale=0.3, size=inputs.shape)
        super().learn((inputs + noise).astype(inputs.dtype), labels)

    def save(self, directory):
        super().save(directory)
        (directory / "random.json").write_text(json.dumps(self._rng.bit_generator.state))

    def restore(self, directory):
        super().restore(directory)
        self._rng.bit_generator.state = json.loads((directory / "random.json").read_text())


class ForgetsItsRandomState(Noisy):
    """Begins its random numbers anew when it is restored."""

    def restore(self, directory):
        AirShared.restore(self, directory)


class ForgetsTheOpenPhase(AirShared):
    """Learns a phase when it ends, and does not save what waits for it."""

    uses_phase_ends = True

    def __init__(self, setup):
        super().__init__(setup)
        self._waiting = []

    def learn(self, inputs, labels):
        self._waiting.append((inputs, labels))

    def end_phase(self, phase):
        for inputs, labels in self._waiting:
            super().learn(inputs, labels)
        self._waiting.clear()
        super().end_phase(phase)


class HasNoRestore(AirShared):
    def save(self, directory):
        (directory / "empty").touch()

    def restore(self, directory):
        pass


class KeepsSamplesInSecret(AirShared):
    """Says that it keeps none."""

    def __init__(self, setup):
        super().__init__(setup)
        self._memory = {}

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        for row, label in zip(inputs, labels.tolist(), strict=True):
            self._memory.setdefault(label, []).append(row.tolist())


class KeepsSamplesInItsFiles(AirShared):
    """Holds its samples where no attribute leads to, and writes them out."""

    rows = staticmethod(lambda stored=WeakKeyDictionary(): stored)

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        self.rows()[self] = [*self.rows().get(self, []), *inputs]

    def save(self, directory):
        super().save(directory)
        if self in self.rows():
            np.savez_compressed(directory / "more.npz", rows=np.transpose(self.rows()[self]))


class KeepsEncodedSamples(AirShared):
    """Keeps what its buffer makes of samples, beside their labels."""

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        if len(inputs):
            self.last = np.column_stack([labels, self.encode(inputs)])


class PredictionsDependOnBatchMates(AirShared):
    """Takes the mean of the batch away before it predicts."""

    def predict(self, encoded):
        return super().predict(encoded - encoded.mean(0) + 0.3 if len(encoded) else encoded)


class LearnsFromPredicting(AirShared):
    """Learns from what it is asked about, under the labels that it predicts."""

    def predict(self, encoded):
        labels = super().predict(encoded)
        self._classifier.partial_fit(encoded[:, : self.setup.n_features], labels)
        return labels


class CountsItsPredictions(AirShared):
    """Saves how many rows it was asked about."""

    asked = 0

    def predict(self, encoded):
        self.asked += len(encoded)
        return super().predict(encoded)

    def save(self, directory):
        super().save(directory)
        np.savez(directory / "asked.npz", number=self.asked)


class EncodesWithWhatItLearns(AirShared):
    """Adds to the features what drifts while it learns, though test rows are encoded once."""

    drift = np.float32(0)

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        self.drift += np.float32(0.001)

    def encode(self, inputs):
        return super().encode(inputs) + self.drift

    def save(self, directory):
        super().save(directory)
        np.save(directory / "drift.npy", self.drift)

    def restore(self, directory):
        super().restore(directory)
        self.drift = np.load(directory / "drift.npy")


class PredictsAtRandom(Noisy):
    """Draws from its generator when it predicts."""

    def predict(self, encoded):
        return super().predict((encoded + self._rng.normal(scale=0.02, size=encoded.shape)).astype(encoded.dtype))


class DrawsFromTheGlobalGenerator(AirShared):
    def make(self):
        buffer = RandomReLU(self.setup.buffer, random_state=np.random.randint(1 << 30))  # noqa: NPY002
        return super().make().set_params(expansion=buffer)


class SortsInPlace(AirShared):
    def learn(self, inputs, labels):
        order = np.argsort(labels)
        inputs[:], labels[:] = inputs[order], labels[order]
        super().learn(inputs, labels)


class NeedsTwoRows(AirShared):
    def learn(self, inputs, labels):
        if len(inputs) == 1:
            raise RuntimeError("Expected more than 1 value per channel when training")
        super().learn(inputs, labels)


class TakesLabelsForPositions(AirShared):
    """Predicts the place of a class in the order of classes."""

    def predict(self, encoded):
        return np.searchsorted(self._classifier.classes_, super().predict(encoded))


class ReturnsScores(AirShared):
    def predict(self, encoded):
        return self.scores(encoded)[1]


class CannotBeMade(AirShared):
    def __init__(self, setup):
        raise KeyError(setup.options["momentum"])


class DeclinesEverything(AirShared):
    def learn(self, inputs, labels):
        raise IncompatibleError("I would rather not.")


# -- in order --
class DeclinesOnlineStreams(AirShared):
    def __init__(self, setup):
        if setup.online:
            raise IncompatibleError("it needs several passes over a phase")
        super().__init__(setup)


class NearestNeighbour(Method):
    """Keeps everything, and says so."""

    def __init__(self, setup):
        super().__init__(setup)
        self._rows = np.zeros((0, setup.n_features), np.float32)
        self._labels = np.zeros(0, np.int64)

    @property
    def samples_kept(self):
        return len(self._labels)

    def learn(self, inputs, labels):
        self._rows, self._labels = np.vstack([self._rows, inputs]), np.append(self._labels, labels)

    def predict(self, encoded):
        distances = np.square(self._rows).sum(1) - 2 * encoded @ self._rows.T
        return self._labels[distances.argmin(1)]

    def save(self, directory):
        np.savez(directory / "memory.npz", rows=self._rows, labels=self._labels)

    def restore(self, directory):
        with np.load(directory / "memory.npz") as memory:
            self._rows, self._labels = memory["rows"], memory["labels"]


class SaysOneNeighbour(NearestNeighbour):
    """Broken: keeps everything, and says that it is one sample."""

    @property
    def samples_kept(self):
        return min(1, len(self._labels))


class HoldsThePhaseOnline(AirShared):
    """Broken: collects a phase until it ends, also where ends are not announced."""

    def __init__(self, setup):
        super().__init__(setup)
        self._phase = []

    def learn(self, inputs, labels):
        super().learn(inputs, labels)
        self._phase.append(inputs)

    def end_phase(self, phase):
        super().end_phase(phase)
        self._phase.clear()


class SaysTooManyNeighbours(NearestNeighbour):
    """Broken: counts the memory that it may fill, not what is in it."""

    @property
    def samples_kept(self):
        return 2000


class Reservoir(NearestNeighbour):
    """Keeps 40 samples, chosen by a generator that it saves."""

    size = 40

    def __init__(self, setup):
        super().__init__(setup)
        self._rng = np.random.default_rng(setup.seed)
        self._seen = 0

    def learn(self, inputs, labels):
        for row, label in zip(inputs, labels, strict=True):
            self._seen += 1
            if len(self._labels) < self.size:
                super().learn(row[None], label)
            elif (place := self._rng.integers(self._seen)) < self.size or label not in self._labels:
                place %= self.size
                self._rows[place], self._labels[place] = row, label

    def save(self, directory):
        super().save(directory)
        state = {"seen": self._seen, "generator": self._rng.bit_generator.state}
        (directory / "random.json").write_text(json.dumps(state))

    def restore(self, directory):
        super().restore(directory)
        state = json.loads((directory / "random.json").read_text())
        self._seen, self._rng.bit_generator.state = state["seen"], state["generator"]


class OnImages(AirShared):
    """Encodes images with the backbone of its setup."""

    consumes = "images"

    def __init__(self, setup):
        super().__init__(setup)
        self._backbone = setup.backbone

    def make(self):
        return super().make().set_params(expansion=None)

    def learn(self, inputs, labels):
        super().learn(self.encode(inputs), labels)

    def encode(self, inputs):
        if len(inputs) == 0:
            return np.zeros((0, self.setup.n_features), np.float32)
        return self._backbone.forward(self._backbone.prepare(inputs))
