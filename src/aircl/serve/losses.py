"""What rolling back to a version would lose, told before it is done."""

from __future__ import annotations

from typing import Any

from aircl.serve.changes import class_rows
from aircl.serve.service import Service


def losses(service: Service, number: int) -> dict[str, Any]:
    """Return how the classes would change. Reads the version as a whole, as rolling back does.

    Raises
    ------
    LookupError
        If there is no such version.
    """
    version = service.catalogue.find(number)
    then, now = class_rows(service.directory.load(version)), class_rows(service.moment().model)
    changed = [
        {"label": label, "now": now.get((kind, label), 0.0), "then": then.get((kind, label), 0.0)}
        for kind, label in {**now, **then}
        if now.get((kind, label)) != then.get((kind, label))
    ]
    return {
        "version": number,
        "made": version.made,
        "current": service.moment().version,
        "rows_now": sum(now.values()),
        "rows_then": sum(then.values()),
        "classes": sorted(changed, key=lambda entry: entry["then"] - entry["now"]),
    }
