"""Types and depths of what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import pytest

from aircl.storage.errors import InputError
from aircl.storage.records import build, check, parse_json
from aircl.storage.text import json_text, table_cell, visible


class Point(TypedDict):
    x: float
    name: str | None


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int),
        (1, float),
        (None, int | None),
        ("a", Literal["a", "b"]),
        ([1, 2], tuple[int, ...]),
        ({"a": [1.5]}, Mapping[str, list[float]]),
        ({"x": 2, "name": None, "more": []}, Point),
        ({"anything": object}, dict[str, Any]),
    ],
)
def test_what_fits(value, hint):
    check(value, hint, "it")


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        (True, int, "it is True, but it should be a whole number"),
        (True, float, "a number"),
        (float("nan"), float, "a number"),
        (10**400, float, "a number"),
        (2**63, int, "a whole number"),
        ([1, -(2**63) - 1], list[int], r"it\[1\] is"),
        ("1", int | None, "a whole number or nothing"),
        ("c", Literal["a", "b"], "'a' or 'b'"),
        ("air", tuple[str, ...], "it is 'air', but it should be a list, each text"),
        ([1, "2"], list[int], r"it\[1\] is '2'"),
        ({"a": [None]}, Mapping[str, list[float]], r"it\.a\[0\] is None"),
        ({"x": "2", "name": None}, Point, r"it\.x is '2'"),
        ({"x": 2}, Point, "it lacks name"),
        ([], Point, "a table, names with values"),
        ({1: 2}, dict[str, int], "a table"),
    ],
)
def test_what_does_not_fit_is_named(value, hint, message):
    with pytest.raises(InputError, match=message):
        check(value, hint, "it")


@dataclass(frozen=True)
class Setting:
    name: str
    seeds: tuple[int, ...] = (1,)
    options: Mapping[str, Any] = field(default_factory=dict)


def test_records_are_built_of_mappings_that_fit():
    assert build(Setting, {"name": "a", "seeds": [1, 2]}, "a setting") == Setting("a", (1, 2))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "a setting is list"),
        ({}, "a setting lacks name"),
        ({"name": "a", "sedes": 1}, "no field 'sedes'"),
        ({"name": 1}, "a setting: name is 1, but it should be text"),
    ],
)
def test_records_of_what_does_not_fit(values, message):
    with pytest.raises(InputError, match=message):
        build(Setting, values, "a setting")


@pytest.mark.parametrize("text", ["[" * 50_000, '{"a":' * 50_000, "[" * 50_000 + "]" * 50_000, "[[[[[[[[[[" * 7])
def test_depth_is_found_before_it_is_parsed(text):
    with pytest.raises(InputError, match="nested more than 64 deep"):
        parse_json(text, "it")


@pytest.mark.parametrize("text", ["", "{", "NaN", "-Infinity", b"\xff", "1" * 5000, '{"a": "[[[["', "\x00"])
def test_what_is_not_json(text):
    with pytest.raises(InputError, match="it is not JSON"):
        parse_json(text, "it")


def test_many_brackets_are_not_deep():
    text = "[" + ",".join(["[]"] * 1000) + ', "' + "[" * 1000 + '"]'
    assert len(parse_json(text, "it")) == 1001


def test_control_characters_are_spelt_out():
    assert visible("\x1b]0;title\x07 \u202e \x9b1m \ud800 a\nb") == r"\x1b]0;title\x07 \u202e \x9b1m \ud800 a\nb"
    assert visible("naïve 猫 \u200d 👩\u200d🔬") == "naïve 猫 \u200d 👩\u200d🔬"
    text = json_text({"a": "\x9b\u202e猫\ud800"})
    assert "猫" in text
    assert parse_json(text, "it") == {"a": "\x9b\u202e猫\ud800"}
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_cells_that_look_like_formulas(text):
    assert table_cell(text) == "'" + text
    assert table_cell("a" + text) == "a" + text
