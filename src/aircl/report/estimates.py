"""Means over seeds, with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean over seeds.

    Attributes
    ----------
    mean : float
    standard_error : float or None
        Sample standard deviation over sqrt(n); None for one seed.
    n : int
        Number of seeds.
    """

    mean: float
    standard_error: float | None
    n: int


def estimate(values: Iterable[float | None]) -> Estimate | None:
    """Return mean and standard error of the values that there are; None if there is none.

    Examples
    --------
    >>> estimate([1.0, None, 2.0, 3.0])
    Estimate(mean=2.0, standard_error=0.5773502691896258, n=3)
    >>> estimate([1.0])
    Estimate(mean=1.0, standard_error=None, n=1)
    """
    known = np.array([value for value in values if value is not None and math.isfinite(value)])
    if not len(known):
        return None
    error = float(known.std(ddof=1) / math.sqrt(len(known))) if len(known) > 1 else None
    return Estimate(float(known.mean()), error, len(known))


@dataclass(frozen=True)
class Series:
    """Means over seeds, along samples, phases or classes.

    Attributes
    ----------
    x : array of shape (n,)
        Samples seen, phases from 1, or classes.
    mean : array of shape (n,)
        nan where no seed has a value.
    standard_error : array of shape (n,)
        nan where fewer than two seeds have a value.
    """

    x: npt.NDArray[Any]
    mean: Floats
    standard_error: Floats

    @classmethod
    def over_seeds(cls, x: npt.NDArray[Any], values: Floats) -> Series:
        """Return the means of values of shape (seeds, n), of which some may be nan."""
        columns = [estimate(column) for column in values.T.tolist()]
        return cls(
            x,
            np.array([math.nan if cell is None else cell.mean for cell in columns]),
            np.array(
                [math.nan if cell is None or cell.standard_error is None else cell.standard_error for cell in columns]
            ),
        )
