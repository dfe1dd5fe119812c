"""The app: routers, errors, and the guard before them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from aircl import __version__
from aircl.serve.errors import BusyError, RefusedError, StorageError
from aircl.serve.guard import Guard
from aircl.serve.limits import told
from aircl.serve.metrics import Metrics
from aircl.serve.routes.changing import changing, only_reading
from aircl.serve.routes.documentation import describe, documentation
from aircl.serve.routes.listening import listening
from aircl.serve.routes.page import page
from aircl.serve.routes.predicting import predicting
from aircl.serve.routes.watching import watching
from aircl.serve.service import Service
from aircl.serve.tokens import Tokens
from aircl.serve.watch import Watch


def make_app(service: Service, tokens: Tokens) -> Guard:
    """Return the ASGI app of a service; as long as there are no tokens, it is for this machine only."""
    metrics = Metrics(service)
    watch = Watch(service, metrics)
    app = FastAPI(
        title="aircl", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False,
        description="A classifier that learns while it answers.", telemetry={"tracing": False, "metrics": False},
    )  # fmt: skip
    app.openapi_version = "3.0.3"  # the page that is bundled reads it
    routers = [predicting(service), watching(service, metrics), listening(watch, tokens), page(), documentation()]
    routers.append(only_reading() if service.writer is None else changing(service, service.writer))
    for router in routers:
        app.include_router(router)
    describe(app, service)
    for kind, handler in _ANSWERS.items():
        app.add_exception_handler(kind, handler)
    return Guard(app, tokens, metrics, watch)


def _problem(status: int | None = None, **headers: str) -> Callable[[Request, Any], Awaitable[Response]]:
    async def answer(request: Request, error: Any) -> Response:
        return JSONResponse({"detail": str(error)}, status or error.status, headers)

    return answer


async def _wrong_path(request: Request, error: RequestValidationError) -> Response:
    return JSONResponse({"detail": told(error.errors())}, 422)


_ANSWERS: dict[type[Exception], Any] = {
    RefusedError: _problem(),
    RequestValidationError: _wrong_path,
    BusyError: _problem(503, **{"retry-after": "1"}),
    StorageError: _problem(507, **{"retry-after": "5"}),
}
