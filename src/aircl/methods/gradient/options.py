"""Options of gradient methods: what can be set, what holds where nothing is set, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from math import isfinite
from types import NoneType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

# What is done to images in training; True: they are moved and mirrored.
Augment = bool | Literal["crop", "rand"]


@dataclass(frozen=True)
class StepOptions:
    """Options of everything that makes gradient steps, with the defaults of streams with phases.

    Attributes
    ----------
    epochs : int
        Passes over a phase; online streams are passed through once.
    updates : int
        Steps for every batch of an online stream.
    optimiser : {"sgd", "adam"}
        SGD; Adam in online streams.
    learning_rate : float
        1e-3, without a schedule; 1e-2 if the backbone is trained; 5e-3 in online streams.
    momentum : float
        Of SGD.
    """

    epochs: int = 20
    updates: int = 3
    optimiser: Literal["sgd", "adam"] = "sgd"
    learning_rate: float = 1e-3
    momentum: float = 0.9

    # What holds instead of the defaults in an online stream, and in others if the backbone is trained.
    online: ClassVar[Mapping[str, Any]] = {"optimiser": "adam", "learning_rate": 5e-3}
    unfrozen: ClassVar[Mapping[str, Any]] = {"learning_rate": 1e-2}
    # Numbers that may be 0; all others are above it.
    may_be_zero: ClassVar[frozenset[str]] = frozenset({"momentum"})
    # .. and those that may be below it.
    may_be_negative: ClassVar[frozenset[str]] = frozenset()
    # Shares, which are at most 1.
    at_most_one: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            value = getattr(self, field.name)
            if not _fits(value, hints[field.name]):
                raise ValueError(f"{field.name}={value!r} is not {_words(hints[field.name])}.")
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if field.name in self.may_be_negative:
                if not isfinite(value):
                    raise ValueError(f"{field.name}={value!r} is not finite.")
            elif number and not (value > 0 or (value == 0 and field.name in self.may_be_zero)):
                least = "at least 0" if field.name in self.may_be_zero else "above 0"
                raise ValueError(f"{field.name}={value!r} is not {least}.")
            elif field.name in self.at_most_one and value > 1:
                which = "from 0 to 1" if field.name in self.may_be_zero else "above 0, up to 1"
                raise ValueError(f"{field.name}={value!r} is not a share {which}.")
        if self.momentum >= 1:
            raise ValueError(f"momentum={self.momentum!r} is not below 1.")

    @classmethod
    def resolve(cls, given: Mapping[str, Any], *, online: bool) -> Self:
        """Return the options with what was given, and the defaults of the setting for the rest.

        Raises
        ------
        ValueError
            For an option that there is not, with the allowed ones, and for a value that is not allowed.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"there is no option {name!r}.{hint} Allowed: {', '.join(known)}.")
        if online and given.get("compare") == "phase":
            raise ValueError("compare='phase' needs phases, which an online stream does not show. Use 'exposed'.")
        setting = cls.online if online else cls.unfrozen if given.get("unfreeze") else {}
        return cls(**{**setting, **given})


@dataclass(frozen=True)
class TrainingOptions(StepOptions):
    """Options of methods that train a head, and the backbone if they are asked to.

    Attributes
    ----------
    unfreeze : bool
        Train the backbone too, on images.
    backbone_rate : float
        Learning rate of the backbone, as a share of that of the head.
    augment : bool, "crop", "rand" or None
        What is done to images in training: moved and mirrored (true), cut out at random and mirrored ("crop"), or two
        random changes of RandAugment ("rand"). None: true if the backbone is trained. Without it a frozen backbone's
        features are computed once and cached.
    """

    unfreeze: bool = False
    backbone_rate: float = 0.1
    augment: Augment | None = None

    may_be_zero = StepOptions.may_be_zero | {"backbone_rate"}

    def __post_init__(self) -> None:
        if self.augment is None:
            object.__setattr__(self, "augment", self.unfreeze)
        super().__post_init__()

    @property
    def on_images(self) -> bool:
        """Whether images are needed, not their features."""
        return self.unfreeze or bool(self.augment)


@dataclass(frozen=True)
class PhaseOptions(TrainingOptions):
    """Options of methods that learn from the samples of the present phase alone.

    Attributes
    ----------
    compare : {"phase", "exposed"}
        Which classes a sample is told from: those of its phase, so that no other row of the head is trained, or all
        that were seen. The latter in an online stream, which shows no phases, and if the backbone is trained: features
        of new classes would never be told from those of old ones.
    """

    compare: Literal["phase", "exposed"] = "phase"

    online: ClassVar[Mapping[str, Any]] = {**TrainingOptions.online, "compare": "exposed"}
    unfrozen: ClassVar[Mapping[str, Any]] = {**TrainingOptions.unfrozen, "compare": "exposed"}


@dataclass(frozen=True)
class AdjustOptions(StepOptions):
    """Options of methods that know the classes of what they train on, and may correct logits for their shares.

    Attributes
    ----------
    adjust : {"none", "las"}
        "las": in training, tau times the logarithm of each class's share of the samples is added to its logit.
    tau : float
        Strength of the correction; 0 is none.
    window : int
        Steps of an online stream that shares are counted in. With phases they are those of all that a pass is over.
    """

    adjust: Literal["none", "las"] = "none"
    tau: float = 1.0
    window: int = 1

    may_be_zero = StepOptions.may_be_zero | {"tau"}


@dataclass(frozen=True)
class MemoryOptions(AdjustOptions):
    """Options of methods that replay from a memory.

    Attributes
    ----------
    memory : int
        Samples that are kept at most. The name of a policy sets `policy` instead.
    policy : {"reservoir", "cbrs", "prs", "clib", "gss"}
        Which samples stay: see the methods of these names; a reservoir holds every sample with the same chance.
    draw : {"uniform", "balanced"}
        Whether every sample of the memory is replayed as often as any other, or every class.
    replay : int
        Samples of the memory beside every batch.
    """

    memory: int = 2000
    policy: Literal["reservoir", "cbrs", "prs", "clib", "gss"] = "reservoir"
    draw: Literal["uniform", "balanced"] = "uniform"
    replay: int = 32

    @classmethod
    def resolve(cls, given: Mapping[str, Any], *, online: bool) -> Self:
        """Return the options; ``memory="cbrs"`` is ``policy="cbrs"``."""
        name = given.get("memory")
        if isinstance(name, str):
            policies = get_args(get_type_hints(cls)["policy"])
            if name not in policies or given.get("policy", name) != name:
                raise ValueError(
                    f"memory={name!r} is not a whole number, nor the policy. Policies: {', '.join(policies)}."
                )
            given = {key: value for key, value in given.items() if key != "memory"} | {"policy": name}
        return super().resolve(given, online=online)


@dataclass(frozen=True)
class ReplayOptions(MemoryOptions, TrainingOptions):
    """Options of methods that train a head, and the backbone if they are asked to, with a memory.

    Notes
    -----
    The learning rate of streams with phases is 0.1: a memory that keeps earlier classes in mind allows for longer
    steps, which small classes need to get their share in the few steps of their phase.
    """

    learning_rate: float = 0.1

    may_be_zero = TrainingOptions.may_be_zero | MemoryOptions.may_be_zero


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint is float:  # a whole number is one as well, but True is none
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if arguments := get_args(hint):
        return any(_fits(value, argument) for argument in arguments)
    return isinstance(value, hint)


def _words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"one of {', '.join(get_args(hint))}"
    if get_origin(hint) is Union or get_args(hint):
        return " or ".join(map(_words, get_args(hint)))
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "null"}[hint]
