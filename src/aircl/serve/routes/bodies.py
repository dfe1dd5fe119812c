"""Bodies that routes read themselves, within limits: how the page shows them, and the rows in them."""

from __future__ import annotations

import asyncio
from typing import Any

from aircl.engine.backend import Array
from aircl.inputs import Samples
from aircl.serve import schemas
from aircl.serve.errors import RefusedError
from aircl.serve.limits import check_texts, feature_rows
from aircl.serve.samples import decode_images
from aircl.serve.service import Service

_KEY: dict[str, Any] = {
    "parameters": [
        {
            "name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string"},
            "description": "A new one for every change, such as a UUID: a request that is repeated is made once.",
        }
    ]
}  # fmt: skip


def json_body(kind: type[Any], *, keyed: bool = False) -> dict[str, Any]:
    """Describe a body of JSON; `keyed` if the request may have a key."""
    return _described("application/json", kind.model_json_schema()) | (_KEY if keyed else {})


def file_body() -> dict[str, Any]:
    """Describe a body of bytes; the request may have a key."""
    return _described("application/octet-stream", {"type": "string", "format": "binary"}) | _KEY


def _described(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema}}}}


def _given(asked: schemas.Rows) -> list[str]:
    return [kind for kind in ("features", "texts", "images") if getattr(asked, kind) is not None]


def has_rows(asked: schemas.Rows) -> bool:
    """Tell whether there are rows of any kind in a request."""
    return bool(_given(asked))


def _listed(samples: list[str] | str) -> list[str]:
    return [samples] if isinstance(samples, str) else samples


async def rows_of(asked: schemas.Rows, service: Service, width: int | None) -> Array | Samples:
    """Return the rows of a request: features, texts or images, whatever the model takes."""
    limits, given = service.settings, _given(asked)
    if len(given) != 1 or given[0] not in service.kinds:
        by = "it has no backbone" if service.backbone is None else f"{service.backbone} makes features of them"
        raise RefusedError(f"send {' or '.join(service.kinds)}, and nothing else: {by}.")
    if asked.texts is not None:
        return Samples(check_texts(_listed(asked.texts), limits.max_rows))
    if asked.images is not None:
        return await asyncio.to_thread(decode_images, _listed(asked.images), limits.max_rows, limits.max_pixels)
    assert asked.features is not None
    return feature_rows(asked.features, service.catalogue.dtype, limits.max_rows, width)
