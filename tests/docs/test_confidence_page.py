"""The page about probabilities and novelty shows what is printed."""

from __future__ import annotations


def test_the_example_prints_what_is_shown(blocks, printed):
    (language, code), (_, shown) = blocks("confidence.md")[:2]
    assert language == "python"
    assert printed(code, "confidence.md") == shown
