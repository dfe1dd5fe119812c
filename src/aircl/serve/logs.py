"""Logs: one JSON object a line. Nothing of a row is ever in them, messages of exceptions included."""

from __future__ import annotations

import json
import logging
import sys
import traceback
import warnings
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("aircl.serve")


class JsonLines(logging.Formatter):
    """Formats what is logged, with its `fields`.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "change", "levelname": "INFO", "created": 0, "fields": {"rows": 3}})
    >>> print(JsonLines().format(record))
    {"time": "1970-01-01T00:00:00.000+00:00", "level": "info", "event": "change", "rows": 3}
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one line. Of an exception, its type and where it was raised."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        event = record.getMessage().partition("\n")[0]  # further lines may repeat what an exception says
        entry = {"time": time, "level": record.levelname.lower(), "event": event}
        entry |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            frames = traceback.extract_tb(record.exc_info[1].__traceback__)[-5:]
            entry["error"] = type(record.exc_info[1]).__name__
            entry["where"] = " ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames)
        return json.dumps(entry, ensure_ascii=False)


def _warned(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Log a warning of Python: what it is and where, not what it says."""
    where = f"{filename.rpartition('/')[2]}:{lineno}"
    LOG.warning("warned", extra={"fields": {"warning": category.__name__, "where": where}})


def log_to_stderr(level: str) -> None:
    """Have this service, and the server below it, log to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    warnings.showwarning = _warned
    for name in ("aircl.serve", "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "aircl.serve" else "WARNING")
