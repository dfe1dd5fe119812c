"""A method under examination: what it is taught and asked, with its mistakes put into words."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from aircl.benchmark.contract.material import Material
from aircl.inputs import Batch
from aircl.methods import IncompatibleError, Method, Setup
from aircl.scenarios import Phase, make_phases
from aircl.scenarios.stream import Indices, Labels

Factory = Callable[[Setup], Method]

# A piece of a course: rows to learn in one batch, or the end of a phase.
Lesson = Indices | Phase


class ViolationError(Exception):
    """A law is broken; the text says how."""


class NotApplicableError(Exception):
    """A law cannot be tried out on a method; the text says why."""


def lessons(labels: Labels, trains: Iterable[Indices], batch_size: int) -> list[Lesson]:
    """Return phases cut into batches, each phase followed by its end; an empty phase is only an end."""
    course: list[Lesson] = []
    for phase in make_phases(labels, list(trains)):
        course += [phase.train[start : start + batch_size] for start in range(0, len(phase.train), batch_size)]
        course.append(phase)
    return course


class Pupil:
    """A method, and a teacher that owns the data.

    Parameters
    ----------
    factory : callable
        Makes the method of a setup.
    material : Material
    setup : Setup
    labels : array of shape (n,)
        What the training rows are called; not always the truth.

    Attributes
    ----------
    method : Method
    exposed : set of int
        The classes that were in a batch so far.
    learned : int
        How many rows were.
    """

    def __init__(self, factory: Factory, material: Material, setup: Setup, labels: Labels) -> None:
        self.factory, self.material, self.setup, self.labels = factory, material, setup, labels
        self.exposed: set[int] = set()
        self.learned = 0
        self.method = told("creating it", factory, setup)
        self._encoded_test: Any = None

    def attend(self, *course: Lesson) -> None:
        """Learn batches and note ends of phases, as far as the setup announces them."""
        for lesson in course:
            if isinstance(lesson, Phase):
                if not self.setup.online or self.method.uses_phase_ends:
                    empty = "" if len(lesson.train) else " of an empty phase"
                    told(f"end_phase{empty}", self.method.end_phase, lesson)
            else:
                self.learn(self.material.train_inputs[lesson], self.labels[lesson])

    def learn(self, inputs: Batch, labels: Labels) -> None:
        """Learn one batch. The method gets arrays of its own, so that nothing it does to them reaches another pupil."""
        rows = f"{len(labels)} row{'' if len(labels) == 1 else 's'}"
        told(f"learn with a batch of {rows}", self.method.learn, inputs.copy(), labels.copy())
        self.exposed.update(labels.tolist())
        self.learned += len(labels)

    def encode(self, inputs: Batch) -> Any:
        """Return what `encode` makes of a copy of the inputs."""
        return told(f"encode with {len(inputs)} rows", self.method.encode, inputs.copy())

    def predict(self, inputs: Batch) -> Labels:
        """Return predictions, checked to be one integer per row."""
        return self.predict_encoded(self.encode(inputs), len(inputs))

    def encoded_test(self) -> Any:
        """Return all test rows as they were encoded when they were first asked for, as a run does."""
        if self._encoded_test is None:
            self._encoded_test = self.encode(self.material.test_inputs)
        return self._encoded_test

    def predict_encoded(self, encoded: Any, n_rows: int) -> Labels:
        """Return predictions of what `encode` gave."""
        answer = np.asarray(told(f"predict with {n_rows} rows", self.method.predict, encoded))
        if answer.shape != (n_rows,) or answer.dtype.kind not in "iu":
            raise ViolationError(
                f"predict returned an array of shape {answer.shape} and dtype {answer.dtype} for {n_rows} rows; it "
                f"should return one integer label per row, shape ({n_rows},)."
            )
        return answer.astype(np.int64)

    def predict_test(self) -> Labels:
        """Return predictions of all test rows."""
        return self.predict_encoded(self.encoded_test(), len(self.material.test_inputs))

    def score_test(self) -> Any:
        """Return the scores of all test rows; None where the method has none."""
        given = told("scores", self.method.scores, self.encoded_test())
        return None if given is None else np.asarray(given[1], np.float64)

    def save(self, directory: Path) -> None:
        """Write the method to a directory; nothing of one that says that it cannot be resumed."""
        if self.method.resumable:
            told("save", self.method.save, directory)

    def stopped_and_restored(self) -> Pupil:
        """Return another pupil with a new method that goes on from what this one saves; itself if it cannot be."""
        if not self.method.resumable:
            return self
        pupil = Pupil(self.factory, self.material, self.setup, self.labels)
        with TemporaryDirectory() as name:
            self.save(Path(name))
            told("restore", pupil.method.restore, Path(name))
        pupil.exposed, pupil.learned = set(self.exposed), self.learned
        return pupil


def told(what: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call something of the method's; if it raises, say what it was, what was raised and where.

    A method may decline by an IncompatibleError, which is left as it is.
    """
    try:
        return call(*arguments)
    except IncompatibleError:
        raise
    except Exception as error:
        raise ViolationError(f"{what} raised {describe(error)}") from error


def describe(error: Exception) -> str:
    """Return type, text and innermost place of an error, in one line."""
    text = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {text}{place}" if text else f"{type(error).__name__}{place}"
