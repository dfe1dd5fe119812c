"""Names of ImageNet's classes, whose folders are called after WordNet's numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_LINE = re.compile(r"^(n\d{8})\s+([^,\n]+)", re.MULTILINE)


def class_names(listing: Path, numbers: Sequence[str]) -> tuple[str, ...]:
    """Return what classes are called.

    Parameters
    ----------
    listing : Path
        A text with lines such as "n01443537  goldfish, Carassius auratus"; it need not be there.
    numbers : sequence of str
        WordNet's numbers, such as "n01443537".

    Returns
    -------
    names : tuple of str
        The first name of each; with its number if two have the same name; the number alone if there is no name.
    """
    text = listing.read_text(encoding="utf-8", errors="replace") if listing.is_file() else ""
    known = {number: name.strip() for number, name in _LINE.findall(text)}
    names = [known.get(number, number) for number in numbers]
    times = Counter(names)
    return tuple(
        name if times[name] == 1 else f"{name} ({number})" for name, number in zip(names, numbers, strict=True)
    )
