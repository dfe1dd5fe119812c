"""What the benchmark asks of a learner: to learn batches, to predict, and to stop and go on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from aircl.inputs import Batch

if TYPE_CHECKING:
    from aircl.backbones import Backbone
    from aircl.scenarios import Phase

Labels = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]


class IncompatibleError(ValueError):
    """A method cannot do what it is asked for, and says why; a sweep notes it and goes on.

    Examples
    --------
    AIR as in Algorithm 1 of the paper is for phases that share no class:

    >>> import numpy as np
    >>> from aircl.methods import Setup, create_method
    >>> method = create_method("air-pooled", Setup(seed=1, n_features=2))
    >>> method.learn(np.eye(2), np.array([0, 1]))
    >>> method.end_phase(None)
    >>> method.learn(np.eye(2), np.array([0, 1]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.methods.method.IncompatibleError: store='pooled' has folded a closed phase and cannot take more samples ...
    """


class Hints:
    """What other people's code wants to know of a stream in advance. What is read is noted, and the report says so.

    Parameters
    ----------
    n_classes, n_phases : int or None
        Of the whole stream: the future, which a learner of a real stream does not know.
    device : str, default="cpu"
        Where torch should compute. It is no secret.

    Attributes
    ----------
    used : set of str
        What was read of the future.

    Examples
    --------
    >>> from aircl.methods import Hints
    >>> hints = Hints(n_classes=100, n_phases=10)
    >>> hints.device, hints.n_classes
    ('cpu', 100)
    >>> hints.used
    {'n_classes'}
    """

    def __init__(self, n_classes: int | None = None, n_phases: int | None = None, device: str = "cpu") -> None:
        self._future = {"n_classes": n_classes, "n_phases": n_phases}
        self.device = device
        self.used: set[str] = set()

    @property
    def n_classes(self) -> int | None:
        """Number of classes of the whole stream."""
        return self._ask("n_classes")

    @property
    def n_phases(self) -> int | None:
        """Number of phases of the whole stream."""
        return self._ask("n_phases")

    def _ask(self, name: str) -> int | None:
        self.used.add(name)
        return self._future[name]


@dataclass(frozen=True)
class Range:
    """Values that `aircl tune` may choose from.

    Attributes
    ----------
    low, high : float
        Both ends are possible.
    log : bool
        Whether orders of magnitude are what counts.
    integer : bool
    choices : tuple
        In place of numbers between two ends.

    Examples
    --------
    >>> from aircl.methods import Range
    >>> Range(1e-4, 1e-1, log=True).holds(0.01), Range(choices=("sgd", "adam")).holds("rmsprop")
    (True, False)
    """

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    integer: bool = False
    choices: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not self.choices and not (self.low < self.high and (self.low > 0 or not self.log)):
            what = "above 0 and below" if self.log else "below"
            raise ValueError(f"a range from {self.low} to {self.high}: the lower end should be {what} the upper one.")

    def holds(self, value: Any) -> bool:
        """Tell whether a value is in the range."""
        return value in self.choices if self.choices else value is not None and self.low <= value <= self.high

    def suggest(self, trial: Any, name: str) -> Any:
        """Let a trial of Optuna choose."""
        if self.choices:
            return trial.suggest_categorical(name, self.choices)
        if self.integer:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Setup:
    """What a method is told before a stream begins. There is nothing in it about the test set.

    Attributes
    ----------
    seed : int
        Everything random in a method follows from it.
    n_features : int
        Width of the features; for a method that takes images, of those its backbone gives.
    online : bool
        One pass, and phase ends are not announced unless the method `uses_phase_ends`.
    batch_size : int
        Rows of the batches to come, at most.
    buffer : int or None
        Width of the random ReLU buffer of analytic methods; None: no buffer.
    gamma : float or "auto"
        The ridge of analytic methods.
    backbone : Backbone or None
        For methods that take images.
    device : str or None
        Where a method with a network of its own computes; see `aircl.backbones.create_backbone`.
    options : mapping
        The method's own.
    hints : Hints
        Numbers of classes and phases to come, for code that cannot do without; the report marks who reads them.

    Examples
    --------
    >>> from aircl.methods import Setup, create_method
    >>> setup = Setup(seed=1, n_features=64, buffer=500, gamma=10.0, options={"weighting": 0.5})
    >>> method = create_method("air", setup)
    >>> method.setup.online, method.setup.batch_size
    (False, 64)
    """

    seed: int
    n_features: int
    online: bool = False
    batch_size: int = 64
    buffer: int | None = None
    gamma: float | Literal["auto"] = "auto"
    backbone: Backbone | None = None
    device: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    hints: Hints = field(default_factory=Hints, compare=False)


class Method(ABC):
    """A learner of the benchmark. A new one is one file with one such class and a line that registers it.

    Parameters
    ----------
    setup : Setup
        What it is told before a stream begins; it is kept as the attribute of this name.

    Attributes
    ----------
    consumes : {"features", "images"}
        What batches hold: rows of features, or images as `aircl.inputs` has them. A method for which that depends on
        its options overrides `inputs_for`.
    uses_phase_ends : bool
        Whether the method must be told where phases end even in an online stream; the report marks it.
    analytic : bool
        Whether gamma means something to it.
    resumable : bool
        Whether it can be saved and restored. A method that cannot says False and needs no `save` and `restore`: a stop
        then costs the whole job, the size of its state is not known, and the report says so.
    is_bound : bool
        Whether it keeps everything and is no competitor: the report shows it as what others could reach.
    DEFAULTS : mapping, optional
        Its options, with their values where none are given.
    search_space : mapping of str to Range
        Options that `aircl tune` chooses, and from what; learning rates, epochs and momentum have common ranges.
    trial_backbone : {"resnet", "vit"}
        What `aircl check-method` tries it out with if it takes images.
    trial_options : mapping
        Options that `aircl check-method` sets unless it is told otherwise, for a method whose defaults are made for
        more than the few dozen samples of its streams.

    Examples
    --------
    The four methods that a learner has to have. This one predicts what it saw last:

    >>> import numpy as np
    >>> from aircl.methods import Method, Setup
    >>> class LastLabel(Method):
    ...     def learn(self, inputs, labels):
    ...         self.last = labels[-1] if len(labels) else self.last
    ...     def predict(self, encoded):
    ...         return np.full(len(encoded), self.last)
    ...     def save(self, directory):
    ...         np.save(directory / "last.npy", self.last)
    ...     def restore(self, directory):
    ...         self.last = np.load(directory / "last.npy")
    >>> method = LastLabel(Setup(seed=1, n_features=2))
    >>> method.learn(np.eye(2), np.array([3, 7]))
    >>> method.predict(method.encode(np.zeros((3, 2))))
    array([7, 7, 7])
    """

    consumes: ClassVar[Literal["features", "images"]] = "features"
    uses_phase_ends: ClassVar[bool] = False
    analytic: ClassVar[bool] = False
    resumable: ClassVar[bool] = True
    is_bound: ClassVar[bool] = False
    DEFAULTS: ClassVar[Mapping[str, Any] | None] = None
    search_space: ClassVar[Mapping[str, Range]] = {}
    trial_backbone: ClassVar[Literal["resnet", "vit"]] = "resnet"
    trial_options: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **more: Any) -> None:
        """Give a method that cannot be resumed what it need not write."""
        super().__init_subclass__(**more)
        for name in ("save", "restore") if not cls.resumable else ():
            if getattr(getattr(cls, name), "__isabstractmethod__", False):
                setattr(cls, name, _cannot)

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], *, online: bool) -> dict[str, Any]:
        """Return all options of the method with their values, where some are given; a run saves them.

        A method that names its options refuses others with a ValueError; without `DEFAULTS`, it takes what it is given.
        """
        return dict(options) if cls.DEFAULTS is None else with_defaults(options, cls.DEFAULTS)

    @classmethod
    def inputs_for(cls, options: Mapping[str, Any]) -> Literal["features", "images"]:
        """Return what batches hold with some options: by default what the method `consumes` with any."""
        return cls.consumes

    @classmethod
    def notes_for(cls, options: Mapping[str, Any], *, online: bool) -> list[str]:
        """Return what a reader of the results should know of the method with some options, a sentence each."""
        return ["It is told where phases end."] if online and cls.uses_phase_ends else []

    @classmethod
    def title_for(cls, name: str, options: Mapping[str, Any], *, online: bool) -> str:
        """Return what tables call the method with some options: its name, unless that would say too much."""
        return name

    @abstractmethod
    def learn(self, inputs: Batch, labels: Labels) -> None:
        """Learn one batch of the stream; it may hold new classes.

        Where phase ends are announced, it may be put aside until then and learned with the rest of its phase.
        """

    @abstractmethod
    def predict(self, encoded: Any) -> Labels:
        """Return the predicted labels of encoded inputs, of classes that were seen, and change nothing."""

    def encode(self, inputs: Batch) -> Any:
        """Return what stays the same of inputs however long the method learns, such as the output of a buffer.

        Test inputs are encoded once and predicted often. It must support ``encoded[rows]``.
        """
        return inputs

    def refresh(self) -> None:  # noqa: B027 (most methods are always ready)
        """Get ready to predict: what was put off while learning is done now, and counts as learning time."""

    def end_phase(self, phase: Phase) -> None:  # noqa: B027 (most methods need not know)
        """Note that a phase is over. Online methods hear of it only if they `uses_phase_ends`."""

    @property
    def samples_kept(self) -> int:
        """How many training samples the method holds on to, beyond those of a phase whose end will be announced."""
        return 0

    def facts(self) -> dict[str, Any]:
        """Return what was chosen on the way and belongs into the results: `gamma`, and the width of a `buffer`."""
        return {}

    def scores(self, encoded: Any) -> tuple[Labels, Floats] | None:
        """Return the classes and their scores, shape (n, C), for targets 0 and 1; None if there are no such scores."""
        return None

    def probabilities(self, inputs: Batch) -> tuple[Labels, Floats] | None:
        """Return the classes and their probabilities, shape (n, C), of inputs that are not encoded; None without any.

        It is asked for once, after the last phase.
        """
        return None

    def weight_norms(self) -> tuple[Labels, Floats] | None:
        """Return the classes and the L2 norm of each one's weights, shape (C,); None without a linear classifier."""
        return None

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Write everything that was learned, random state included, to files in an empty directory."""

    @abstractmethod
    def restore(self, directory: Path) -> None:
        """Go on from what `save` wrote, to the same end as if there had been no stop; called on a new object."""


def with_defaults(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the defaults of those that are not given; others are errors."""
    if unknown := sorted(set(options) - set(defaults)):
        allowed = ", ".join(defaults) or "none"
        raise ValueError(f"there is no option {', '.join(map(repr, unknown))}. Allowed: {allowed}.")
    return {**defaults, **options}


def _cannot(self: Method, directory: Path) -> None:
    """Refuse: it says that it cannot be resumed."""
    raise IncompatibleError(f"{type(self).__name__} says resumable = False: it cannot be saved or restored.")
