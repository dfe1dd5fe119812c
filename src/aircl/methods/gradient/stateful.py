"""State that is declared once: saving it and going on from it follow."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, ClassVar

import numpy as np


class Stateful:
    """Something whose state is what some of its attributes are.

    Attributes
    ----------
    kept : str
        Names of attributes, separated by spaces, beside those that its bases keep: tensors, arrays, numbers,
        text, None, collections of these, and others of this kind. They have their types once the object is made.

    Examples
    --------
    >>> from aircl.methods.gradient.stateful import Stateful
    >>> class Count(Stateful):
    ...     kept = "seen"
    ...     def __init__(self):
    ...         self.seen = set()
    >>> one, other = Count(), Count()
    >>> one.seen.add(3)
    >>> other.set_state(one.get_state())
    >>> other.seen
    {3}
    """

    kept: ClassVar[str] = ""

    def get_state(self) -> dict[str, Any]:
        """Return what is kept, by name."""
        return {name: _state_of(getattr(self, name)) for name in self._names()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in self._names():
            setattr(self, name, _renewed(getattr(self, name), state[name]))

    @classmethod
    def _names(cls) -> list[str]:
        return [name for base in reversed(cls.__mro__) for name in vars(base).get("kept", "").split()]


def _state_of(value: Any) -> Any:
    return value.get_state() if isinstance(value, Stateful) else list(value) if isinstance(value, deque) else value


def _renewed(now: Any, value: Any) -> Any:
    """Return a value of the type that there is now, which shares nothing with the state that can grow."""
    if isinstance(now, Stateful):
        now.set_state(value)
        return now
    if isinstance(now, deque):
        return deque(value, now.maxlen)
    if isinstance(now, np.ndarray):
        return np.array(value)
    return type(now)(value) if isinstance(now, Counter | dict | list | set) else value
