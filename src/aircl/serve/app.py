"""The routes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import JSONResponse
from pydantic_core import to_json

from aircl import __version__
from aircl.engine.backend import Array
from aircl.serve import schemas
from aircl.serve.changes import Change, Rows
from aircl.serve.guard import Guard, lacks, token_of
from aircl.serve.journal import StorageError
from aircl.serve.limits import check_texts, feature_rows, parse, read_body, row_labels, save_body
from aircl.serve.metrics import Metrics
from aircl.serve.service import Service
from aircl.serve.solver import Solved
from aircl.serve.tokens import Tokens
from aircl.serve.writer import BusyError, Job, RefusedError, Writer
from aircl.storage.leftovers import Scratch

FIRST_SOLUTION_SECONDS = 20.0
PAGE_FILES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}


def make_app(service: Service, tokens: Tokens) -> Guard:
    """Return the ASGI app of a service; as long as there are no tokens, it is for this machine only."""
    metrics = Metrics(service)
    app = FastAPI(
        title="aircl", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False,
        description="A classifier that learns while it answers.", telemetry={"tracing": False, "metrics": False},
    )  # fmt: skip
    app.openapi_version = "3.0.3"  # the page that is bundled reads it
    _add_reading(app, service, metrics)
    if service.writer is not None:
        _add_changing(app, service, service.writer)
    _add_page(app)
    for kind, handler in _ANSWERS.items():
        app.add_exception_handler(kind, handler)
    return Guard(app, tokens, metrics)


# -- routes that change nothing --
def _add_reading(app: FastAPI, service: Service, metrics: Metrics) -> None:
    limits = service.settings

    @app.post("/predict", openapi_extra=_body(schemas.Predict), response_model=schemas.Predicted)
    async def predict(request: Request) -> Response:
        """Predict the class of one row or of many."""
        asked = parse(schemas.Predict, await read_body(request, limits.max_body))
        solved = await _first_solution(service)
        X = _sent(asked, service, solved.width)
        solved, log_p = await service.gatherer.log_probabilities(X)
        answer = {
            "version": solved.moment.version,
            "rows_behind": service.rows_behind,
            "predictions": _predictions(solved, log_p, asked.top, asked.confidence),
        }
        return Response(to_json(answer), media_type="application/json")

    @app.get("/classes")
    async def classes() -> dict[str, Any]:
        """List the classes, with the rows learned of each (sums of sample weights)."""
        model = service.moment().model
        if not model.__sklearn_is_fitted__():
            return {"classes": []}
        pairs = zip(model.classes_.tolist(), model.class_count_.tolist(), strict=False)
        return {"classes": [{"label": label, "rows": count} for label, count in pairs]}

    @app.get("/expected-accuracy")
    async def expected_accuracy() -> dict[str, Any]:
        """Tell the accuracy to expect of new rows, and what the last learned rows had been predicted as."""
        solved, progressive = service.solved, list(service.progressive)
        expected = None if solved is None else solved.expected
        return {
            "expected": None if expected is None or not np.isfinite(expected.overall) else expected.overall,
            "progressive": sum(progressive) / len(progressive) if progressive else None,
            "progressive_rows": len(progressive),
        }

    @app.get("/versions")
    async def versions() -> dict[str, Any]:
        """List the versions that can be rolled back to, the current one last."""
        listed = [vars(version) for version in service.catalogue.versions]
        return {"versions": [{k: v for k, v in entry.items() if k != "file"} for entry in listed]}

    @app.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """Tell how it is. `degraded`: predictions go on, but changes cannot be made durable."""
        return service.status()

    @app.get("/metrics", response_class=Response)
    async def show_metrics() -> Response:
        """Return what Prometheus collects."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _sent(asked: Any, service: Service, width: int | None) -> Array | list[str]:
    """Return the rows of a request: features, or texts if the model has a backbone."""
    limits = service.settings
    if service.backbone is None:
        if asked.features is None or asked.texts is not None:
            raise RefusedError("send features: the model has no backbone for texts.")
        return feature_rows(asked.features, service.catalogue.dtype, limits.max_rows, width)
    if asked.texts is None or asked.features is not None:
        raise RefusedError(f"send texts: the model makes features of them, by {service.backbone}.")
    return check_texts(asked.texts, limits.max_rows)


async def _first_solution(service: Service) -> Solved:
    """Return what predictions use; what was learned first is waited for, as long as it is being solved."""
    until = time.monotonic() + FIRST_SOLUTION_SECONDS
    while (solved := service.solved) is None:
        if not service.moment().model.__sklearn_is_fitted__():
            raise RefusedError("nothing was learned yet.", 409)
        if time.monotonic() > until:
            raise BusyError("what was learned is still being solved: ask again later.")
        await asyncio.sleep(0.02)
    return solved


def _predictions(solved: Solved, log_p: Array, top: int, confidence: float) -> list[dict[str, Any]]:
    """Return the best classes of every row; no label if the best one is not likely enough."""
    rows = np.arange(len(log_p))[:, None]
    best = log_p.argmax(axis=1)[:, None] if top == 1 else np.argsort(-log_p, axis=1, kind="stable")[:, :top]
    p = np.exp(log_p[rows, best])
    answers = []
    for columns, values in zip(best.tolist(), p.tolist(), strict=True):
        entries = [
            {"label": solved.classes[column], "probability": value}
            for column, value in zip(columns, values, strict=True)
            if value > 0 or column == columns[0]
        ]
        answer = dict(entries[0]) if top == 1 else {**entries[0], "top": entries}
        if answer["probability"] < confidence:
            answer["label"] = None
        answers.append(answer)
    return answers


# -- routes that change the model --
def _add_changing(app: FastAPI, service: Service, writer: Writer) -> None:
    limits = service.settings

    def rows_of(asked: Any) -> Rows:
        model = writer.model
        X = _sent(asked, service, getattr(model, "n_features_in_", None))
        for name, values in (("sample weights", asked.sample_weight), ("ids", asked.ids)):
            if values is not None and len(values) != len(X):
                raise RefusedError(f"there are {len(X)} rows but {len(values)} {name}.")
        if asked.ids is not None and model.ledger is False:
            raise RefusedError("ids are for a model that keeps a ledger, and this one does not.")
        labels = row_labels(asked.labels or [], len(X), getattr(model, "classes_", np.zeros(0)))
        return Rows(X, labels, asked.sample_weight, asked.ids)

    async def make(request: Request, job: Job) -> Any:
        """Have a change made; whoever goes away before it is answered does not stop it."""
        job.key = _key(request)
        return await asyncio.shield(asyncio.wrap_future(writer.submit(job)))

    @app.post("/learn", openapi_extra=_body(schemas.Learn, keyed=True), response_model=schemas.Changed)
    async def learn(request: Request) -> Any:
        """Learn rows. Answered when they are durable."""
        body = await read_body(request, limits.max_body)
        asked = parse(schemas.Learn, body)
        if asked.on_duplicate == "skip" and writer.model.ledger is False:
            raise RefusedError("only a model that keeps a ledger can skip duplicates, and this one does not.")
        change = Change("learn", rows_of(asked), on_duplicate=asked.on_duplicate)
        return await make(request, Job("learn", None, (body,), change))

    @app.post("/forget", openapi_extra=_body(schemas.Forget, keyed=True), response_model=schemas.Changed)
    async def forget(request: Request) -> Any:
        """Forget rows, as they were learned, or whole classes: afterwards it is as if they had never been seen."""
        body = await read_body(request, limits.max_body)
        asked = parse(schemas.Forget, body)
        if (asked.labels is not None) == (asked.classes is not None):
            raise RefusedError("give either rows and labels, or classes.")
        if asked.classes is not None:
            token = token_of(request.scope)
            if token is not None and "admin" not in token.scopes:
                raise RefusedError(lacks(token, "admin"), 403)
            change = Change("forget-classes", classes=asked.classes)
        else:
            change = Change("forget", rows_of(asked))
        return await make(request, Job(change.kind, None, (body,), change, purge=asked.purge))

    if writer.model.ledger is not False:

        @app.post("/correct", openapi_extra=_body(schemas.Correct, keyed=True), response_model=schemas.Changed)
        async def correct(request: Request) -> Any:
            """Learn rows in the place of others that have the same ids. 409 if the old ones were not learned so."""
            body = await read_body(request, limits.max_body)
            asked = parse(schemas.Correct, body)
            change = Change("correct", rows_of(asked.new), rows_of(asked.old))
            if change.rows is None or change.old is None or not change.rows.ids or not change.old.ids:
                raise RefusedError("rows are corrected by their ids: give ids of both.")
            return await make(request, Job("correct", None, (body,), change))

    @app.post("/merge", openapi_extra=_file(), response_model=schemas.Changed)
    async def merge(request: Request) -> Any:
        """Add everything that another model has learned: a file that `aircl learn` or `save` wrote."""
        with Scratch(service.directory.path) as folder:
            path = folder / "model.safetensors"
            await save_body(request, limits.max_merge, path)
            digest = await asyncio.to_thread(_file_digest, path)
            return await make(request, Job("merge", None, (digest,), file=path))

    @app.post("/rollback", openapi_extra=_body(schemas.Rollback, keyed=True), response_model=schemas.Changed)
    async def rollback(request: Request) -> Any:
        """Go back to a version. What was changed since then is gone, and the version stays in the list."""
        body = await read_body(request, limits.max_body)
        return await make(request, Job("rollback", None, (body,), version=parse(schemas.Rollback, body).version))


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= 200:
        raise HTTPException(422, "an Idempotency-Key has 1 to 200 characters, such as a UUID.")
    token = token_of(request.scope)
    return f"{'' if token is None else token.name}:{key}"


def _file_digest(path: Path) -> bytes:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


# -- the page --
def _add_page(app: FastAPI) -> None:
    """Show the routes on a page whose script is served from here: it opens without a network."""
    from swagger_ui_bundle import swagger_ui_path

    @app.get("/docs", include_in_schema=False)
    async def page() -> Response:
        return get_swagger_ui_html(
            openapi_url="openapi.json", title="aircl", swagger_js_url="docs/swagger-ui-bundle.js",
            swagger_css_url="docs/swagger-ui.css", swagger_favicon_url="data:,",
        )  # fmt: skip

    @app.get("/docs/{name}", include_in_schema=False)
    async def page_file(name: str) -> Response:
        if name not in PAGE_FILES:
            raise HTTPException(404)
        return Response((Path(swagger_ui_path) / name).read_bytes(), media_type=PAGE_FILES[name])


def _body(kind: type[Any], *, keyed: bool = False) -> dict[str, Any]:
    """Describe a body that a route reads itself, within limits."""
    schema = kind.model_json_schema()
    described: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
    return described | (_KEY if keyed else {})


def _file() -> dict[str, Any]:
    schema = {"type": "string", "format": "binary"}
    return {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": schema}}}, **_KEY}


_KEY: dict[str, Any] = {
    "parameters": [
        {
            "name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string"},
            "description": "A new one for every change, such as a UUID: a request that is repeated is made once.",
        }
    ]
}  # fmt: skip


# -- errors --
def _problem(status: int | None = None, **headers: str) -> Callable[[Request, Any], Awaitable[Response]]:
    async def answer(request: Request, error: Any) -> Response:
        return JSONResponse({"detail": str(error)}, status or error.status, headers)

    return answer


_ANSWERS: dict[type[Exception], Any] = {
    RefusedError: _problem(),
    BusyError: _problem(503, **{"retry-after": "1"}),
    StorageError: _problem(507, **{"retry-after": "5"}),
}
