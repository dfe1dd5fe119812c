"""Where things are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return the directory for what can be made again: AIRCL_CACHE, else `aircl` below the user's cache directory."""
    if chosen := os.environ.get("AIRCL_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aircl"
