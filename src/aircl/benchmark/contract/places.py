"""A law of keeping: equal rows of a batch count in the same places of what is saved, none of them in one of its own.

A few batches of a stream have twelve rows that are the same. Run after run, four of them are replaced by another row. A
sum, a network or a moving average changes in the same numbers whichever four they were, as a batch is a set; a sample
that is kept, in whatever form, changes numbers that the others leave as they were.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from aircl.benchmark.contract.exam import Exam
from aircl.benchmark.contract.keeping import bytes_of_samples, claimed
from aircl.benchmark.contract.kept_samples import Array, read_arrays
from aircl.benchmark.contract.material import BATCH_SIZE, Material
from aircl.benchmark.contract.pupil import ViolationError
from aircl.scenarios.stream import Indices

# Rows of a class: its statistics are full, so that none of them is kept as rows.
ROWS, CLASSES, PROBED = 72, (0, 1, 2), 1
# Batches with rows that are the same: the first, one in the middle and the last. As many are replaced at a time.
BATCHES, EQUAL, TOGETHER = (0, 6, 12), 12, 4
# Numbers that change by less than this share of the largest change do so by rounding.
ROUNDING = 1e-6
# Two groups of rows have places of their own if they have fewer changed numbers than this share in common, and if the
# cosine of their changes is smaller, too. Samples share nothing; where noise is added to rows, or numbers stay the same
# by accident, most is shared or moves the same way.
IN_COMMON, SAME_WAY = 0.5, 0.5
# Bytes that nobody knows as numbers have no direction. Whatever follows the first one that changes may change too, as
# where things are compressed.
BYTES_IN_COMMON = 0.85
# So few numbers, or words of bytes, may differ by accident: counts of how often something was used, for example.
FEW = 12

State = dict[tuple[str, str], Array]


def gives_no_place(exam: Exam) -> str:
    """Replace some of the same rows of a batch and then others of them, and compare which numbers change."""
    exam.need_saving()
    material, train, batches, other = _with_equal_rows(exam.material)
    kept, before = _taught(exam, material, train)
    if kept >= len(train):
        return f"it says that it keeps all of {kept} samples."
    found: dict[tuple[str, str], int] = {}
    # Where every run trains through a network, the batch in the middle has to do.
    for groups in batches if material.setup.backbone is None else batches[1:2]:
        changed = []
        for group in groups:
            inputs = material.train_inputs.copy()
            inputs[group] = other
            changed.append(_taught(exam, dataclasses.replace(material, train_inputs=inputs), train)[1])
        for key in {key for state in (before, *changed) for key in state}:
            found[key] = found.get(key, 0) + _own_bytes([state.get(key) for state in (before, *changed)])
    total = sum(found.values())
    if total > kept * bytes_of_samples(exam):
        places = [f"{file} ({array})" if array else file for (file, array), size in sorted(found.items()) if size]
        raise ViolationError(
            f"{total:,} bytes of what it saves ({', '.join(places[:3])}) depend on some rows of a batch and not on "
            f"others that are the same, while it says that it keeps {kept} samples. Count samples in samples_kept, in "
            "whatever form they are, or let all rows of a class count in the same places."
        )
    return f"equal rows of a batch change the same numbers of what it saves, but for {total:,} bytes; it keeps {kept}."


def _with_equal_rows(material: Material) -> tuple[Material, Indices, list[list[Indices]], Array]:
    """Return the material with equal rows, a stream, the groups of them in each batch, and a row to replace them by."""
    own = material.rows_of(PROBED, at_most=ROWS)
    equal, single = np.split(own, [len(BATCHES) * EQUAL])
    others = material.rows_of(*(label for label in CLASSES if label != PROBED), at_most=ROWS)
    blocks = np.split(equal, len(BATCHES))
    rest = np.random.default_rng(0).permutation(np.concatenate([single, others])).tolist()
    train: list[int] = []
    for number in range(BATCHES[-1] + 1):
        mine = blocks[BATCHES.index(number)].tolist() if number in BATCHES else []
        train += mine + [rest.pop() for _ in range(BATCH_SIZE - len(mine))]
    inputs = material.train_inputs.copy()
    inputs[equal] = inputs[equal[0]]
    distance = np.abs(inputs[single].astype(np.float64) - inputs[equal[0]]).reshape(len(single), -1).sum(axis=1)
    batches = [np.split(block, EQUAL // TOGETHER) for block in blocks]
    changed = dataclasses.replace(material, train_inputs=inputs)
    return changed, np.array(train), batches, inputs[single[distance.argmax()]].copy()


def _taught(exam: Exam, material: Material, train: Indices) -> tuple[int, State]:
    """Return how many samples a new method says that it keeps after a stream of one phase, and what it saves."""
    pupil = Exam(exam.factory, material).pupil()
    pupil.attend(*exam.course(train))
    with TemporaryDirectory() as name:
        pupil.save(Path(name))
        files = sorted(path for path in Path(name).rglob("*") if path.is_file())
        state = {(path.relative_to(name).as_posix(), key): a for path in files for key, a in _read(path).items()}
        return claimed(pupil), state


def _read(path: Path) -> dict[str, Array]:
    """Return the numbers of a file, with those beside its arrays; of one without any, its bytes, eight at a time."""
    data = path.read_bytes()
    if path.suffix == ".json":
        return _numbers(data)
    arrays = {key: array.ravel() for key, array in read_arrays(path).items() if array.dtype.kind in "fiub"}
    if path.suffix == ".safetensors":
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return arrays | _numbers(json.dumps(header.get("__metadata__", {})).encode())
    return arrays or {"": _words(data)}


def _numbers(data: bytes) -> dict[str, Array]:
    """Return the numbers of JSON as one array, its texts as another; a text that is JSON itself is taken apart."""
    numbers: list[float] = []
    texts: list[str] = []
    waiting: list[Any] = [json.loads(data)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, int | float):  # integers may be too large for a float
            numbers.append(float(value if abs(value) < 1e300 else value % 2**53))
        elif isinstance(value, str):
            try:
                waiting.append(json.loads(value))
            except ValueError:
                texts.append(value)
    return {"numbers": np.array(numbers), "texts": _words("\0".join(texts).encode("utf-8", "surrogatepass"))}


def _words(data: bytes) -> Array:
    return np.frombuffer(data + bytes(-len(data) % 8), "V8")


def _own_bytes(states: list[Array | None]) -> int:
    """Return how many bytes of an array depend on some groups of rows alone, if any two have places of their own."""
    known = [array for array in states if array is not None]
    filled = np.zeros((len(states), max(map(len, known))), known[0].dtype)
    for line, array in zip(filled, states, strict=True):
        if array is not None:
            line[: len(array)] = array
    differs = filled[1:] != filled[0]
    moves, share = np.zeros(differs.shape), BYTES_IN_COMMON
    if filled.dtype.kind != "V":
        moves = np.nan_to_num(filled[1:].astype(np.float64) - filled[0].astype(np.float64))
        share = IN_COMMON
        differs &= np.abs(moves) > ROUNDING * np.abs(moves).max(axis=1, keepdims=True, initial=0)
    # Some rows may not be learned from, such as those that something is chosen on.
    learned = differs.any(axis=1)
    differs, moves = differs[learned], moves[learned]
    for i, j in zip(*np.triu_indices(len(differs), 1), strict=True):
        either, both = np.count_nonzero(differs[i] | differs[j]), np.count_nonzero(differs[i] & differs[j])
        same_way = np.abs(moves[i] @ moves[j]) / max(np.linalg.norm(moves[i]) * np.linalg.norm(moves[j]), 1e-300)
        if either - both > FEW and both < share * either and same_way < SAME_WAY:
            return int(np.count_nonzero(differs.any(axis=0) & ~differs.all(axis=0))) * filled.itemsize
    return 0
