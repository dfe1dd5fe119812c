"""The random states that belong to the whole process, set aside and put back."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def global_randomness(seed: int) -> Iterator[None]:
    """Let the generators of Python, NumPy and torch begin from a seed, and put them back as they were.

    Torch is left alone where nobody has imported it.
    """
    torch: Any = sys.modules.get("torch")
    python = random.getstate()
    numpy = np.random.get_state()  # noqa: NPY002 (the global state is what is meant)
    tensors = None if torch is None else torch.random.get_rng_state()
    try:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        if torch is not None:
            torch.random.manual_seed(seed)
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        if torch is not None:
            torch.random.set_rng_state(tensors)
