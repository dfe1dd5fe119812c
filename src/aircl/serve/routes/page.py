"""The page at `/`, as it lies in the folder `page`: no build step, nothing from elsewhere."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import APIRouter, HTTPException, Request, Response

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}

# Scripts and styles are files of ours, pictures come from the page itself, and nobody may put the page into a frame.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",  # asked for again, by the tag: a new aircl is a new page at once
}


def page() -> APIRouter:
    """Return the page and its files, which are read once."""
    router = APIRouter(include_in_schema=False)
    folder = files("aircl.serve") / "page"
    contents = {
        entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name[entry.name.rfind(".") :] in KINDS
    }
    tags = {name: f'"{hashlib.sha256(content).hexdigest()[:20]}"' for name, content in contents.items()}

    def answer(request: Request, name: str) -> Response:
        if name not in contents:
            raise HTTPException(404)
        headers = {**HEADERS, "etag": tags[name]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        return Response(contents[name], media_type=KINDS[name[name.rfind(".") :]], headers=headers)

    @router.get("/")
    async def show(request: Request) -> Response:
        return answer(request, "index.html")

    @router.get("/page/{name}")
    async def show_file(request: Request, name: str) -> Response:
        return answer(request, name)

    return router
