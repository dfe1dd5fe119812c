"""Whether two methods, or two states of one, are the same."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from aircl.benchmark.contract.kept_samples import read_arrays
from aircl.benchmark.contract.pupil import Pupil

# Bytes by file, and by array where the file is an archive of arrays.
State = dict[str, dict[str, bytes]]

# What is summed in another order is rounded in another way.
TOLERANCE = 1e-3


def difference(one: Pupil, other: Pupil) -> str:
    """Return how two methods differ on test rows, in words; "" if they do not."""
    predicted, again = one.predict_test(), other.predict_test()
    if changed := int(np.count_nonzero(predicted != again)):
        return f"{changed} of {len(predicted)} test rows get another label"
    scores, scores_again = one.score_test(), other.score_test()
    if scores is None or scores_again is None:
        return "" if scores is scores_again else "one has scores and the other has none"
    if scores.shape != scores_again.shape:
        return f"they have scores of shape {scores.shape} and {scores_again.shape}"
    if not np.allclose(scores, scores_again, rtol=TOLERANCE, atol=TOLERANCE):
        return f"scores of test rows are up to {np.abs(scores - scores_again).max():.2g} apart"
    return ""


def saved_state(pupil: Pupil) -> State:
    """Return what a method saves: bytes by file, and by array where the file is an archive of arrays."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        pupil.save(directory)
        state = {}
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            content = {"": path.read_bytes()}
            if path.suffix == ".npz":  # it may note when it was written, so it is the arrays that count
                content = {key: array.tobytes() for key, array in read_arrays(path).items()} or content
            state[path.relative_to(directory).as_posix()] = content
        return state


def differing_files(before: State, after: State) -> list[str]:
    """Return the names of files that differ, with the array if there is one."""
    changed = []
    for file in sorted(before.keys() | after.keys()):
        was, now = before.get(file, {}), after.get(file, {})
        names = [name for name in sorted(was.keys() | now.keys()) if was.get(name) != now.get(name)]
        changed += [f"{file} ({name})" if name else file for name in names]
    return changed
