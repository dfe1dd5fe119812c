"""The page about methods has a section for each, with its options as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aircl.methods import list_methods, resolve_options

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (.+)\n((?:(?!##).*\n)*)", PAGE, re.MULTILINE))
SHARED = {"gradient": "Options of gradient methods", "prompt": "Options of prompt methods"}


def told(section, word):
    """Return what the paragraph that begins with a word in bold says: text, and options with their values."""
    found = re.search(rf"^\*\*{word}\.\*\* (.*?)\n(?:\n|\Z)", SECTIONS[section], re.MULTILINE | re.DOTALL)
    assert found, f"{section} has no paragraph **{word}.**"
    return found[1], dict(re.findall(r"`(\w+)=([^`]*)`", found[1]))


def matches(text, value):
    return text == value if isinstance(value, str) else json.loads(text) == value


@pytest.mark.parametrize("method", list_methods())
def test_every_method_has_a_section(method):
    assert f"[`{method}`](#{method.replace('+', '')})" in PAGE.partition("## Analytic")[0], "not in the table"
    for word in ("Options", "Pitfalls", "Reference"):
        assert told(method, word)[0]


@pytest.mark.parametrize("method", [name for name in list_methods() if "**Online.**" in SECTIONS.get(name, "")])
def test_trained_methods_say_what_is_published_and_what_is_here(method):
    text, _ = told(method, "Published / here")
    assert re.search("augment", text, re.IGNORECASE), "nothing about what is done to images"


def test_there_are_no_other_sections():
    assert set(SECTIONS) - set(SHARED.values()) == set(list_methods())


@pytest.mark.parametrize("method", list_methods())
def test_the_options_are_those_of_the_method(method):
    text, pairs = told(method, "Options")
    shared = next((name for name in SHARED if f"Those of {name} methods" in text), None)
    if shared:
        pairs = told(SHARED[shared], "Options")[1] | pairs
    options = resolve_options(method, {}, online=False)
    assert set(pairs) == set(options)
    assert {key for key in pairs if not matches(pairs[key], options[key])} == set()


@pytest.mark.parametrize("method", [name for name in list_methods() if "**Online.**" in SECTIONS.get(name, "")])
def test_what_differs_online_is_told(method):
    if method == "dap":
        return  # the page says that it does not do such streams
    here, there = (resolve_options(method, {}, online=online) for online in (False, True))
    text, _ = told(method, "Options")
    (shared,) = (name for name in SHARED if f"Those of {name} methods" in text)
    pairs = told(SHARED[shared], "Online")[1] | told(method, "Online")[1]
    assert {key for key in pairs if not matches(pairs[key], there[key])} == set()
    assert {key for key in there if there[key] != here[key]} <= set(pairs)


def test_methods_without_such_a_paragraph_are_the_same_online():
    for method in list_methods():
        if "**Online.**" not in SECTIONS[method]:
            assert resolve_options(method, {}, online=True) == resolve_options(method, {}, online=False)
