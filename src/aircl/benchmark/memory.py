"""How much memory the process has held at most."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak_memory() -> None:
    """Begin to measure anew, where the system can (Linux); elsewhere the peak is that of the process."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def peak_memory() -> int:
    """Return the largest resident size since the last reset, in bytes."""
    if _STATUS.exists() and (match := re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())):
        return int(match[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
