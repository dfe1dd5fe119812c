"""Laws of keeping: what a method holds on to, and what it leaves alone."""

from __future__ import annotations

import copy
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.benchmark.contract.comparison import saved_bytes
from aircl.benchmark.contract.exam import Exam
from aircl.benchmark.contract.kept_samples import SampleSearch
from aircl.benchmark.contract.pupil import Pupil, ViolationError, told
from aircl.methods import IncompatibleError
from aircl.scenarios import Phase
from aircl.scenarios.stream import Indices

# Rows of a class after which statistics of it are as large as they get: more than half the width of the buffer.
FULL = 70
# Bytes that a further row may cost, as counts have more digits: less than anything that is worth a row.
SPARE = 2


def keeps_what_it_says(exam: Exam) -> str:
    """Search for training rows in the object and in its files, whenever a phase is over.

    In an online stream, in which the method may not be told that, every sample counts at any time.
    """
    kept, learned, found = _keeping(exam, exam.pupil(), "")
    with suppress(IncompatibleError):  # not every method takes an online stream
        found = max(found, _keeping(exam, exam.pupil(online=True), " of an online stream")[2])
    return f"it says {kept} of {learned} samples; {found} training rows were found."


def _keeping(exam: Exam, pupil: Pupil, stream: str) -> tuple[int, int, int]:
    """Return how many samples a method says that it keeps, has learned, and was found to have at most."""
    # A mean of one row or of two may be a row, or give one away; classes here have more.
    trains = exam.material.phases(phases=3, at_most=12)
    number = found_at_most = 0
    for lesson in exam.course(*trains):
        pupil.attend(lesson)
        if isinstance(lesson, Phase):
            number += 1
            kept = claimed(pupil)
            found = _search(pupil, np.concatenate(trains[:number]), files=number == len(trains))
            distinct = set[int]().union(*found.values())
            found_at_most = max(found_at_most, len(distinct))
            if len(distinct) > kept:
                raise ViolationError(
                    f"after phase {number}{stream} it says that it keeps {kept} samples, but {len(distinct)} of its "
                    f"training rows are in {' and '.join(list(found)[:3])}. Count them in samples_kept, or let go of "
                    "them."
                )
    return kept, pupil.learned, found_at_most


def saves_no_more_for_more(exam: Exam) -> str:
    """Compare what is saved after some rows of three classes, and after twice as many of the same three.

    Statistics need as much room for many rows as for few, once they are full; disguised samples do not.
    """
    exam.need_saving()
    sizes, kept, rows = [], [], []
    for at_most in (FULL, 2 * FULL):
        pupil = exam.pupil()
        train = exam.material.rows_of(0, 1, 2, at_most=at_most)
        pupil.attend(*exam.course(train))
        sizes.append(saved_bytes(pupil))
        kept.append(claimed(pupil))
        rows.append(len(train))
    more, grown = rows[1] - rows[0], sizes[1] - sizes[0]
    allowed = SPARE * more + max(0, kept[1] - kept[0]) * bytes_of_samples(exam)
    found = f"it saves {sizes[0]:,} bytes after {rows[0]} rows of three classes and {sizes[1]:,} after {rows[1]}"
    if grown > allowed:
        raise ViolationError(
            f"{found}: {grown / more:.1f} bytes more for each further row, while it says that it keeps {kept[1]} "
            "samples. Count samples in samples_kept, in whatever form they are, or let go of them."
        )
    return f"{found}."


def bytes_of_samples(exam: Exam) -> int:
    """Return what a sample that a method owns up to may take: double precision, a label and a few numbers beside it."""
    wide: int = max(exam.material.train_inputs[0].size, exam.material.setup.n_features, exam.material.setup.buffer or 0)
    return 8 * wide + 64


def leaves_inputs_alone(exam: Exam) -> str:
    """Compare with copies what may be shared with other methods: cached features, labels, a backbone."""
    material = exam.material
    rows = material.rows_of(0, 1, at_most=40)
    inputs, labels, test = material.train_inputs[rows], material.train_labels[rows], material.test_inputs.copy()
    backbone = copy.deepcopy(material.setup.backbone)

    def features() -> Any:
        return None if backbone is None else backbone.forward(backbone.prepare(material.test_inputs[:8]))

    before = features()
    pupil = exam.pupil(backbone=backbone)
    told("learn", pupil.method.learn, inputs, labels)
    pupil.attend(exam.course(rows)[-1])
    told("predict", pupil.method.predict, told("encode", pupil.method.encode, test))
    for what, changed in (
        ("the inputs of learn", not np.array_equal(inputs, material.train_inputs[rows])),
        ("the labels of learn", not np.array_equal(labels, material.train_labels[rows])),
        ("the inputs of encode", not np.array_equal(test, material.test_inputs)),
        ("the backbone of its setup", before is not None and not np.array_equal(before, features())),
    ):
        if changed:
            raise ViolationError(f"it changed {what} in place; it should work on a copy.")
    return "inputs, labels and backbone are as before."


def claimed(pupil: Pupil) -> int:
    """Return how many samples a method says that it keeps, if that is possible."""
    kept = pupil.method.samples_kept
    if isinstance(kept, bool) or not isinstance(kept, int | np.integer) or kept < 0:
        raise ViolationError(f"samples_kept is {kept!r}; it should be an integer of at least 0.")
    if kept > pupil.learned:
        raise ViolationError(f"samples_kept is {kept}, but it has seen only {pupil.learned} samples.")
    return int(kept)


def _search(pupil: Pupil, rows: Indices, *, files: bool) -> dict[str, set[int]]:
    """Return where training rows are, and which."""
    search = SampleSearch(*_forms(pupil, rows))
    with TemporaryDirectory() as name:
        pupil.save(Path(name))
        found = search.in_object(pupil.method)
        if files:
            found |= {f"the saved file {file}": which for file, which in search.in_files(Path(name)).items()}
    return found


def _forms(pupil: Pupil, rows: Indices) -> list[npt.NDArray[Any]]:
    """Return training rows as they are, between 0 and 1, at length 1, and encoded where the method does."""
    raw = pupil.material.train_inputs[rows]
    pixels = raw.reshape(len(raw), -1).astype(np.float64) / (255 if raw.dtype == np.uint8 else 1)
    forms = [raw, pixels, pixels / np.linalg.norm(pixels, axis=1, keepdims=True)]
    encoded = pupil.encode(raw)
    return [*forms, encoded] if isinstance(encoded, np.ndarray) and len(encoded) == len(raw) else forms
