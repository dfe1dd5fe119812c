"""Methods from files of one's own: where they came from, so that a run can be resumed, and how they come back."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aircl.benchmark.contract.module import load_method_file
from aircl.methods import METHODS
from aircl.methods.registry import load_methods


def method_sources(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return where methods that are not of this package were defined.

    Parameters
    ----------
    names : iterable of str
        Of registered methods.

    Returns
    -------
    sources : dict
        By name: the `file`, its `sha256`, and whether it is the `script` that was run. `file` is None for a class
        that no file has, such as one of a notebook.
    """
    sources = {}
    for name in names:
        method = METHODS[name]
        if not method.__module__.startswith("aircl."):
            try:
                file = Path(inspect.getsourcefile(method) or "").resolve()
            except TypeError:
                file = Path()
            there = file.is_file()
            sources[name] = {
                "file": str(file) if there else None,
                "sha256": hashlib.sha256(file.read_bytes()).hexdigest() if there else None,
                "script": method.__module__ == "__main__",
            }
    return sources


def load_sources(sources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Load methods that a run had from files, if they are not there yet. The files are executed.

    Parameters
    ----------
    sources : mapping
        As `method_sources` returned them.

    Returns
    -------
    remarks : list of str
        Which files were run, and which of them have changed since.

    Raises
    ------
    ValueError
        If a file is gone, does not have the method any more, or is the script that began the run.
    """
    load_methods()
    remarks = []
    for name, source in sources.items():
        if name in METHODS:
            continue
        path = Path(source["file"]) if source["file"] else None
        if path is None or source["script"]:
            where = f"the script {path}, which would run again" if path else "no file"
            raise ValueError(
                f"the method {name!r} was defined in {where}. Put its class into a file of its own and give it: "
                "--module FILE.py."
            )
        if not path.is_file():
            raise ValueError(f"the method {name!r} was in {path}, which is gone. Say where it is: --module FILE.py.")
        load_method_file(path)
        if name not in METHODS:
            raise ValueError(f"{path} no longer defines the method {name!r}. Say what does: --module FILE.py.")
        changed = hashlib.sha256(path.read_bytes()).hexdigest() != source["sha256"]
        remarks.append(f"{name} is from {path}" + (", which has CHANGED since the run began." if changed else "."))
    return remarks
