"""A search for training rows in what a method holds in memory and in what it writes."""

from __future__ import annotations

import gc
import itertools
import json
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# A search that meets more objects than this has left the method behind.
MOST_OBJECTS = 1_000_000
# A few numbers are met by accident; so many are not.
NARROWEST = 8
# Copies in another precision, or that were divided by 255, are the same row.
DECIMALS = 4


class SampleSearch:
    """Knows rows in all forms that a method could keep them in, and finds them.

    Parameters
    ----------
    forms : arrays of shape (n, ...)
        The same n rows as they were given, as they were encoded and so on. Very narrow ones are left out.

    Examples
    --------
    >>> rows = np.random.default_rng(0).random((5, 8))
    >>> search = SampleSearch(rows)
    >>> sorted(search.in_array(np.vstack([np.ones(8), rows[3], rows[1]]).astype(np.float32)))
    [1, 3]
    """

    def __init__(self, *forms: Array) -> None:
        flat = (np.asarray(form).reshape(len(form), -1) for form in forms)
        self._forms = [form for form in flat if form.shape[1] >= NARROWEST]
        # By width: the rounded bytes of each row, to its number.
        self._known: dict[int, dict[bytes, int]] = {}
        for form in self._forms:
            keys = _keys(form)
            blank = bytes(len(keys[0])) if keys else b""
            known = self._known.setdefault(form.shape[1], {})
            known.update((key, number) for number, key in enumerate(keys) if key != blank)

    def in_array(self, array: Array) -> set[int]:
        """Return the numbers of the rows that an array holds, along any axis, alone or beside a few more columns."""
        if array.dtype.kind not in "fiub":
            return set()
        found: set[int] = set()
        for width, known in self._known.items():
            for rows in _as_rows(array, width):
                found.update(known[key] for key in set(_keys(rows)) & known.keys())
        return found

    def in_bytes(self, blob: bytes) -> set[int]:
        """Return the numbers of the rows whose bytes occur anywhere."""
        found: set[int] = set()
        for form in self._forms:
            types = [np.uint8] if form.dtype == np.uint8 else [np.float16, np.float32, np.float64]
            for dtype, (number, row) in itertools.product(types, enumerate(form)):
                if number not in found and row.any() and row.astype(dtype).tobytes() in blob:
                    found.add(number)
        return found

    def in_object(self, method: Any) -> dict[str, set[int]]:
        """Return where in a live object rows are, and which; places are attributes such as ``_memory[3]``."""
        found: dict[str, set[int]] = {}
        for place, value in _reachable(method):
            rows = self.in_array(value) if isinstance(value, np.ndarray) else self.in_bytes(value)
            if rows:
                found.setdefault(place, set()).update(rows)
        return found

    def in_files(self, directory: Path) -> dict[str, set[int]]:
        """Return the names of files that hold rows, and which."""
        found: dict[str, set[int]] = {}
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            rows = self.in_bytes(path.read_bytes())
            for array in read_arrays(path).values():
                rows |= self.in_array(array)
            if rows:
                found[path.relative_to(directory).as_posix()] = rows
        return found


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays in a file of a format that is known (safetensors, npz, npy, json); none of any other."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            return load_file(path)
        if path.suffix == ".npz":
            with path.open("rb") as file, np.load(file) as arrays:
                return {name: arrays[name] for name in arrays.files}
        if path.suffix == ".npy":
            return {"": np.load(path)}
        if path.suffix == ".json":
            content = json.loads(path.read_text())
            return {str(number): array for number, (_, array) in enumerate(_reachable(content))}
    except Exception:  # a file that is damaged or holds other types is left to the search of its bytes
        return {}
    return {}


def _keys(rows: Array) -> list[bytes]:
    with np.errstate(all="ignore"):
        # Adding zero makes one zero of the two.
        rounded = np.round(rows.astype(np.float64), DECIMALS).astype(np.float32) + np.float32(0)
    return [row.tobytes() for row in rounded]


def _as_rows(array: Array, width: int) -> Iterator[Array]:
    """Yield all readings of an array as rows of a width."""
    if array.size and array.size % width == 0:
        yield array.reshape(-1, width)
    for axis, length in enumerate(array.shape):
        if length > width or (length == width and array.ndim > 1):
            last = np.moveaxis(array, axis, -1)
            yield last[..., :width].reshape(-1, width)
            yield last[..., length - width :].reshape(-1, width)


def _reachable(root: Any) -> Iterator[tuple[str, Any]]:
    """Yield every array and every string of bytes that an object leads to, with the way there."""
    torch: Any = sys.modules.get("torch")
    queue: deque[tuple[str, Any]] = deque([("", root)])
    queue.extend(_class_attributes(root))
    seen: dict[int, Any] = {}  # holds on to what it has seen, as an id may be used again
    while queue and len(seen) < MOST_OBJECTS:
        place, value = queue.popleft()
        if id(value) in seen or isinstance(value, type | ModuleType | FrameType | str | int | float | complex | None):
            continue
        seen[id(value)] = value
        if torch is not None and isinstance(value, torch.Tensor):
            yield place.lstrip("."), _whole(value)
            continue
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                queue.extend((f"{place}[{i}]", item) for i, item in enumerate(value.ravel().tolist()))
            elif value.dtype.names:
                queue.extend((f"{place}[{name!r}]", value[name]) for name in value.dtype.names)
            else:
                yield place.lstrip("."), value
            # A view keeps alive all of what it is a part of.
            queue.append((f"{place}.base", value.base))
        elif isinstance(value, bytes | bytearray):
            yield place.lstrip("."), bytes(value)
        elif isinstance(value, list | tuple) and value and all(isinstance(item, int | float) for item in value):
            if all(abs(item) < 1e300 for item in value):  # integers may be too large for a float
                yield place.lstrip("."), np.array(value, np.float64)
        else:
            queue.extend(_parts(place, value))


def _whole(tensor: Any) -> Array:
    """Return all that a dense tensor keeps alive: itself, or the storage that it is a part of."""
    tensor = tensor.detach()
    if str(tensor.layout) != "torch.strided":
        return np.zeros(0)
    if tensor.untyped_storage().nbytes() > tensor.nbytes:
        tensor = tensor.new_empty(0).set_(tensor.untyped_storage())
    # numpy knows fewer types; integers and booleans are exact in double precision.
    array: Array = tensor.cpu().double().numpy()
    return array


def _parts(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object is made of."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{place}[{key!r}]", item
            yield f"{place} (a key)", key
    elif isinstance(value, list | tuple | deque):
        for number, item in enumerate(value):
            yield f"{place}[{number}]", item
    elif isinstance(value, MethodType):
        yield place, value.__self__
    elif isinstance(value, FunctionType):  # its globals are the whole module, which is not the method's own
        inner = (value.__closure__, value.__defaults__, value.__kwdefaults__, vars(value))
        for item in inner:
            yield f"{place} (a function)", item
    else:
        attributes: dict[str, Any] = getattr(value, "__dict__", {})
        for name, item in list(attributes.items()):
            yield f"{place}.{name}", item
        for item in gc.get_referents(value):
            if item is not attributes:
                yield f"{place} (inside a {type(value).__name__})", item


def _class_attributes(root: Any) -> Iterator[tuple[str, Any]]:
    """Yield what the classes of an object hold, which all its instances share."""
    for owner in type(root).__mro__:
        if owner.__module__ != "builtins":
            for name, item in vars(owner).items():
                if not name.startswith("__") and not callable(item):
                    yield f"{owner.__name__}.{name}", item
