"""What a run is asked for: experiments, each a dataset, a backbone, a stream, methods and seeds."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self, TypedDict

from aircl.scenarios import PRESETS, SCENARIOS, describe_scenario
from aircl.storage.errors import InputError
from aircl.storage.records import build, check

# Streams that are passed through once, without a word about where phases end.
ONLINE = ("si-blurry", "si-blurry-paper", "i-blurry", "blurry-m")

# Enough for every backbone: gammas for class weights of mean 1 and features of any scale.
GAMMA_GRID = tuple(10.0**power for power in range(-6, 7))

Gamma = float | Literal["auto", "grid"]

# What an option may be.
Option = bool | int | float | str | None | list[bool | int | float | str]


class ConfigError(InputError):
    """A configuration asks for something that there is not, or in a way that cannot be understood."""


class Tuning(TypedDict):
    """How options of a method were chosen: what it took, and the scores on held-out samples with and without."""

    trials: int
    seconds: float
    score: float
    default_score: float


class _Run(TypedDict, total=False):
    name: str
    experiments: list[Any]


@dataclass(frozen=True)
class Experiment:
    """Methods that are compared on the same streams.

    Attributes
    ----------
    dataset, backbone : str
        Names of `aircl list datasets` and `aircl list backbones`.
    scenario : str
        A name of `aircl list scenarios`.
    options : mapping
        Of the scenario, without the order.
    orders : tuple of str
        Orders of the scenario, each a stream of its own; ("",) for the scenario's own.
    methods : tuple of str
        Names of `aircl list methods`.
    seeds : tuple of int
        One repetition each: of the stream, the buffer and whatever else is random.
    buffer : int or None
        Width of the random ReLU buffer of analytic methods; None: none.
    gamma : float, "auto" or "grid"
        The ridge of analytic methods: a number, chosen from the statistics, or chosen from a grid on a fifth of the
        training samples that is held out for it.
    batch_size : int
    evaluate_every : int or None
        Training samples between evaluations for A_auc; None: at phase ends only.
    device : str or None
        Where networks compute: "auto", "cpu", "cuda", "cuda:1" or "mps"; None: AIRCL_DEVICE, else "auto".
    unfreeze : bool
        Whether methods that can train the backbone do so, each a copy of its own.
    method_options : mapping of str to mapping
        Options of methods, by the name of the method.
    tuning : mapping of str to mapping
        How options were chosen, by the name of the method: what `aircl tune` writes, and the report tells.

    Examples
    --------
    >>> from aircl.benchmark import Experiment
    >>> experiment = Experiment("digits", "identity", "si-blurry", {"phases": 3}, methods=("air", "acil"), seeds=(1, 2))
    >>> experiment.online, experiment.gamma, experiment.batch_size
    (True, 'auto', 64)
    >>> Experiment("digits", "identity", "cil", gamma="none")
    Traceback (most recent call last):
    ValueError: gamma='none' is neither a number nor auto nor grid.
    """

    dataset: str
    backbone: str
    scenario: str
    options: Mapping[str, Option] = field(default_factory=dict)
    orders: tuple[str, ...] = ("",)
    methods: tuple[str, ...] = ("air", "air-shared", "acil")
    seeds: tuple[int, ...] = (1,)
    buffer: int | None = None
    gamma: Gamma = "auto"
    batch_size: int = 64
    evaluate_every: int | None = None
    device: str | None = None
    unfreeze: bool = False
    method_options: Mapping[str, Mapping[str, Option]] = field(default_factory=dict)
    tuning: Mapping[str, Tuning] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        for name in ("batch_size", "buffer", "evaluate_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}={value} is not at least 1.")
        for name in ("orders", "methods", "seeds"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty: name at least one.")
        for name, options in self.method_options.items():
            if name not in self.methods:
                raise ValueError(f"there are options of {name!r}, but the methods are {', '.join(self.methods)}.")
            if not isinstance(options, Mapping):
                raise ValueError(f"the options of {name!r} are {options!r}; they should be a table, names with values.")

    @property
    def online(self) -> bool:
        """Whether methods are not told where phases end."""
        return self.scenario in ONLINE

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Build an experiment from what a TOML file or `run.json` says; unknown keys and wrong types are errors."""
        if not isinstance(values, Mapping):
            raise ConfigError(f"an experiment is {values!r}, but it should be a table: [[experiments]].")
        known = [f.name for f in fields(cls)]
        _check_keys(values, known, "an experiment")
        missing = [name for name in ("dataset", "backbone", "scenario") if name not in values]
        if missing:
            raise ConfigError(f"an experiment lacks {', '.join(missing)}.")
        return build(cls, values, "an experiment")


@dataclass(frozen=True)
class RunConfig:
    """A whole run.

    Attributes
    ----------
    name : str
    experiments : tuple of Experiment

    Examples
    --------
    From what a TOML file holds, with a misspelt key and without:

    >>> from aircl.benchmark import RunConfig
    >>> experiment = {"dataset": "digits", "backbone": "identity", "scenario": "cil"}
    >>> RunConfig.from_mapping({"experiments": [{**experiment, "methodes": ["air"]}]})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.benchmark.config.ConfigError: an experiment has no key 'methodes'. Did you mean 'methods'? Known: dataset, ...
    >>> config = RunConfig.from_mapping({"name": "mine", "experiments": [experiment]})
    >>> config.name, config.experiments[0].methods
    ('mine', ('air', 'air-shared', 'acil'))
    """

    name: str
    experiments: tuple[Experiment, ...]

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Build a configuration from a mapping; unknown keys are errors."""
        if not isinstance(values, Mapping):
            raise ConfigError(f"the configuration is {values!r}, but it should be a table with [[experiments]].")
        _check_keys(values, ["name", "experiments"], "a run")
        check(dict(values), _Run, "the configuration")
        experiments = tuple(map(Experiment.from_mapping, values.get("experiments", ())))
        if not experiments:
            raise ConfigError("a run needs at least one experiment: [[experiments]] in the TOML file.")
        return cls(values.get("name", "run"), experiments)

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read a configuration from a file."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path} cannot be read as a TOML file: {error}") from error
        try:
            return cls.from_mapping({"name": path.stem, **values})
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from error

    def stream_names(self) -> tuple[str, ...]:
        """Return what rows and reports call the scenario of each experiment.

        It is the name of the scenario; where experiments on the same data differ in more, what they differ in follows.
        """
        names = []
        for one in self.experiments:
            same = [
                _settings(other)
                for other in self.experiments
                if (other.dataset, other.backbone, other.scenario) == (one.dataset, one.backbone, one.scenario)
            ]
            own = _settings(one)
            differing = [key for key in own if any(key not in other or other[key] != own[key] for other in same)]
            names.append(",".join([one.scenario, *(f"{key}={own[key]}" for key in differing)]))
        return tuple(names)

    def to_mapping(self) -> dict[str, Any]:
        """Return the configuration as JSON would hold it."""
        experiments = [{**asdict(e), "options": dict(e.options)} for e in self.experiments]
        return {"name": self.name, "experiments": experiments}

    def changed(self, **changes: Any) -> RunConfig:
        """Return the configuration with some values of all experiments replaced.

        Where methods are, options of those that are gone go with them.
        """
        experiments = []
        for experiment in self.experiments:
            methods = changes.get("methods", experiment.methods)
            kept = {name: options for name, options in experiment.method_options.items() if name in methods}
            experiments.append(replace(experiment, **{"method_options": kept, **changes}))
        return replace(self, experiments=tuple(experiments))

    def with_methods(self, names: Sequence[str]) -> RunConfig:
        """Return the configuration with methods added to those of all experiments."""
        return replace(
            self,
            experiments=tuple(
                replace(one, methods=tuple(dict.fromkeys((*one.methods, *names)))) for one in self.experiments
            ),
        )

    def resampled(self) -> RunConfig:
        """Return the configuration with `resample` set in all scenarios that draw samples.

        Raises
        ------
        ValueError
            If there is none: the others take all samples.
        """
        drawing = [name for name in SCENARIOS if "resample" in describe_scenario(name).options]
        if not any(one.scenario in drawing for one in self.experiments):
            used = ", ".join(dict.fromkeys(one.scenario for one in self.experiments))
            raise ValueError(f"{used} take all samples there are; resample is for {', '.join(drawing)}.")
        return replace(
            self,
            experiments=tuple(
                replace(one, options={**one.options, "resample": True}) if one.scenario in drawing else one
                for one in self.experiments
            ),
        )

    def with_options(self, method_options: Mapping[str, Mapping[str, Any]]) -> RunConfig:
        """Return the configuration with options added to those of the methods, in all experiments that have them."""
        used = {method for experiment in self.experiments for method in experiment.methods}
        if unused := [name for name in method_options if name not in used]:
            raise ValueError(
                f"there are options of {', '.join(map(repr, unused))}, but the methods of the run are "
                f"{', '.join(sorted(used))}."
            )
        experiments = []
        for experiment in self.experiments:
            options = {name: dict(of_method) for name, of_method in experiment.method_options.items()}
            for name, added in method_options.items():
                if name in experiment.methods:
                    options[name] = {**options.get(name, {}), **added}
            experiments.append(replace(experiment, method_options=options))
        return replace(self, experiments=tuple(experiments))


def check_gamma(value: Any) -> Gamma:
    """Return a ridge, as an experiment or one of its methods has it; refuse what is none."""
    if isinstance(value, bool) or not (isinstance(value, int | float) or value in ("auto", "grid")):
        raise ValueError(f"gamma={value!r} is neither a number nor auto nor grid.")
    if isinstance(value, int | float) and not value > 0:
        raise ValueError(f"gamma={value!r} is not above 0.")
    gamma: Gamma = value
    return gamma


def _settings(experiment: Experiment) -> dict[str, Any]:
    """Return everything that results depend on, beside data, backbone, scenario, order, method and seed."""
    names = ("buffer", "gamma", "batch_size", "evaluate_every", "unfreeze")
    options = {f"{name}.{key}": v for name, of in experiment.method_options.items() for key, v in of.items()}
    return {**experiment.options, **{name: getattr(experiment, name) for name in names}, **options}


def _check_keys(values: Mapping[str, Any], known: list[str], what: str) -> None:
    for key in values:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"{what} has no key {key!r}.{hint} Known: {', '.join(known)}.")


def default_config() -> RunConfig:
    """Return the run of `aircl run` alone: embedded data, nothing that needs torch, well under a minute.

    Returns
    -------
    config : RunConfig

    Examples
    --------
    >>> from aircl.benchmark import default_config
    >>> [(one.dataset, one.backbone, len(one.methods)) for one in default_config().experiments]
    [('digits', 'identity', 9), ('cities', 'char-ngrams', 6)]
    """
    quick = ("air", "air-shared", "air-pooled", "acil", "ncm", "slda")
    methods = (*quick, "aef-ocl", "ds-al", "fecam")
    digits = Experiment(
        "digits", "identity", "long-tail", {"phases": 5, "counts": "exp", "ratio": 1 / 40}, ("descending",), methods,
        seeds=(1, 2, 3), buffer=500, evaluate_every=100,
    )  # fmt: skip
    cities = Experiment(
        "cities", "char-ngrams", "long-tail", {"phases": 4, "counts": "natural"}, ("descending",), quick, seeds=(1,)
    )
    return RunConfig("default", (digits, cities))


def preset_config(name: str, dataset: str | None, backbone: str) -> RunConfig:
    """Return the run of one of the paper's tables: all columns of a dataset.

    Parameters
    ----------
    name : {"table1", "table2"}
    dataset : str or None
        One of the table's; None: its first.
    backbone : str

    Returns
    -------
    config : RunConfig

    Examples
    --------
    >>> from aircl.benchmark import preset_config
    >>> (experiment,) = preset_config("table1", "imagenet-r", "efficientnet-lite0").experiments
    >>> experiment.scenario, experiment.orders, experiment.buffer
    ('long-tail', ('ascending', 'descending', 'shuffled'), 2048)
    """
    if name not in ("table1", "table2"):
        raise ValueError(f"there is no preset {name!r}. Known: table1, table2.")
    columns = [preset for preset in PRESETS.values() if preset.table == int(name[-1])]
    known = list(dict.fromkeys(preset.dataset for preset in columns))
    dataset = dataset or known[0]
    columns = [preset for preset in columns if preset.dataset == dataset]
    if not columns:
        raise ValueError(f"{name} has no dataset {dataset!r}. It has {', '.join(known)}.")
    first = columns[0]
    experiment = Experiment(
        dataset,
        backbone,
        first.scenario,
        {key: value for key, value in first.options.items() if key != "order"},
        tuple(preset.options.get("order", "") for preset in columns),
        seeds=first.seeds,
        buffer=first.buffer_width,
        batch_size=first.batch_size,
        evaluate_every=first.evaluate_every,
    )
    return RunConfig(name, (experiment,))
