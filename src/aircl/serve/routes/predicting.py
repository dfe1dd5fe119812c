"""`POST /predict`."""

from __future__ import annotations

import asyncio
import time
from math import exp
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from aircl.classifiers.decisions import DOUBTFUL, UNKNOWN
from aircl.engine.backend import Array
from aircl.serve import schemas
from aircl.serve.errors import BusyError, RefusedError
from aircl.serve.limits import parse, read_body
from aircl.serve.routes.bodies import json_body, rows_of
from aircl.serve.service import Service
from aircl.serve.solver import Solved

FIRST_SOLUTION_SECONDS = 20.0
# Probabilities of one answer: while they are written, nobody else is answered.
MAX_TOLD = 1_000_000


def predicting(service: Service) -> APIRouter:
    """Return the route that predicts."""
    router = APIRouter()

    @router.post("/predict", openapi_extra=json_body(schemas.Predict), response_model=schemas.Predicted)
    async def predict(request: Request) -> Response:
        """Predict the class of one row or of many."""
        asked = parse(schemas.Predict, await read_body(request, service.settings.max_body))
        solved = await _first_solution(service)
        X = await rows_of(asked, service, solved.width)
        if (told := len(X) * min(asked.top, len(solved.classes))) > MAX_TOLD:
            raise RefusedError(f"{told} probabilities are asked for; {MAX_TOLD} are possible. Send fewer rows.", 413)
        solved, log_p = await service.gatherer.ask(X)
        answer: dict[str, Any] = {"version": solved.moment.version, "rows_behind": service.rows_behind}
        novelty = None
        if asked.novelty is not None:
            used, novelty = await service.drift.gatherer.ask(X)
            if not asked.again:
                service.drift.see(novelty)
            answer["novelty_version"] = used.moment.version
        elif not asked.again and service.drift.is_due():
            service.drift.look(X)
        answer["predictions"] = _predictions(solved, log_p, asked, novelty)
        return Response(to_json(answer, inf_nan_mode="null"), media_type="application/json")

    return router


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


def _predictions(solved: Solved, log_p: Array, asked: schemas.Predict, novelty: Array | None) -> list[dict[str, Any]]:
    """Return the best classes of every row; no label if it is too novel, or the best one not likely enough."""
    if asked.top == 1:
        columns = log_p.argmax(axis=1).tolist()
        best = [[column] for column in columns]
        p = [[exp(row[column])] for row, column in zip(log_p, columns, strict=True)]
    else:
        ranked = np.argsort(-log_p, axis=1, kind="stable")[:, : asked.top]
        best, p = ranked.tolist(), np.exp(np.take_along_axis(log_p, ranked, axis=1)).tolist()
    answers = []
    for place, (columns, values) in enumerate(zip(best, p, strict=True)):
        entries = [
            {"label": solved.classes[column], "probability": value}
            for column, value in zip(columns, values, strict=True)
            if value > 0 or column == columns[0]
        ]
        answer = dict(entries[0]) if asked.top == 1 else {**entries[0], "top": entries}
        if values[0] < asked.confidence:
            answer |= {"label": None, "reason": DOUBTFUL}
        if novelty is not None and asked.novelty is not None:
            answer["novelty"] = float(novelty[place])
            if novelty[place] < asked.novelty:
                answer |= {"label": None, "reason": UNKNOWN}
        answers.append(answer)
    return answers
