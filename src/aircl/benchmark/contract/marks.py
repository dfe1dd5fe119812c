"""A law of keeping: the rows of a class count in the same places of what is saved, none of them in a place of its own.

Every second row of one class is made the same row. Then, run after run, it is replaced by another one at some places
of the stream. A sum, a network, a running mean change in the same numbers whichever of the places it was; a sample
that is kept, in whatever form, changes numbers that those samples do not change which are kept elsewhere or not at all.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aircl.benchmark.contract.exam import Exam
from aircl.benchmark.contract.keeping import bytes_of_samples, claimed
from aircl.benchmark.contract.kept_samples import Array, read_arrays
from aircl.benchmark.contract.material import Material
from aircl.benchmark.contract.pupil import ViolationError
from aircl.scenarios.stream import Indices

CLASSES, PROBED = (0, 1, 2), 1
# Rows of each class: the last batch is a whole one, and has several of each class as the first one has.
ROWS = 128
# How many of the same rows are replaced in a run. Single ones are two at either end, and two after a quarter and after
# three quarters of them; the others are drawn. With the last group, every one of these rows is in a group.
SIZES = (1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 16, 28)
# A number depends on some rows only if as many groups as this leave it as it is. Numbers of a network stay the same by
# accident, in a run or two.
UNTOUCHED = 3
# Changes that point about the same way are those of one statistic that counts rows more or less, such as a moving
# average, or the spread of a first batch.
SAME_WAY = 0.9
# Numbers of a place of its own change together. Where noise is added to rows, or where a network leaves out what is
# negative, numbers change by chance, and as many of them in as many ways: so many groups cannot account for this share.
TOGETHER = 0.9
# A change that is smaller than the largest by so much is rounding.
ROUNDING = 1e-3
# Bytes of a mark: one number that tells rows apart, such as the largest norm, is no sample.
NO_SAMPLE = 8

Numbers = npt.NDArray[np.float64]
# What was saved, as units that change or stay: by file and array, of shape (n, bytes of a unit) or (n, 1).
Units = dict[tuple[str, str], Array]


class Mark(NamedTuple):
    """Units of one array that some rows change and others do not."""

    place: str
    n_bytes: int


def leaves_no_marks(exam: Exam) -> str:
    """Replace the same row at other and other places of a stream, and compare which numbers of the state change."""
    exam.need_saving()
    material, train, groups, other = _with_copies(exam.material)
    kept, before = _taught(exam, material, train)
    if kept >= len(train):
        return f"it says that it keeps all of {kept} samples."
    changed = []
    for group in groups:
        inputs = material.train_inputs.copy()
        inputs[group] = other
        changed.append(_taught(exam, dataclasses.replace(material, train_inputs=inputs), train)[1])
    marks = _marks(before, _taught(exam, material, train)[1], changed)
    found = sum(mark.n_bytes for mark in marks)
    if found > kept * bytes_of_samples(exam):
        places = ", ".join(mark.place for mark in marks[:3])
        raise ViolationError(
            f"{found:,} bytes of what it saves ({places}) depend on some rows of a class and not on others that are "
            f"the same, while it says that it keeps {kept} samples. Count samples in "
            "samples_kept, in whatever form they are, or let all rows of a class count in the same places."
        )
    return f"equal rows change the same numbers of what it saves, but for {found:,} bytes; it keeps {kept} samples."


def _with_copies(material: Material) -> tuple[Material, Indices, list[Indices], Array]:
    """Return the material with equal rows, a stream, the groups of these rows, and the row that takes their place."""
    rows = [material.rows_of(label, at_most=ROWS) for label in CLASSES]
    train, own = np.stack(rows, axis=1).ravel(), rows[CLASSES.index(PROBED)]
    # The others make the class an ordinary one. Two at either end are within a batch.
    copies = np.concatenate([own[:2], own[2:-2:2], own[-2:]])
    inputs = material.train_inputs.copy()
    row = inputs[own[0]].astype(np.float64)
    distance = [np.abs(inputs[number] - row).sum() for number in own]
    other = inputs[own[int(np.argmax(distance))]].copy()
    inputs[copies] = inputs[own[0]]
    n = len(copies)
    single = [0, 1, n // 4, n // 4 + 1, 3 * n // 4, 3 * n // 4 + 1, n - 2, n - 1]
    rest = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(n), single))
    order = copies[np.concatenate([single, rest])]
    ends = itertools.accumulate(SIZES)
    groups = [order[end - size : end] for size, end in zip(SIZES, ends, strict=True)]
    return dataclasses.replace(material, train_inputs=inputs), train, groups, other


def _taught(exam: Exam, material: Material, train: Indices) -> tuple[int, Units]:
    """Return how many samples a new method says that it keeps after a stream of one phase, and what it saves."""
    pupil = Exam(exam.factory, material).pupil()
    pupil.attend(*exam.course(train))
    with TemporaryDirectory() as name:
        pupil.save(Path(name))
        return claimed(pupil), _read_units(Path(name))


def _read_units(directory: Path) -> Units:
    return {
        (path.relative_to(directory).as_posix(), key): _as_units(array)
        for path in sorted(path for path in directory.rglob("*") if path.is_file())
        for key, array in _read_file(path).items()
    }


def _as_units(array: Array) -> Array:
    if array.dtype.kind in "fiub":
        return array.reshape(-1, 1)
    # A number that nobody knows the place of is within eight bytes, of which some change whenever it does.
    data = np.frombuffer(array.tobytes(), np.uint8)
    return np.pad(data, (0, -len(data) % 8)).reshape(-1, 8)


def _read_file(path: Path) -> dict[str, Array]:
    """Return the arrays of a file, with all that is written beside them; of one without any, its bytes."""
    data = path.read_bytes()
    try:
        if path.suffix == ".json":
            return _arrays_of(json.loads(data))
        arrays = read_arrays(path)
        if path.suffix == ".safetensors" and arrays:
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            arrays |= _arrays_of(header.get("__metadata__", {}))
    except (ValueError, RecursionError):
        arrays = {}
    return arrays or {"": np.frombuffer(data, "V1")}


def _arrays_of(content: Any) -> dict[str, Array]:
    """Return all numbers of JSON as one array, and all texts as another; a text that is JSON itself is taken apart."""
    numbers: list[float] = []
    texts: list[str] = []
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            texts.extend(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, int | float):  # integers may be too large for a float
            numbers.append(float(value) if abs(value) < 1e300 else float(value % 2**53))
        elif isinstance(value, str):
            try:
                waiting.append(json.loads(value))
            except ValueError:
                texts.append(value)
    text = "\0".join(texts).encode("utf-8", "surrogatepass")
    return {"numbers": np.array(numbers), "texts": np.frombuffer(text, "V1")}


def _marks(before: Units, again: Units, changed: list[Units]) -> list[Mark]:
    """Return where single groups of rows leave marks."""
    marks = []
    for key in sorted({key for units in (before, *changed) for key in units}):
        first, *runs = _alike([units.get(key) for units in (before, *changed, again)])
        differs = np.array([(run != first).any(axis=1) for run in runs])
        # What is not the same for the same rows is noise, which is the affair of other laws.
        differs = differs[:-1] & ~differs[-1]
        count = differs.sum(axis=0)
        partly = (count > 0) & (count <= len(SIZES) - UNTOUCHED)
        width = first.dtype.itemsize * first.shape[1]
        if not partly.any() or not _in_blocks(differs[:, partly], width):
            continue
        moves = np.array([(run[partly].astype(np.float64) - first[partly]).ravel() for run in runs[:-1]])
        if _has_own(np.nan_to_num(moves), differs[:, partly].sum(axis=1) * width):
            file, array = key
            marks.append(Mark(f"{file} ({array})" if array else file, int(partly.sum()) * width))
    return marks


def _in_blocks(differs: npt.NDArray[np.bool_], width: int) -> bool:
    """Tell whether most units, in columns, are changed by the same groups as others are."""
    _, counts = np.unique(differs, axis=1, return_counts=True)
    largest = np.sort(counts)[-len(differs) :]
    # Counts, such as how often a prompt was used, are the same by accident, each in runs of its own.
    return bool(largest[largest * width > NO_SAMPLE].sum() >= TOGETHER * counts.sum())


def _has_own(moves: Numbers, n_bytes: npt.NDArray[np.int64]) -> bool:
    """Tell whether a group of rows changes something in a way that no other group does."""
    length = np.linalg.norm(moves, axis=1)
    alike = np.abs(moves @ moves.T) / np.maximum(length[:, None] * length, 1e-300)
    np.fill_diagonal(alike, 0.0)
    own = (alike.max(axis=1) < SAME_WAY) & (length > ROUNDING * length.max()) & (n_bytes > NO_SAMPLE)
    return bool(own.any())


def _alike(arrays: list[Array | None]) -> list[Array]:
    """Return arrays filled up with zeros to the same length."""
    known = [array for array in arrays if array is not None]
    n, unit = max(map(len, known)), known[0]
    out = []
    for array in arrays:
        filled = np.zeros((n, unit.shape[1]), unit.dtype)
        if array is not None:
            filled[: len(array)] = array
        out.append(filled)
    return out
