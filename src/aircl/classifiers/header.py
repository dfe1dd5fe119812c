"""The JSON header of a model file: what it must say, of which types, before anything is made of it."""

import re
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import numpy as np

from aircl.storage.errors import InputError
from aircl.storage.records import check

# Wider features than this, nobody has; a file that says so is not asked to prove it with an allocation.
MAX_WIDTH = 2**22
# An array of texts is as wide as its longest one. More than this, and more than in proportion to what the file says,
# is a file that wants to fill the memory.
MAX_LABEL_BYTES = 2**26
LABEL_BYTES_PER_CHARACTER = 32

GAMMA_WORDS = ("auto", "held-out")


class Labels(TypedDict):
    """Labels by slot, labels that were only announced, and their NumPy type."""

    seen: list[Any]
    declared: list[Any]
    type: str


class Backbone(TypedDict):
    """The network that the features come from."""

    name: str
    fingerprint: str


class Columns(TypedDict, total=False):
    """The columns of a table that the command line has read."""

    label: str | None
    text: list[str]
    image: str | None
    id: str | None


class Origin(TypedDict):
    """A file that was learned, or a model that was merged."""

    name: str
    rows: float
    sha256: str | None


class Event(TypedDict):
    """What a command did."""

    did: str
    time: str
    version: str
    files: NotRequired[list[Origin]]
    parents: NotRequired[list[Origin]]
    rows: NotRequired[float]
    note: NotRequired[str]


class GammaRule(TypedDict):
    """The class weights that gamma was chosen for."""

    weighting: float | str | dict[str, Any]
    scale: str


class LedgerKey(TypedDict):
    """A key of the ledger: its name, and the key itself in hexadecimal digits unless it is kept elsewhere."""

    id: str
    key: str | None


class LedgerHeader(TypedDict):
    """What the rows of the ledger are known by."""

    by_id: bool
    keys: list[LedgerKey]


class Learned(TypedDict):
    """What is known about the statistics; older files do not have all of it."""

    n_features_in: int
    feature_names_in: list[str] | None
    n_features: int
    dtype: str
    lineage: list[str]
    gamma: list[float] | None
    backbone: NotRequired[Backbone | None]
    columns: NotRequired[Columns | None]
    history: NotRequired[list[Event]]
    gamma_rule: NotRequired[GammaRule | None]
    ledger: NotRequired[LedgerHeader]


class Parameters(TypedDict, total=False):
    """Those of all constructors together."""

    gamma: float | str
    weighting: float | str | dict[str, Any]
    scale: str
    store: str
    memory_limit: float | str | None
    random_state: int | None
    n_components: int | None
    compensation: float
    shrinkage: float | str
    power: float
    sigma: float | str
    spread: str
    normalize: bool
    calibrate: bool
    priors: str | dict[str, Any] | None
    ledger: bool
    rounds: int
    backbone: str | dict[str, Any] | None


class Expansion(TypedDict):
    """An expansion of ours with its parameters, or the hash of another one."""

    kind: str
    parameters: NotRequired[dict[str, Any]]
    hash: NotRequired[str | None]


Header = TypedDict(
    "Header",
    {
        "format": int,
        "class": str,
        "parameters": Parameters,
        "expansion": Expansion | None,
        "labels": Labels,
        "learned": Learned | None,
    },
)


def check_header(header: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a header that no classifier has written.

    Parameters
    ----------
    header : mapping
    shapes : mapping of str to tuple of int
        Of the arrays in the file.

    Raises
    ------
    InputError
    """
    check(header, Header, "the header")
    gamma = header["parameters"].get("gamma")
    if isinstance(gamma, str) and gamma not in GAMMA_WORDS:
        raise InputError(f"parameters.gamma is {gamma!r}, which is neither a number nor one of {GAMMA_WORDS}.")
    check_label_header(header["labels"])
    if header["learned"] is not None:
        _check_learned(header["learned"], "gamma" in header["parameters"], shapes)


def check_label_header(labels: Labels) -> None:
    """Refuse labels that cannot be of the type they say, or that would fill the memory."""
    match = re.fullmatch(r"str|bool|u?int(?:8|16|32|64)|float(?:16|32|64)", labels["type"])
    if match is None:
        raise InputError(f"labels.type is {labels['type']!r}, which is no type of labels.")
    for name, values in (("labels.seen", labels["seen"]), ("labels.declared", labels["declared"])):
        if labels["type"] == "str":
            check(values, list[str], name)
            _check_texts(name, values)
        elif labels["type"] == "bool":
            check(values, list[bool], name)
        else:
            check(values, list[float] if labels["type"].startswith("float") else list[int], name)
            dtype = np.dtype(labels["type"])
            info: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
            if values and not (info.min <= min(values) and max(values) <= info.max):
                raise InputError(f"{name} holds numbers that {dtype} cannot hold.")


def _check_texts(name: str, values: list[str]) -> None:
    lengths = [len(text) for text in values]
    needed = 4 * len(values) * max(lengths, default=0)
    if needed > max(MAX_LABEL_BYTES, LABEL_BYTES_PER_CHARACTER * sum(lengths)):
        raise InputError(
            f"{name} has {len(values)} labels of up to {max(lengths)} characters, an array of {needed / 1e6:.0f} MB. "
            "Labels should be short."
        )


def _check_learned(learned: Learned, has_gamma: bool, shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name, width in (("n_features_in", learned["n_features_in"]), ("n_features", learned["n_features"])):
        if not 1 <= width <= MAX_WIDTH:
            raise InputError(f"learned.{name} is {width}, which should be from 1 to {MAX_WIDTH}.")
    names, width = learned["feature_names_in"], learned["n_features"]
    if names is not None and len(names) != learned["n_features_in"]:
        raise InputError(f"learned.feature_names_in has {len(names)} names for {learned['n_features_in']} features.")
    if learned["dtype"] not in ("float32", "float64"):
        raise InputError(f"learned.dtype is {learned['dtype']!r}, which should be float32 or float64.")
    for array in ("scatter", "folded"):
        shape = shapes.get(f"statistics.{array}", (width * (width + 1) // 2,))
        if shape != (width * (width + 1) // 2,):
            raise InputError(f"statistics.{array} has the shape {shape}, which is not that of {width} features.")
    chosen = learned["gamma"]
    if chosen is not None:
        if not has_gamma or len(chosen) != 3 or min(chosen) < 0 or not isinstance(chosen[2], int):
            raise InputError(f"learned.gamma is {chosen}, which should be a gamma, a count and a number of classes.")
        if missing := [name for name in ("gamma.grid", "gamma.criterion") if name not in shapes]:
            raise InputError(f"learned.gamma was chosen from {missing[0]}, which the file does not have.")
