"""Whether two methods, or two states of one, are the same."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from aircl.benchmark.contract.kept_samples import Array, read_arrays
from aircl.benchmark.contract.pupil import Pupil
from aircl.benchmark.memory import written_bytes

# Arrays by file and by name; the name is "" for the bytes of a file without arrays that are known.
State = dict[str, dict[str, Array]]

# What is summed in another order is rounded in another way.
TOLERANCE = 1e-3


def difference(one: Pupil, other: Pupil) -> str:
    """Return how two methods differ on test rows, in words; "" if they do not."""
    return answers_differ((one.predict_test(), one.score_test()), (other.predict_test(), other.score_test()))


def answers_differ(one: tuple[Any, Any], other: tuple[Any, Any]) -> str:
    """Return how predictions and scores differ, in words; "" if they do not."""
    (predicted, scores), (again, scores_again) = one, other
    if changed := int(np.count_nonzero(predicted != again)):
        return f"{changed} of {len(predicted)} test rows get another label"
    if scores is None or scores_again is None:
        return "" if scores is scores_again else "one has scores and the other has none"
    if scores.shape != scores_again.shape:
        return f"they have scores of shape {scores.shape} and {scores_again.shape}"
    if not np.allclose(scores, scores_again, rtol=TOLERANCE, atol=TOLERANCE):
        return f"scores of test rows are up to {np.abs(scores - scores_again).max():.2g} apart"
    return ""


def saved_state(pupil: Pupil) -> State:
    """Return what a method saves: arrays by file and name; the bytes, by the name "", of files without known arrays."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        pupil.save(directory)
        state: State = {}
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            whole = {"": np.frombuffer(path.read_bytes(), np.uint8)}
            # Of JSON, only lists of numbers would be arrays: all of it counts.
            arrays = {} if path.suffix == ".json" else read_arrays(path)
            arrays = {key: array for key, array in arrays.items() if array.dtype.kind in "fiub"}
            state[path.relative_to(directory).as_posix()] = arrays or whole
        return state


def saved_bytes(pupil: Pupil) -> int:
    """Return how many bytes a method saves."""
    with TemporaryDirectory() as name:
        pupil.save(Path(name))
        return written_bytes(Path(name), pupil.setup.backbone)


def states_differ(before: State, after: State) -> list[str]:
    """Return the names of files or arrays that differ by more than rounding.

    Arrays of formats that are known are compared as numbers; what is not an array in them, such as an id that tells
    where statistics came from, does not count. Other files are compared byte by byte.
    """
    names = sorted(before.keys() ^ after.keys())
    for file in sorted(before.keys() & after.keys()):
        was, now = before[file], after[file]
        if "" in was or "" in now:
            same = was.keys() == now.keys() and np.array_equal(was[""], now[""])
            names += [] if same else [file]
            continue
        for array in sorted(was.keys() | now.keys()):
            if array not in was or array not in now or not _close(was[array], now[array]):
                names.append(f"{file} ({array})")
    return names


def _close(one: Array, other: Array) -> bool:
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return False
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    scale = max(float(np.abs(one[np.isfinite(one)]).max(initial=0.0)), 1e-12)
    return bool(np.allclose(one, other, rtol=0, atol=1e-4 * scale, equal_nan=True))


def differing_files(before: State, after: State) -> list[str]:
    """Return the names of files that differ, with the array if there is one."""
    changed = []
    for file in sorted(before.keys() | after.keys()):
        was, now = before.get(file, {}), after.get(file, {})
        names = [
            name
            for name in sorted(was.keys() | now.keys())
            if name not in was or name not in now or was[name].tobytes() != now[name].tobytes()
        ]
        changed += [f"{file} ({name})" if name else file for name in names]
    return changed
