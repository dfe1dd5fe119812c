"""The page that shows the routes, with a script that is served from here: it opens without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Response
from fastapi.openapi.docs import get_swagger_ui_html
from swagger_ui_bundle import swagger_ui_path

from aircl.serve.guard import scope_of
from aircl.serve.service import Service

FILES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}

# A row of every kind, to try a route with.
_ROW = {"features": [[4.0, 0.3]], "texts": ["Where is my card?"], "images": ["iVBORw0KGgo="]}


def documentation() -> APIRouter:
    """Return the page and its files."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    async def page() -> Response:
        return get_swagger_ui_html(
            openapi_url="openapi.json", title="aircl", swagger_js_url="docs/swagger-ui-bundle.js",
            swagger_css_url="docs/swagger-ui.css", swagger_favicon_url="data:,",
        )  # fmt: skip

    @router.get("/docs/{name}")
    async def page_file(name: str) -> Response:
        if name not in FILES:
            raise HTTPException(404)
        return Response((Path(swagger_ui_path) / name).read_bytes(), media_type=FILES[name])

    return router


def describe(app: FastAPI, service: Service) -> None:
    """Have the description of an app say what a route does, which token it needs, and what to send for a try."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = plain()
            scheme = {"type": "http", "scheme": "bearer", "description": "If there are tokens: see `aircl token`."}
            made.setdefault("components", {})["securitySchemes"] = {"token": scheme}
            for path, operations in made["paths"].items():
                for operation in operations.values():
                    _tell(operation, path, service)
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _tell(operation: dict[str, Any], path: str, service: Service) -> None:
    operation["summary"] = operation["description"].partition(". ")[0].rstrip(".")
    if scope := scope_of(path):
        operation["tags"] = [f"with the scope {scope}"]
        operation["security"] = [{"token": []}]
    else:
        operation["tags"] = ["for everyone"]
    example = _examples(service).get(path)
    if example is not None:
        operation["requestBody"]["content"]["application/json"]["example"] = example


def _examples(service: Service) -> dict[str, Any]:
    kind = service.kinds[0]
    row: dict[str, Any] = {kind: _ROW[kind]}
    named = {**row, "ids": ["row 1"]} if service.moment().model.ledger is not False else row
    return {
        "/predict": {**row, "top": 3},
        "/learn": {**named, "labels": ["cat"]},
        "/forget": {**named, "labels": ["cat"]},
        "/correct": {
            "old": {**row, "ids": ["row 1"], "labels": ["cat"]},
            "new": {**row, "ids": ["row 1"], "labels": ["dog"]},
        },
        "/rollback": {"version": 0},
        "/undo": {"version": 1},
    }
