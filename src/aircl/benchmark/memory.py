"""What a method holds: the bytes that it saves, and the peak of its process."""

from __future__ import annotations

import json
import re
import resource
import sys
from pathlib import Path
from typing import Any

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def written_bytes(directory: Path, backbone: Any = None) -> int:
    """Return the size of what a method saved, without the weights of its backbone.

    Parameters
    ----------
    directory : path
    backbone : Backbone or None
        Of the method's setup. One copy of its weights is left out where the files have it as safetensors, as of a
        method that trains them; what has the same shapes beside it, such as an importance of each weight, counts.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "means.bin").write_bytes(bytes(1200))
    ...     written_bytes(Path(folder))
    1200
    """
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != "track.json"]
    total = sum(path.stat().st_size for path in files)
    module = getattr(backbone, "module", None)
    weights = {} if module is None else {name: list(w.shape) for name, w in module.state_dict().items()}
    for path in files if weights else []:
        if path.suffix == ".safetensors":
            for key, entry in _header(path).items():
                name = next((n for n in weights if key.rpartition("/")[2].endswith(n)), None)
                if name is not None and entry["shape"] == weights[name]:
                    total -= entry["data_offsets"][1] - entry["data_offsets"][0]
                    del weights[name]
    return total


def _header(path: Path) -> dict[str, Any]:
    """Return the arrays of a safetensors file, without reading them."""
    with path.open("rb") as file:
        header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {key: entry for key, entry in header.items() if key != "__metadata__"}


def reset_peak_memory() -> None:
    """Begin to measure again, where the system can (Linux); elsewhere the peak is that of the process."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def peak_memory() -> int:
    """Return the largest resident size since the last reset, in bytes."""
    if _STATUS.exists() and (match := re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())):
        return int(match[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
