"""What labels of tables can be read as, and how."""

from __future__ import annotations

import re
from typing import Any

from aircl.data.arrays.source import DataError, LabelKind, check_text_label

# "007" and "+7" are names rather than numbers: reading them as 7 would put unlike labels together.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_BOOLEANS = {"True": True, "true": True, "False": False, "false": False}


def text_label_kinds(text: str) -> set[LabelKind]:
    """Return what a label that is written as text can be read as."""
    kinds: set[LabelKind] = {"strings"}
    if _is_integer(text):
        kinds.add("integers")
    if text in _BOOLEANS:
        kinds.add("booleans")
    return kinds


def read_text_label(place: str, text: str, kind: LabelKind) -> Any:
    """Return a label that is written as text."""
    if text == "":
        raise DataError(f"{place}: the label is empty. Every row needs a label.")
    if kind == "strings":
        return check_text_label(place, text)
    if kind == "integers" and _is_integer(text):
        return int(text)
    if kind == "booleans" and text in _BOOLEANS:
        return _BOOLEANS[text]
    raise DataError(f"{place}: the label {text!r} does not fit labels that are {kind}.")


def typed_label_kinds(place: str, label: Any) -> set[LabelKind]:
    """Return what a label that has a type is."""
    if isinstance(label, bool):
        return {"booleans"}
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return {"integers"}
    if isinstance(label, str) and label:
        return {"strings"}
    raise DataError(f"{place}: {label!r} is no label. Labels are integers, strings or booleans.")


def read_typed_label(place: str, label: Any, kind: LabelKind) -> Any:
    """Return a label that has a type."""
    if kind not in typed_label_kinds(place, label):
        raise DataError(f"{place}: the label {label!r} does not fit labels that are {kind}.")
    if kind == "integers" and not -(2**63) <= int(label) < 2**63:
        raise DataError(f"{place}: the label {label!r} is too large.")
    return check_text_label(place, label) if kind == "strings" else int(label) if kind == "integers" else label


def _is_integer(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63
