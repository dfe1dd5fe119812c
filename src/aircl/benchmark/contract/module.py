"""A method from a file that is in no package."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from aircl.methods import METHODS, Method
from aircl.methods.registry import load_methods, register_method


def load_method_file(path: str | os.PathLike[str]) -> list[str]:
    r"""Run a Python file and return the names under which it registers methods.

    Parameters
    ----------
    path : path

    Returns
    -------
    names : list of str
        What `register_method` was called with; classes that it was not called for are registered by their own names.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.benchmark.contract import load_method_file
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "unit.py")
    ...     _ = path.write_text("from aircl.methods.prototypes import Ncm\n\nclass UnitNcm(Ncm):\n    'My own.'")
    ...     load_method_file(path)
    ['UnitNcm']
    """
    load_methods()
    module = _execute(_checked(path))
    complete = [own for own in _own_methods(module).values() if not inspect.isabstract(own)]
    names = [name for name in METHODS if METHODS[name] in complete]
    for method in complete:
        if method not in [METHODS[name] for name in names]:
            register_method(method.__name__)(method)
            names.append(method.__name__)
    if not names:
        raise ValueError(f"{path} defines no method: no class in it is a complete subclass of aircl.methods.Method.")
    return names


def load_method_class(path: str | os.PathLike[str], name: str | None = None) -> type[Method]:
    r"""Return the method that a Python file defines. The file is executed.

    Parameters
    ----------
    path : path
    name : str, optional
        Name of the class; not needed if the file defines one method only.

    Returns
    -------
    method : subclass of Method

    Raises
    ------
    ValueError
        If the file cannot be imported (with the line), or does not have the method, or several and none is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.benchmark.contract import load_method_class
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "mine.py")
    ...     _ = path.write_text("from aircl.methods.prototypes import Ncm\n\nclass Mine(Ncm):\n    'My own.'")
    ...     load_method_class(path).__name__
    'Mine'
    """
    path = _checked(path)
    module = _execute(path)
    own = _own_methods(module)
    complete = [key for key, value in own.items() if not inspect.isabstract(value)]
    known = f"It defines {', '.join(complete)}." if complete else "It defines no class that can be one."
    if name is not None:
        found = getattr(module, name, None)
        if not (inspect.isclass(found) and issubclass(found, Method)):
            raise ValueError(f"{path} has no subclass of aircl.methods.Method named {name!r}. {known}")
        return found
    if not complete:
        lacking = "; ".join(f"{key} lacks {', '.join(sorted(value.__abstractmethods__))}" for key, value in own.items())
        raise ValueError(
            f"{path} defines no method: no class in it is a complete subclass of aircl.methods.Method"
            f"{f' ({lacking})' if lacking else ''}."
        )
    if len(complete) > 1:
        raise ValueError(f"{path} defines several methods: {', '.join(complete)}. Name the class to be checked.")
    return own[complete[0]]


def _checked(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} does not exist or is not a file. Give a Python file that defines a Method.")
    return path


def _own_methods(module: ModuleType) -> dict[str, type[Method]]:
    """Return the methods that a module defines, and does not only import."""
    return {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, Method) and value.__module__ == module.__name__
    }


def _execute(path: Path) -> ModuleType:
    """Import a file as a module of its own, with what lies beside it within reach."""
    name = f"aircl_method_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file: its name should end in .py.")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses and pickles look their module up
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise ValueError(f"{path}, line {_line(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent.resolve()))
    return module


def _line(error: Exception, path: Path) -> int | None:
    """Return the line of a file that an error comes from."""
    if isinstance(error, SyntaxError):
        return error.lineno
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == path.resolve()
    ]
    return lines[-1] if lines else None
