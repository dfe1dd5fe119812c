"""Bodies of requests: read up to a limit, and checked before anything is made of them. Messages never repeat them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from fastapi import HTTPException, Request
from pydantic import BaseModel, ValidationError

from aircl.classifiers.labels import check_labels
from aircl.engine.backend import Array
from aircl.serve.errors import RefusedError, StorageError

Body = TypeVar("Body", bound=BaseModel)

# Mistakes of a body that are told.
TOLD = 5
# What Pydantic calls the kinds that a value may have, where there are several.
_KINDS = ("bool", "int", "str", "constrained-str", "list[str]", "list[float]", "list[list[float]]")


async def read_body(request: Request, limit: int) -> bytes:
    """Read a body of JSON, or refuse one that is not, or is too large; what is too large is not read."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "send JSON: Content-Type: application/json.")
    parts: list[bytes] = []
    async for part in _pieces(request, limit):
        parts.append(part)
    return b"".join(parts)


async def save_body(request: Request, limit: int, path: Path) -> None:
    """Write a body of bytes to a file."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/octet-stream":
        raise HTTPException(415, "send the bytes of a model: Content-Type: application/octet-stream.")
    try:
        with path.open("wb") as file:
            async for part in _pieces(request, limit):
                file.write(part)
    except OSError as error:
        raise StorageError(f"the model cannot be stored ({error.strerror}).") from error


async def _pieces(request: Request, limit: int) -> Any:
    told = request.headers.get("content-length", "0")
    size = int(told) if told.isascii() and told.isdigit() else 0
    if size <= limit:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > limit:
                break
            yield part
    if size > limit:
        raise HTTPException(413, f"the body is larger than {limit} bytes. Send less at a time.")


def parse(kind: type[Body], body: bytes) -> Body:
    """Return what a body says, or where it is wrong."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise HTTPException(
            422, told(error.errors(include_url=False, include_context=False, include_input=False))
        ) from None
    except (ValueError, RecursionError):
        raise HTTPException(422, "the body is not JSON.") from None


def told(problems: Sequence[Any]) -> list[dict[str, Any]]:
    """Return where a request is wrong, and what should be there; what may be of several kinds is told once.

    >>> told([{"loc": ("labels", 0, "int"), "msg": "Input should be a valid integer"},
    ...       {"loc": ("labels", 0, "constrained-str"), "msg": "Input should be a valid string"}])
    [{'where': ['labels', 0], 'what': 'Input should be a valid integer, or a valid string'}]
    """
    found: dict[tuple[Any, ...], list[str]] = {}
    for problem in problems:
        where = tuple(part for part in problem["loc"] if part not in _KINDS)
        found.setdefault(where, []).append(problem["msg"])
    return [
        {
            "where": list(where),
            "what": ", or ".join([what[0], *(more.removeprefix("Input should be ") for more in what[1:])]),
        }
        for where, what in list(found.items())[:TOLD]
    ]


def check_texts(texts: list[str], max_rows: int) -> list[str]:
    """Return texts, if they are not too many."""
    if not 0 < len(texts) <= max_rows:
        raise RefusedError(f"{len(texts)} texts are sent; 1 to {max_rows} are possible.", 413 if texts else 422)
    return texts


def feature_rows(rows: list[Any], dtype: str, max_rows: int, width: int | None) -> Array:
    """Return one row, or a list of rows, as an array of the right width.

    Examples
    --------
    >>> feature_rows([1.0, 2.0], "float32", 10, 2)
    array([[1., 2.]], dtype=float32)
    """
    try:
        X = np.array(rows, dtype=dtype)
    except ValueError:
        raise RefusedError("all rows of features need the same number of columns.") from None
    X = X[None] if X.ndim == 1 else X
    if len(X) > max_rows:
        raise RefusedError(f"{len(X)} rows are more than the {max_rows} of one request. Send fewer at a time.", 413)
    if X.shape[1] == 0 or (width is not None and X.shape[1] != width):
        raise RefusedError(f"a row has {X.shape[1]} features, but {width or 'some'} are needed.")
    if not np.isfinite(X).all():
        raise RefusedError(f"a feature is not finite in {dtype}.")
    return X


def row_labels(labels: list[Any], n_rows: int, model: Any) -> list[Any]:
    """Return labels of one kind, as many as there are rows, and like those that a model knows."""
    known: Array = getattr(model, "classes_", np.zeros(0))
    if len(labels) != n_rows:
        raise RefusedError(f"there are {n_rows} rows but {len(labels)} labels.")
    try:
        kind = check_labels(labels).dtype.kind
    except ValueError as error:
        raise RefusedError(str(error)) from None
    if len(known) and labels and kind != known.dtype.kind:
        names = {"U": "texts", "i": "whole numbers", "b": "true or false"}
        raise RefusedError(f"labels are {names.get(known.dtype.kind, 'of another kind')} here, not {names.get(kind)}.")
    return labels
