"""The last weighted sum of second moments, kept up to date while predictions and small batches alternate."""

from __future__ import annotations

import numpy as np

from aircl.engine.backend import Array, backend_of
from aircl.engine.batch import ClassRows

# Each step rounds; after this many the sum is made anew.
STEPS = 64
# A stream that learns this many rows without a prediction does not need the sum now.
IDLE_ROWS = 8192


class RunningGram:
    """G = sum_y pi_y A_y with the weights it was last asked for.

    New rows X of class y join with the weight the class has, pi_y X'X; when the weights move on, the classes whose
    weight has changed are added with the difference: pi' A' - pi A = (pi' - pi) A' + pi (A' - A).

    Parameters
    ----------
    G : array of shape (f, f)
        Zeros, of which the lower triangle is used.
    """

    def __init__(self, G: Array) -> None:
        self.G = G
        self.pi = np.zeros(0)
        self._steps = 0
        self._idle_rows = 0

    def add(self, batch: ClassRows) -> bool:
        """Add rows at the current weights; tell whether it is worth going on."""
        self._idle_rows += len(batch.rows)
        if self._idle_rows > IDLE_ROWS:
            return False
        known = batch.slots < len(self.pi)
        root = np.zeros(len(batch.slots))
        root[known] = np.sqrt(self.pi[batch.slots[known]])
        per_row = np.repeat(root, batch.stop - batch.start)
        seen = per_row > 0
        backend = backend_of(self.G)
        rows = batch.rows if np.all(seen) else backend.take(batch.rows, np.flatnonzero(seen))
        backend.add_gram(self.G, rows * backend.column(per_row[seen], rows))
        return True

    def can_follow(self, pi: Array, count: Array) -> bool:
        """Tell whether following pi is cheaper than summing anew, and still as exact."""
        changed = pi != np.append(self.pi, np.zeros(len(pi) - len(self.pi)))
        return self._steps < STEPS and float(count[changed].sum()) < 0.7 * float(count.sum())

    def follow(self, pi: Array) -> Array:
        """Take the new weights; return by how much each class's second moment is still to be added."""
        difference = pi - np.append(self.pi, np.zeros(len(pi) - len(self.pi)))
        self.pi = pi.copy()
        self._steps += 1
        self._idle_rows = 0
        return np.asarray(difference)
