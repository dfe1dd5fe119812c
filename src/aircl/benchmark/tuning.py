"""Options of methods, chosen by Optuna on held-out TRAINING samples: the same budget for every method."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aircl.benchmark.about import method_options
from aircl.benchmark.evaluation import Samples
from aircl.benchmark.grid import learn_most
from aircl.benchmark.runner import Runner
from aircl.methods import METHODS, Setup, create_method
from aircl.methods.method import Range
from aircl.methods.registry import load_methods
from aircl.scenarios import Stream

# For options that many methods have, where a method does not declare ranges of its own.
COMMON: Mapping[str, Range] = {
    "learning_rate": Range(1e-4, 1e-1, log=True),
    "epochs": Range(1, 40, integer=True, log=True),
    "momentum": Range(0.0, 0.99),
}
# The ridge of analytic methods, which is an option of the run.
GAMMA = Range(1e-6, 1e6, log=True)


@dataclass(frozen=True)
class Tuned:
    """What was chosen for a method, and what it took.

    Attributes
    ----------
    method : str
    values : dict
        The chosen options; "gamma" is one of the run.
    score, default_score : float
        Class-balanced accuracy on held-out training samples, with these and with the defaults.
    trials : int
    seconds : float
    """

    method: str
    values: dict[str, Any]
    score: float
    default_score: float
    trials: int
    seconds: float


def search_space(method: str, *, online: bool, ranges: Mapping[str, Range] | None = None) -> dict[str, Range]:
    """Return the ranges of a method's options: those that are given, those that it declares, and common ones.

    Raises
    ------
    ValueError
        If a range is given of an option that the method has not.

    Examples
    --------
    >>> sorted(search_space("er", online=False))
    ['epochs', 'learning_rate', 'momentum']
    >>> search_space("acil", online=False)
    {'gamma': Range(low=1e-06, high=1000000.0, log=True, integer=False, choices=())}
    """
    load_methods()
    cls, given = METHODS[method], dict(ranges or {})
    known = cls.resolve_options({}, online=online)
    space = {name: COMMON[name] for name in known if name in COMMON}
    if online:
        space.pop("epochs", None)  # one pass is one pass
    space |= cls.search_space
    if cls.analytic and not space:
        space["gamma"] = GAMMA
    for name in given:
        if name not in known and not (name == "gamma" and cls.analytic):
            raise ValueError(f"{method} has no option {name!r} to search. It has {', '.join(known) or 'none'}.")
    return space | given


def tune(
    runner: Runner,
    method: str,
    *,
    trials: int = 20,
    ranges: Mapping[str, Range] | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Tuned:
    """Choose options of a method for the first stream of a runner's first experiment.

    Parameters
    ----------
    runner : Runner
        Its first experiment says data, backbone, stream, buffer and seed.
    method : str
    trials : int, default=20
        The first of them are the defaults.
    ranges : mapping of str to Range, optional
        In place of those that the method declares.
    progress : callable, optional
        Called with the number of trials done and the best score.

    Returns
    -------
    tuned : Tuned

    Notes
    -----
    A fifth of the training samples of every class in every phase is held out, nothing of a class of one. The rest is
    streamed as in a run. No test sample is touched.
    """
    try:
        import optuna
    except ImportError as error:
        raise ValueError("optuna is not installed: pip install 'aircl[tune]'.") from error
    experiment = runner.config.experiments[0]
    space = search_space(method, online=experiment.online, ranges=ranges)
    if not space:
        raise ValueError(f"{method} declares no ranges to search, and none are given.")
    setup, stream, train = runner.prepare(experiment, method)
    defaults = method_options(experiment, method)
    began = time.perf_counter()
    scores: list[float] = []

    def objective(trial: Any) -> float:
        values = {name: one.suggest(trial, name) for name, one in space.items()}
        try:
            scores.append(_score(method, setup, values, stream, train))
        except Exception:  # options that do not go together are no good ones
            scores.append(0.0)
        if progress is not None:
            progress(len(scores), max(scores))
        return scores[-1]

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=setup.seed))
    first = {name: defaults[name] for name, one in space.items() if name in defaults and one.holds(defaults[name])}
    study.enqueue_trial(first)
    study.optimize(objective, n_trials=trials)
    default_score = _score(method, setup, {}, stream, train)
    values, score = dict(study.best_params), float(study.best_value)
    if default_score >= score:  # the search found nothing better, so nothing is changed
        values, score = {}, default_score
    return Tuned(method, values, score, default_score, trials, time.perf_counter() - began)


def _score(method: str, setup: Setup, values: Mapping[str, Any], stream: Stream, train: Samples) -> float:
    """Return the class-balanced accuracy on held-out training samples."""
    options = {**setup.options, **{name: value for name, value in values.items() if name != "gamma"}}
    made = create_method(method, replace(setup, options=options, gamma=values.get("gamma", setup.gamma)))
    return learn_most(made, stream, train, setup.batch_size)()
