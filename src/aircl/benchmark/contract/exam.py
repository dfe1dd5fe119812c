"""What a law is given: a kind of method, and the means to teach new ones of it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aircl.benchmark.contract.material import BATCH_SIZE, Material
from aircl.benchmark.contract.pupil import Factory, Lesson, NotApplicableError, Pupil, lessons
from aircl.methods import Hints
from aircl.scenarios import Phase
from aircl.scenarios.stream import Indices, Labels


@dataclass(frozen=True)
class Exam:
    """A kind of method, and what it is examined with.

    Attributes
    ----------
    factory : callable
    material : Material
    """

    factory: Factory
    material: Material

    def pupil(self, labels: Labels | None = None, **setup: Any) -> Pupil:
        """Return a new method that knows nothing, with labels other than the true ones if such are given."""
        material = self.material
        # A method that trains its backbone trains this copy, not that of the next pupil.
        setup.setdefault("backbone", copy.deepcopy(material.setup.backbone))
        # .. and notes what it reads of the future.
        setup.setdefault("hints", Hints(n_classes=len(np.unique(material.train_labels)), n_phases=5))
        changed = dataclasses.replace(material.setup, **setup)
        return Pupil(self.factory, material, changed, material.train_labels if labels is None else labels)

    def need_saving(self) -> None:
        """Refuse to try a law of saving on a method that says that it cannot be resumed."""
        if not self.pupil().method.resumable:
            raise NotApplicableError("it says that it cannot be resumed.")

    def course(self, *trains: Indices, batch_size: int = BATCH_SIZE, labels: Labels | None = None) -> list[Lesson]:
        """Return the lessons of some phases; by default those of a class-incremental stream."""
        taught = self.material.train_labels if labels is None else labels
        return lessons(taught, trains or self.material.phases(), batch_size)


# A law tries something out, says in words what it found, and raises ViolationError where the law is broken.
Law = Callable[[Exam], str]


def after_phase(course: list[Lesson], number: int) -> int:
    """Return how many lessons there are until the end of a phase, the first of which has number 1."""
    ends = [position for position, lesson in enumerate(course) if isinstance(lesson, Phase)]
    return ends[number - 1] + 1
