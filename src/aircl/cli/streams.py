"""A stream in one word: `cil,base=0.5,phases=6`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any


def parse_stream(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a scenario and its options, as numbers where they are numbers.

    >>> parse_stream("long-tail,counts=exp,ratio=1/500,phases=10")
    ('long-tail', {'counts': 'exp', 'ratio': 0.002, 'phases': 10})
    """
    name, *parts = text.split(",")
    options = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise ValueError(f"{text!r}: {part!r} is not of the form option=value, as in cil,base=0.5,phases=6.")
        options[key.strip()] = _value(value.strip())
    return name.strip(), options


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        return text
    return int(text) if text.lstrip("+-").isdigit() else float(number)
