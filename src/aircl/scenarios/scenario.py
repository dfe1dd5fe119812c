"""Scenarios by name: how they are declared, listed, checked and called."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec

import numpy as np
import numpy.typing as npt

from aircl.registry import Registry
from aircl.scenarios.stream import Indices, Labels, Stream, make_phases

Options = ParamSpec("Options")

SCENARIOS: Registry[Callable[..., Stream]] = Registry("scenario")


@dataclass(frozen=True)
class ScenarioInfo:
    """What a scenario is and can be asked for.

    Attributes
    ----------
    name : str
    description : str
        One line.
    options : dict
        Names of the options, with their defaults. The seed is not one of them: every scenario has it.

    Examples
    --------
    >>> from aircl.scenarios import describe_scenario
    >>> info = describe_scenario("blurry-m")
    >>> print(info.description)
    Classes that keep to one phase, and classes that appear in every phase.
    >>> info.options
    {'phases': 5, 'disjoint': 0.5}
    """

    name: str
    description: str
    options: dict[str, Any]


def scenario(
    name: str,
) -> Callable[[Callable[Concatenate[Labels, Options], Sequence[Indices]]], Callable[Concatenate[Any, Options], Stream]]:
    """Return a decorator that makes a scenario of a function, and files it under a name.

    The function takes labels (checked before it sees them) and keyword-only options, `seed` among them, and returns
    the training indices of each phase. The scenario returns a `Stream`; classes that are in no phase are reported as
    dropped.

    Parameters
    ----------
    name : str
        For `make_stream` and `aircl run --scenario`.

    Returns
    -------
    decorator : callable

    Examples
    --------
    The training set backwards, in halves:

    >>> import numpy as np
    >>> from aircl.scenarios import make_stream, scenario
    >>> @scenario("backwards")
    ... def backwards(labels, *, seed=0, phases=2):
    ...     "The last samples first."
    ...     return np.array_split(np.arange(len(labels))[::-1], phases)
    >>> [phase.train.tolist() for phase in make_stream("backwards", [0, 0, 1, 2]).phases]
    [[3, 2], [1, 0]]
    """

    def decorate(
        build: Callable[Concatenate[Labels, Options], Sequence[Indices]],
    ) -> Callable[Concatenate[Any, Options], Stream]:
        signature = inspect.signature(build)

        @functools.wraps(build)
        def make(labels: Any, /, *args: Options.args, **kwargs: Options.kwargs) -> Stream:
            asked = signature.bind(labels, *args, **kwargs)
            asked.apply_defaults()
            options = {key: value for key, value in asked.arguments.items() if key not in ("labels", "domains")}
            check_count("seed", options["seed"], least=0)
            y = check_labels("labels", labels)
            phases = make_phases(y, build(y, *args, **kwargs))
            return Stream(name, options, phases, np.setdiff1d(y, phases[-1].exposed))

        return SCENARIOS.register(name)(make)

    return decorate


def make_stream(
    name: str, labels: npt.ArrayLike, *, seed: int = 0, domains: npt.ArrayLike | None = None, **options: Any
) -> Stream:
    """Return the stream that a scenario makes of a training set. No data is touched.

    Parameters
    ----------
    name : str
        A name of `list_scenarios`.
    labels : array of shape (n,)
        Integer labels of the training set, in its order; not negative, gaps are fine.
    seed : int, default=0
        The same seed gives the same stream.
    domains : array of shape (n,), default=None
        Where each sample comes from; needed by domain-incremental streams, ignored by all others.
    **options
        Options of the scenario.

    Returns
    -------
    stream : Stream

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.scenarios import make_stream
    >>> labels = np.repeat(np.arange(100), 500)
    >>> stream = make_stream("long-tail", labels, counts="exp", ratio=1 / 500, order="ascending")
    >>> stream.total, [len(phase.train) for phase in stream.phases]
    (8155, [10, 20, 42, 83, 160, 306, 580, 1086, 2040, 3828])
    """
    build = SCENARIOS[name]
    allowed = describe_scenario(name).options
    if unknown := sorted(options.keys() - allowed):
        raise ValueError(f"{name} has no option {', '.join(unknown)}. Allowed: {', '.join(allowed)}, seed.")
    if "domains" in inspect.signature(build).parameters:
        options["domains"] = domains
    return build(labels, seed=seed, **options)


def describe_scenario(name: str) -> ScenarioInfo:
    """Return what a scenario is and can be asked for.

    Parameters
    ----------
    name : str
        A name of `list_scenarios`.

    Returns
    -------
    info : ScenarioInfo

    Examples
    --------
    >>> from aircl.scenarios import describe_scenario
    >>> describe_scenario("long-tail").options
    {'phases': 10, 'counts': 'exp_max', 'ratio': 0.002, 'order': 'descending', 'resample': False}
    """
    build = SCENARIOS[name]
    parameters = inspect.signature(build).parameters.values()
    options = {p.name: p.default for p in parameters if p.name not in ("labels", "seed", "domains")}
    return ScenarioInfo(name, (inspect.getdoc(build) or "").partition("\n")[0], options)


def list_scenarios() -> list[ScenarioInfo]:
    """Return all scenarios with their descriptions and options, by name.

    Returns
    -------
    infos : list of ScenarioInfo

    Examples
    --------
    >>> from aircl.scenarios import list_scenarios
    >>> [info.name for info in list_scenarios() if "blurry" in info.name]
    ['blurry-m', 'i-blurry', 'si-blurry', 'si-blurry-paper']
    """
    return [describe_scenario(name) for name in sorted(SCENARIOS)]


def check_labels(name: str, values: npt.ArrayLike, length: int | None = None) -> Labels:
    """Return values as an array of integers that are not negative, at least one of them."""
    array = np.asarray(values)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu" or array.min() < 0:
        smallest = f", smallest {array.min()}" if array.size and array.dtype.kind in "iu" else ""
        raise ValueError(
            f"{name} should be a 1-d array of integers from 0, one for each training sample; "
            f"got shape {array.shape}, dtype {array.dtype}{smallest}. Encode class names as integers first."
        )
    if length is not None and len(array) != length:
        raise ValueError(f"there are {len(array)} {name} for {length} labels. Give one for each training sample.")
    return array.astype(np.int64, copy=False)


def check_count(name: str, value: Any, *, least: int = 1, most: int | None = None, why: str = "") -> None:
    """Refuse what is not an integer between two limits; `why` explains the upper one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r} is not an integer of at least {least}.")
    if most is not None and value > most:
        raise ValueError(f"{name}={value} is more than {most}: {why}.")


def check_phases(phases: int, n_classes: int) -> None:
    """Refuse a number of phases that would leave some without a class of their own."""
    check_count("phases", phases, most=n_classes, why="each phase needs at least one class. Ask for fewer phases")


def check_share(name: str, value: Any) -> None:
    """Refuse what is not a number from 0 to 1."""
    number = as_number(value)
    if not 0 <= number <= 1:
        advice = f" For {value} % give {number / 100:g}." if 1 < number <= 100 else ""
        raise ValueError(f"{name}={value!r} is not a share from 0 to 1.{advice}")


def as_number(value: Any) -> float:
    """Return a number as a float, and what is no number as nan."""
    return float(value) if isinstance(value, int | float | np.number) else math.nan


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not known. Choose one of {', '.join(choices)}.")


def share_of(share: float, n: int) -> int:
    """Return the floor of share * n; rounding errors of the product do not count (0.29 of 100 is 29)."""
    return math.floor(round(share * n, 6))
