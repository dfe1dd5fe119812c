"""What JSON and TOML hold, checked before it is used: how deep it is, and whether its types are as expected."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from aircl.storage.errors import InputError

Record = TypeVar("Record")

DEPTH = 64
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "nothing"}


def parse_json(text: str | bytes, what: str, *, finite: bool = True) -> Any:
    """Read JSON that somebody else may have written.

    Parameters
    ----------
    text : str or bytes
    what : str
        What it is, for messages.
    finite : bool, default=True
        Whether NaN and infinities, which JSON itself does not know, are refused.

    Raises
    ------
    InputError
        If it is not JSON, or nested more deeply than anything that is written here.

    Examples
    --------
    >>> parse_json('{"seeds": [1, 2]}', "run.json")
    {'seeds': [1, 2]}
    >>> parse_json("[" * 100, "run.json")
    Traceback (most recent call last):
    aircl.storage.errors.InputError: run.json is nested more than 64 deep, which nothing that aircl writes is.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        # Nothing can be deeper than it has brackets, and few texts have many.
        if text.count("[") + text.count("{") > DEPTH and _depth(text) > DEPTH:
            raise InputError(f"{what} is nested more than {DEPTH} deep, which nothing that aircl writes is.")
        return json.loads(text, parse_constant=_refuse if finite else None)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is not JSON, or was cut short ({error}).") from error


def _depth(text: str) -> int:
    depth = most = 0
    for token in _TOKENS.finditer(text):
        first = token[0][0]
        depth += (first in "[{") - (first in "]}")
        most = max(most, depth)
        if most > DEPTH:
            break
    return most


def _refuse(constant: str) -> float:
    raise ValueError(f"it holds {constant}")


def check(value: Any, hint: Any, where: str) -> None:
    """Refuse a value that is not of a type.

    Parameters
    ----------
    value : object
        Of what JSON and TOML have: None, booleans, numbers, texts, lists and mappings.
    hint : type
        Of these, unions, literals, `list[..]`, `tuple[.., ...]`, `dict[str, ..]` and `Mapping[str, ..]`, or a
        TypedDict. A float is a finite number, and a whole number has 64 bits.
    where : str
        For messages.

    Raises
    ------
    InputError

    Examples
    --------
    >>> check([1, "2"], list[int], "seeds")
    Traceback (most recent call last):
    aircl.storage.errors.InputError: seeds[1] is '2', but it should be a whole number.
    """
    if hint is Any or _fits(value, hint):
        return
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (list, tuple) and isinstance(value, list | tuple):
        for number, item in enumerate(value):
            check(item, arguments[0], f"{where}[{number}]")
    if is_typeddict(hint) and isinstance(value, dict):
        if missing := sorted(hint.__required_keys__ - value.keys()):
            raise InputError(f"{where} lacks {', '.join(missing)}.")
        for name, inner in get_type_hints(hint).items():
            if name in value:
                check(value[name], inner, f"{where}.{name}")
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        for name, item in value.items():
            check(item, arguments[1], f"{where}.{name}")
    shown = repr(value)
    raise InputError(f"{where} is {shown if len(shown) < 60 else shown[:50] + ' ..'}, but it should be {_words(hint)}.")


def build(cls: type[Record], values: Any, what: str) -> Record:
    """Make a dataclass of a mapping that was read; lists become tuples where the class has tuples.

    Parameters
    ----------
    cls : type
    values : object
        Should be a mapping with a value of the right type for every field that has no default, and no others.
    what : str
        For messages.

    Raises
    ------
    InputError
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{what} is {type(values).__name__}, but it should be a table, names with values.")
    hints = _hints(cls)  # type: ignore[arg-type]  # a class can be hashed
    if unknown := [str(name) for name in values if name not in hints]:
        raise InputError(f"{what} has no field {unknown[0]!r}. Known: {', '.join(hints)}.")
    if missing := [name for name, (_, needed) in hints.items() if needed and name not in values]:
        raise InputError(f"{what} lacks {', '.join(missing)}.")
    made = {}
    for name, value in values.items():
        hint = hints[name][0]
        if not _fits(value, hint):
            check(value, hint, f"{what}: {name}")
        made[name] = tuple(value) if isinstance(value, list) and get_origin(hint) is tuple else value
    return cls(**made)


@functools.cache
def _hints(cls: Any) -> dict[str, tuple[Any, bool]]:
    assert is_dataclass(cls)
    hints = get_type_hints(cls)
    return {f.name: (hints[f.name], f.default is MISSING and f.default_factory is MISSING) for f in fields(cls)}


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)
    if hint is int:  # larger ones fit neither a float nor an array
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if isinstance(hint, type) and get_origin(hint) is None and not is_typeddict(hint):
        return isinstance(value, hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin in (list, tuple):
        if not isinstance(value, list | tuple):
            return False
        if arguments[0] in (int, str, bool):  # of which there may be a million
            is_one = set(map(type, value)) <= {arguments[0]}
            return is_one and (
                arguments[0] is not int or not value or (_fits(min(value), int) and _fits(max(value), int))
            )
        return all(_fits(item, arguments[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(
            isinstance(name, str) and _fits(item, arguments[1]) for name, item in value.items()
        )
    if is_typeddict(hint):
        return (
            isinstance(value, dict)
            and hint.__required_keys__ <= value.keys()
            and all(name not in value or _fits(value[name], inner) for name, inner in get_type_hints(hint).items())
        )
    raise TypeError(f"{hint} is not a type that JSON has")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _words(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(map(_words, arguments))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin in (list, tuple):
        return f"a list, each {_words(arguments[0])}"
    if origin in (dict, Mapping) or is_typeddict(hint) or hint in (dict, Mapping):
        return "a table, names with values"
    return _WORDS.get(hint, "a list" if hint is list else str(hint))
