"""Links and anchors of the pages lead somewhere; no network, no site."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def prose(path):
    """Return the text without code."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda code: "x" * len(code[0]), text, flags=re.DOTALL)


@cache
def anchors(path):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = []
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading).strip().lower()
        found.append(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    broken = []
    for link in re.findall(r"!?\[[^]]*\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):  # another site
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = target.is_relative_to(ROOT / "docs") or page.parent == ROOT  # a page of the site cannot leave it
        # GitHub and the site differ in what they make of several dashes in a row.
        if not (inside and target.exists()) or (anchor and (anchor not in anchors(target) or "--" in anchor)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_heading_stands_twice(page):
    found = anchors(page)
    assert page.name == "CHANGELOG.md" or {anchor for anchor in found if found.count(anchor) > 1} == set()


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2].partition("\n\n")[0]
    listed = re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")]
    assert sorted(listed) == sorted(pages)


def test_pictures_and_styles_are_our_own():
    for page in PAGES:
        text = prose(page)
        assert not re.search(r"!\[[^]]*\]\(\w+:|<(script|link|iframe)\b", text), page
        pictures = re.findall(r"<(?:img|source)\b[^>]*?\bsrc(?:set)?=\"([^\"]*)\"", text)
        assert len(pictures) == len(re.findall(r"<(?:img|source)\b", text)), page
        assert all((page.parent / picture).is_file() for picture in pictures), page
