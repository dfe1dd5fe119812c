"""What changes the model: learn, correct, forget, merge, roll back. Each is answered when it is durable."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request

from aircl.inputs import Samples
from aircl.serve import schemas
from aircl.serve.changes import Change, Rows
from aircl.serve.errors import RefusedError
from aircl.serve.guard import lacks, token_of
from aircl.serve.jobs import Job
from aircl.serve.limits import parse, read_body, row_labels, save_body
from aircl.serve.routes.bodies import file_body, has_rows, json_body, rows_of
from aircl.serve.service import Service
from aircl.serve.writer import Writer
from aircl.storage.leftovers import Scratch

NEED_ADMIN = ("forget-classes", "merge", "rollback")  # to be made, and to be taken back


def changing(service: Service, writer: Writer) -> APIRouter:
    """Return the routes of the one process that learns."""
    router, limits = APIRouter(), service.settings

    async def labelled(asked: Any) -> Rows:
        model = writer.model
        X = await rows_of(asked, service, service.width)
        for name, values in (("sample weights", asked.sample_weight), ("ids", asked.ids)):
            if values is not None and len(values) != len(X):
                raise RefusedError(f"there are {len(X)} rows but {len(values)} {name}.")
        if asked.ids is not None and model.ledger is False:
            raise RefusedError("ids are for a model that keeps a ledger, and this one does not.")
        labels = row_labels(asked.labels or [], len(X), model)
        if isinstance(X, Samples) and service.solved is not None:  # so that the writer need not wait for it
            await asyncio.to_thread(service.solved.snapshot.embed, X)
        return Rows(X, labels, asked.sample_weight, asked.ids)

    def check_kept(ids: list[Any]) -> None:
        if limits.cipher is None:
            raise RefusedError("ids alone are for a service that keeps rows, --keep-rows. Give the rows as well.")
        if not 0 < len(ids) <= limits.max_rows:
            raise RefusedError(f"{len(ids)} ids are sent; 1 to {limits.max_rows} are possible.", 413 if ids else 422)

    async def make(request: Request, job: Job) -> Any:
        """Make a change; a client that closes its connection does not stop it."""
        job.key = _key(request)
        return await asyncio.shield(asyncio.wrap_future(writer.submit(job)))

    @router.post("/learn", openapi_extra=json_body(schemas.Learn, keyed=True), response_model=schemas.Changed)
    async def learn(request: Request) -> Any:
        """Learn rows. Answered when they are durable."""
        body = await read_body(request, limits.max_body)
        asked = parse(schemas.Learn, body)
        if asked.on_duplicate == "skip" and writer.model.ledger is False:
            raise RefusedError("only a model that keeps a ledger can skip duplicates, and this one does not.")
        change = Change("learn", await labelled(asked), on_duplicate=asked.on_duplicate)
        return await make(request, Job("learn", None, (body,), change))

    @router.post("/forget", openapi_extra=json_body(schemas.Forget, keyed=True), response_model=schemas.Changed)
    async def forget(request: Request) -> Any:
        """Forget rows, as they were learned, or whole classes: afterwards it is as if they had never been seen."""
        body = await read_body(request, limits.max_body)
        asked = parse(schemas.Forget, body)
        ids, rows_given = asked.ids, asked.labels is not None or has_rows(asked)
        if [rows_given, asked.classes is not None, ids is not None and not rows_given].count(True) != 1:
            raise RefusedError("give either rows and labels, or classes, or ids.")
        job = Job("forget", None, (body,), purge=asked.purge)
        if rows_given:
            job.change = Change("forget", await labelled(asked))
        elif asked.classes is not None:
            token = token_of(request.scope)
            if token is not None and "admin" not in token.scopes:
                raise RefusedError(lacks(token, "admin"), 403)
            job.kind, job.change = "forget-classes", Change("forget-classes", classes=asked.classes)
        elif ids is not None:
            check_kept(ids)
            job.by_ids = lambda kept: Change("forget", kept.find(ids))
        return await make(request, job)

    @router.post("/correct", openapi_extra=json_body(schemas.Correct, keyed=True), response_model=schemas.Changed)
    async def correct(request: Request) -> Any:
        """Learn rows in place of others that have the same ids. 409 if the old ones were not learned so."""
        if writer.model.ledger is False:
            raise RefusedError("rows are corrected by the ids that a ledger knows. Begin with one: --init --ledger.")
        body = await read_body(request, limits.max_body)
        asked = parse(schemas.Correct, body)
        job, ids = Job("correct", None, (body,)), asked.new.ids
        if not ids:
            raise RefusedError("rows are corrected by their ids: give some.")
        if asked.old is not None:
            old = await labelled(asked.old)
            if not old.ids:
                raise RefusedError("rows are corrected by their ids: give ids of both.")
            job.change = Change("correct", await labelled(asked.new), old)
        elif has_rows(asked.new):
            check_kept(ids)
            new = await labelled(asked.new)
            job.by_ids = lambda kept: Change("correct", new, kept.find(ids))
        else:
            check_kept(ids)
            labels = row_labels(asked.new.labels, len(ids), writer.model)
            weight = asked.new.sample_weight
            job.by_ids = lambda kept: _relabelled(kept.find(ids), labels, weight)
        return await make(request, job)

    @router.post("/merge", openapi_extra=file_body(), response_model=schemas.Changed)
    async def merge(request: Request) -> Any:
        """Add everything that another model has learned: a file that `aircl learn` or `save` wrote."""
        with Scratch(service.directory.path) as folder:
            path = folder / "model.safetensors"
            await save_body(request, limits.max_merge, path)
            digest = await asyncio.to_thread(_file_digest, path)
            return await make(request, Job("merge", None, (digest,), file=path))

    @router.post("/rollback", openapi_extra=json_body(schemas.Rollback, keyed=True), response_model=schemas.Changed)
    async def rollback(request: Request) -> Any:
        """Go back to a version. What was changed since then is gone, and the version stays in the list."""
        body = await read_body(request, limits.max_body)
        return await make(request, Job("rollback", None, (body,), version=parse(schemas.Rollback, body).version))

    @router.post("/undo", openapi_extra=json_body(schemas.Undo, keyed=True), response_model=schemas.Changed)
    async def undo(request: Request) -> Any:
        """Take back the last change, bit by bit. 409 if it is not the last one any more, or too long ago."""
        body = await read_body(request, limits.max_body)
        token = token_of(request.scope)
        if token is not None and "admin" not in token.scopes and writer.durable.undo.kind in NEED_ADMIN:
            raise RefusedError(lacks(token, "admin"), 403)
        return await make(request, Job("undo", None, (body,), version=parse(schemas.Undo, body).version))

    return router


def only_reading() -> APIRouter:
    """Return the same routes of a process that only reads: they say so."""
    router = APIRouter(include_in_schema=False)

    async def refuse() -> None:
        raise RefusedError("this process only reads. Send changes to the one that learns.", 403)

    for path in ("/learn", "/forget", "/correct", "/merge", "/rollback", "/undo"):
        router.add_api_route(path, refuse, methods=["POST"])
    return router


def _relabelled(old: Rows, labels: list[Any], weight: list[float] | None) -> Change:
    """Return a correction of labels, and of weights if there are some."""
    if weight is not None and len(weight) != len(labels):
        raise RefusedError(f"there are {len(labels)} rows but {len(weight)} sample weights.")
    new = replace(old, labels=labels, weight=old.weight if weight is None else weight)
    return Change("correct", new, old)


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= 200:
        raise HTTPException(422, "an Idempotency-Key has 1 to 200 characters, such as a UUID.")
    token = token_of(request.scope)
    return f"{'' if token is None else token.name}:{key}"


def _file_digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
