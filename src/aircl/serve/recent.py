"""The last changes, for those who watch: what was changed, when, and in which classes, without any row."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from aircl.serve.changes import Change
from aircl.serve.versions import LEARNING

KEPT = 50
TOLD_CLASSES = 5


@dataclass(frozen=True)
class Made:
    """A change that was made.

    Attributes
    ----------
    version : int
    kind : str
    rows : int
    made : str
        When, in UTC.
    classes : list of [label, rows]
        The classes with most of its rows.
    more_classes : int
        How many others there are.
    target : int or None
        The change that was taken back, or the version that was rolled back to.
    """

    version: int
    kind: str
    rows: int
    made: str
    classes: list[list[Any]]
    more_classes: int
    target: int | None = None


class Recent:
    """The changes since the service was started, the last ones of them.

    Examples
    --------
    >>> from aircl.serve.changes import Rows
    >>> recent = Recent()
    >>> recent.note(1, "learn", Change("learn", Rows([[0.0]] * 3, ["cat", "dog", "cat"])))
    >>> entry = recent.listed()[0]
    >>> entry["version"], entry["rows"], entry["classes"]
    (1, 3, [['cat', 2], ['dog', 1]])
    """

    def __init__(self) -> None:
        self._made: deque[Made] = deque(maxlen=KEPT)
        self.last_learned: str | None = None

    def note(
        self, version: int, kind: str, change: Change | None, *, rows: int | None = None, target: int | None = None
    ) -> None:
        """Note a change that was made; `rows` of it, if not all."""
        labels: list[Any] = []
        if change is not None:
            labels = list(change.classes or ()) if change.rows is None else change.rows.labels
        if rows is None:
            rows = 0 if change is None else change.n_rows
        # 1 and True are equal, and are not the same label.
        found = Counter((type(label), label) for label in labels).most_common()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        told = [[label, count] for (_, label), count in found[:TOLD_CLASSES]]
        self._made.append(Made(version, kind, rows, now, told, max(0, len(found) - TOLD_CLASSES), target))
        if kind in LEARNING:
            self.last_learned = now

    def listed(self) -> list[dict[str, Any]]:
        """Return them, the last one first."""
        return [asdict(made) for made in reversed(list(self._made))]
