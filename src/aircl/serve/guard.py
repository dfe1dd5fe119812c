"""Who is let in: before anything of a request's body is read.

With tokens, every route but those that tell nothing needs one with the right scope. Without, the service listens on
this machine only, and then a web page from elsewhere must not be able to use a visitor's browser against it: Host has
to be this machine, Origin has to be the service itself.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aircl.serve.metrics import Metrics
from aircl.serve.tokens import Token, Tokens
from aircl.storage.errors import InputError

if TYPE_CHECKING:
    from aircl.serve.watch import Watch

LOG = logging.getLogger("aircl.serve")

# What needs which scope; "" needs none. What is not here needs a token of any scope, and is not found.
SCOPE_OF = {
    "/": "", "/healthz": "", "/docs": "", "/openapi.json": "",
    "/predict": "predict", "/classes": "predict", "/expected-accuracy": "predict", "/drift": "predict",
    "/metrics": "predict", "/events": "predict",
    "/learn": "learn", "/correct": "learn", "/forget": "learn", "/undo": "learn",  # some: "admin", see `changing`
    "/merge": "admin", "/versions": "admin", "/rollback": "admin",
}  # fmt: skip
# Files of pages, and what has a number in its path.
PREFIXES = {"/docs/": "", "/page/": "", "/versions/": "admin"}


class Guard:
    """Lets requests through to an app, and counts them.

    Parameters
    ----------
    app : ASGI app
    tokens : Tokens
    metrics : Metrics
    watch : Watch
        What the process runs beside it.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, metrics: Metrics, watch: Watch) -> None:
        self.app, self._tokens, self._metrics, self.watch = app, tokens, metrics, watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have it answered."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, path = time.perf_counter(), 500, scope["path"]
        # A HEAD is a GET whose body is left out; that of the events has no end.
        is_head = scope["method"] == "HEAD" and path != "/events"

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif is_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            if (refusal := self._check(scope, path)) is not None:
                await refusal(scope, receive, watched)
            else:
                await self.app({**scope, "method": "GET"} if is_head else scope, receive, watched)
        finally:
            route = path if path in SCOPE_OF else "other"
            self._metrics.count(route, scope["method"], status, time.perf_counter() - began)
            if status >= 400:
                LOG.warning("refused", extra={"fields": {"route": route, "status": status}})

    def _check(self, scope: Scope, path: str) -> JSONResponse | None:
        headers, needed = Headers(scope=scope), scope_of(path)
        if not self._tokens.are_needed():
            return _check_browser(headers)
        if needed == "":
            return None
        kind, _, secret = headers.get("authorization", "").partition(" ")
        try:
            token = self._tokens.find(secret.strip()) if kind.lower() == "bearer" else None
        except (OSError, InputError) as error:  # no one is let in by a file that cannot be read
            LOG.error("tokens-unreadable", exc_info=error)
            return JSONResponse({"detail": "the file of tokens cannot be read."}, 503)
        if token is None:
            answer = JSONResponse({"detail": "a token is needed: Authorization: Bearer TOKEN."}, 401)
            answer.headers["www-authenticate"] = "Bearer"
            return answer
        if needed is not None and needed not in token.scopes:
            return JSONResponse({"detail": lacks(token, needed)}, 403)
        scope.setdefault("state", {})["token"] = token
        return None


def scope_of(path: str) -> str | None:
    """Return what a path needs: "" for nothing, None for any token.

    >>> scope_of("/classes"), scope_of("/docs"), scope_of("/versions/7"), scope_of("/nothing")
    ('predict', '', 'admin', None)
    """
    return next((scope for prefix, scope in PREFIXES.items() if path.startswith(prefix)), SCOPE_OF.get(path))


def _check_browser(headers: Headers) -> JSONResponse | None:
    host, origin = headers.get("host", ""), headers.get("origin")
    try:
        name, place = urlsplit(f"//{host}").hostname, None if origin is None else urlsplit(origin).netloc
    except ValueError:  # such as half of the brackets of an address
        return JSONResponse({"detail": "Host or Origin of the request is not an address."}, 403)
    if not is_this_machine(name or ""):
        return JSONResponse({"detail": "without tokens, the Host of a request is localhost or 127.0.0.1."}, 403)
    if place not in (None, host) or headers.get("sec-fetch-site") == "cross-site":
        return JSONResponse({"detail": "without tokens, no web page from elsewhere may ask."}, 403)
    return None


def is_this_machine(host: str) -> bool:
    """Tell whether a host can only be this machine.

    >>> [is_this_machine(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_of(scope: Scope) -> Token | None:
    """Return the token a request came with; None if there are none."""
    token: Token | None = scope.get("state", {}).get("token")
    return token


def lacks(token: Token, scope: str) -> str:
    """Say that a token is not enough."""
    return f"the token {token.name!r} lacks the scope {scope!r}."
