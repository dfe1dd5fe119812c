"""The page about methods has a section for each, with its options as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aircl.methods import METHODS, IncompatibleError, Setup, create_method, list_methods, resolve_options
from aircl.methods.registry import ABSENT, ALIASES

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
HEADED = re.findall(r"^### (.+)\n((?:(?!##).*\n)*)", PAGE, re.MULTILINE)
# What stands in brackets tells headings apart whose links would be the same.
SECTIONS = {heading.partition(" (")[0]: text for heading, text in HEADED}
LINKS = {heading.partition(" (")[0]: re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading, _ in HEADED}
SHARED = {f"Those of {kind} methods": f"Options of {kind} methods" for kind in ("gradient", "replay", "prompt")}


def told(section, word):
    """Return what the paragraph that begins with a word in bold says: text, and options with their values."""
    found = re.search(rf"^\*\*{word}\.\*\* (.*?)\n(?:\n|\Z)", SECTIONS[section], re.MULTILINE | re.DOTALL)
    assert found, f"{section} has no paragraph **{word}.**"
    return found[1], dict(re.findall(r"`(\w+)=([^`]*)`", found[1]))


def all_told(section, word):
    """The same, with what sections that this one refers to under its options say; nearer ones come first."""
    shared = next((page for phrase, page in SHARED.items() if phrase in told(section, "Options")[0]), None)
    return (all_told(shared, word) if shared else {}) | told(section, word)[1]


def matches(text, value):
    return text == value if isinstance(value, str) else json.loads(text) == value


@pytest.mark.parametrize("method", list_methods())
def test_every_method_has_a_section(method):
    assert f"[`{method}`](#{LINKS[method]})" in PAGE.partition("## Analytic")[0], "not in the table"
    for word in ("Options", "Pitfalls", "Published / here", "Reference"):
        assert told(method, word)[0]
        assert SECTIONS[method].count(f"**{word}.**") == 1


@pytest.mark.parametrize("method", list_methods())
def test_methods_say_what_is_published_and_what_is_here(method):
    text, _ = told(method, "Published / here")
    assert re.search("augment|as for", text, re.IGNORECASE), "nothing about what is done to images"


def test_other_names_are_on_the_page():
    (line,) = re.findall(r"^Other names are understood, too: (.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert dict(re.findall(r"`([\w-]+)`\s\(`([\w-]+)`\)", line)) == ALIASES


def test_there_are_no_other_sections():
    assert len(SECTIONS) == len(HEADED)
    assert set(SECTIONS) - set(SHARED.values()) == set(list_methods())


@pytest.mark.parametrize("method", list_methods())
def test_the_options_are_those_of_the_method(method):
    pairs = all_told(method, "Options")
    options = resolve_options(method, {}, online=False)
    assert set(pairs) == set(options)
    assert {key for key in pairs if not matches(pairs[key], options[key])} == set()


@pytest.mark.parametrize("method", [name for name in list_methods() if "**Online.**" in SECTIONS.get(name, "")])
def test_what_differs_online_is_told(method):
    if "does not do online streams" in told(method, "Online")[0]:
        with pytest.raises(IncompatibleError, match="online stream"):
            create_method(method, Setup(0, 4, online=True))
        return
    here, there = (resolve_options(method, {}, online=online) for online in (False, True))
    pairs = all_told(method, "Online")
    assert {key for key in pairs if not matches(pairs[key], there[key])} == set()
    assert {key for key in there if there[key] != here[key]} <= set(pairs)


def test_methods_without_such_a_paragraph_are_the_same_online():
    for method in list_methods():
        if "**Online.**" not in SECTIONS[method]:
            assert resolve_options(method, {}, online=True) == resolve_options(method, {}, online=False)


@pytest.mark.parametrize("name", ABSENT)
def test_systems_that_are_not_here_are_named_with_the_reason(name):
    (section,) = re.findall(r"^## Systems that are not here\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    assert name in [found.lower() for found in re.findall(r"\*\*([\w-]+)\*\*", section)]
    for spelled in (name, name.upper()):
        with pytest.raises(ValueError, match=f"'{spelled}' is not here: {ABSENT[name]}"):
            METHODS[spelled]
