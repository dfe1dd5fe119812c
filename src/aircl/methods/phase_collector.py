"""A base for code that wants whole phases, as that of other frameworks does."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aircl.inputs import Batch
from aircl.methods.method import Labels, Method, Setup

if TYPE_CHECKING:
    from aircl.scenarios import Phase


class PhaseCollector(Method):
    """Collects the batches of a phase, and hands them over when it ends.

    A method writes `learn_phase` and `answer`; and `save_learned` and `restore_learned`, unless it says
    ``resumable = False``. It is told where phases end in online streams too, which the report marks.

    Parameters
    ----------
    setup : Setup

    Examples
    --------
    A decision tree that knows the last phase only:

    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from aircl.benchmark.contract import check_method
    >>> from aircl.methods import PhaseCollector
    >>> class LastTree(PhaseCollector):
    ...     resumable = False
    ...     def learn_phase(self, inputs, labels, phase):
    ...         self.tree = DecisionTreeClassifier(random_state=self.setup.seed).fit(inputs, labels)
    ...     def answer(self, encoded):
    ...         return self.tree.predict(encoded)
    >>> (finding,) = check_method(LastTree, checks=["learns its training data"])
    >>> finding.result
    'passed'
    """

    uses_phase_ends = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._inputs: list[Batch] = []
        self._labels: list[Labels] = []
        self._has_learned = False

    @abstractmethod
    def learn_phase(self, inputs: Any, labels: Labels, phase: Phase) -> None:
        """Learn all samples of a phase, one at least."""

    @abstractmethod
    def answer(self, encoded: Any) -> Labels:
        """Return the predicted labels of encoded inputs; it is not asked before a first phase was learned."""

    def learn(self, inputs: Batch, labels: Labels) -> None:
        """Keep a batch until its phase ends."""
        if len(labels):
            self._inputs.append(inputs)
            self._labels.append(labels)

    def end_phase(self, phase: Phase) -> None:
        """Learn what was collected; a phase without samples changes nothing."""
        if self._labels:
            inputs, labels = self._collected()
            self._inputs, self._labels = [], []
            self.learn_phase(inputs, labels, phase)
            self._has_learned = True

    def predict(self, encoded: Any) -> Labels:
        """Return what `answer` says; while the first phase lasts, a class that was seen."""
        if self._has_learned:
            return np.asarray(self.answer(encoded), np.int64) if len(encoded) else np.zeros(0, np.int64)
        if len(encoded) and not self._labels:
            raise ValueError("it has learned nothing yet, so there is no class that it could predict.")
        return np.full(len(encoded), self._labels[0][0] if len(encoded) else 0, np.int64)

    def save_learned(self, directory: Path) -> None:
        """Write what was learned of the phases that are over, random state included, to files in a directory."""
        raise NotImplementedError(f"{type(self).__name__} has no save_learned. Write it, or say resumable = False.")

    def restore_learned(self, directory: Path) -> None:
        """Read what `save_learned` wrote."""
        raise NotImplementedError(f"{type(self).__name__} has no restore_learned. Write it, or say resumable = False.")

    def save(self, directory: Path) -> None:
        """Write the samples of the open phase, and what was learned."""
        inputs, labels = self._collected()
        np.savez(directory / "open_phase.npz", inputs=inputs, labels=labels, has_learned=self._has_learned)
        if self._has_learned:
            (directory / "learned").mkdir()
            self.save_learned(directory / "learned")

    def restore(self, directory: Path) -> None:
        """Read what was written."""
        with np.load(directory / "open_phase.npz") as file:
            self._inputs, self._labels = [], []
            self.learn(file["inputs"], file["labels"])
            self._has_learned = bool(file["has_learned"])
        if self._has_learned:
            self.restore_learned(directory / "learned")

    def _collected(self) -> tuple[Any, Labels]:
        if not self._labels:
            return np.zeros((0, self.setup.n_features), np.float32), np.zeros(0, np.int64)
        return np.concatenate(self._inputs), np.concatenate(self._labels)
