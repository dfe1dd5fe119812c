"""Names for things that can be added to: data sources, scenarios, backbones, methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Entries by name; a name that is not known is answered with the nearest ones.

    Parameters
    ----------
    what : str
        What an entry is called in messages.

    Examples
    --------
    >>> colours = Registry("colour")
    >>> @colours.register("red")
    ... def red(): return "#f00"
    >>> colours["red"]()
    '#f00'
    >>> colours["rad"]
    Traceback (most recent call last):
    ValueError: there is no colour 'rad'. Did you mean 'red'? Known: red.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._entries: dict[str, Entry] = {}

    def register(self, name: str) -> Callable[[Entry], Entry]:
        """Return a decorator that files what it decorates under a name.

        A class or function that is defined again, in a notebook or a file that is run again, takes the place of the
        old one; another one may not have its name.
        """

        def add(entry: Entry) -> Entry:
            if name in self._entries and not _is_redefined(self._entries[name], entry):
                raise ValueError(f"there is a {self.what} {name!r} already. Choose another name.")
            self._entries[name] = entry
            return entry

        return add

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            close = get_close_matches(name, self._entries, n=3)
            hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise ValueError(f"there is no {self.what} {name!r}.{hint} Known: {', '.join(self._entries)}.")
        return self._entries[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _is_redefined(old: object, new: object) -> bool:
    """Tell whether two classes or functions are from the same place."""
    places = [(getattr(one, "__module__", None), getattr(one, "__qualname__", None)) for one in (old, new)]
    return places[0] == places[1] and None not in places[0]
