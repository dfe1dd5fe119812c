"""Server-sent events: a client that listens gets what changes.

It begins with what is served and the points of the last half hour. Then there is a message whenever something changes,
and an empty one every 15 seconds, by which both sides know that the other is there. A stream ends when its token is
taken back, when tokens become needed, or when the process ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from aircl.serve.errors import BusyError
from aircl.serve.guard import token_of
from aircl.serve.tokens import SCOPES, Tokens
from aircl.serve.watch import Watch

LOOK_SECONDS, EMPTY_SECONDS = 0.25, 15.0
LISTENERS = 64


def listening(watch: Watch, tokens: Tokens) -> APIRouter:
    """Return the route of the stream."""
    router = APIRouter()

    @router.get("/events", response_class=Response)
    async def events(request: Request) -> Response:
        """Tell what changes, as server-sent events: `hello` once, then `now`."""
        if watch.listeners >= LISTENERS:
            raise BusyError(f"{LISTENERS} listen already: ask again later.")
        token = token_of(request.scope)

        def is_allowed() -> bool:
            return not tokens.are_needed() if token is None else tokens.has(token)

        scopes = list(SCOPES) if token is None else list(token.scopes)
        hello = {**watch.about(), "may": scopes, "token": None if token is None else token.name}
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_stream(watch, hello, is_allowed), media_type="text/event-stream", headers=headers)

    return router


async def _stream(watch: Watch, hello: dict[str, Any], is_allowed: Callable[[], bool]) -> AsyncIterator[bytes]:
    watch.listeners += 1
    try:
        last = watch.state()
        yield _message("hello", {**hello, "points": list(watch.points), "now": last})
        silent_since = time.monotonic()
        while not watch.is_ending() and is_allowed():
            await asyncio.sleep(LOOK_SECONDS)
            state = watch.state()
            if state != {**last, "at": state["at"]}:
                last, silent_since = state, time.monotonic()
                yield _message("now", state)
                await asyncio.sleep(3 * LOOK_SECONDS)  # while it learns all the time, about one per second
            elif time.monotonic() - silent_since > EMPTY_SECONDS:
                silent_since = time.monotonic()
                yield b":\n\n"
    finally:
        watch.listeners -= 1


def _message(name: str, value: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + to_json(value, inf_nan_mode="null") + b"\n\n"
