"""A process that serves: a socket, threads, signals."""

from __future__ import annotations

import socket
import warnings
from collections.abc import Callable
from pathlib import Path

import uvicorn
from threadpoolctl import threadpool_limits

from aircl.serve.app import make_app
from aircl.serve.guard import is_this_machine
from aircl.serve.logs import log_to_stderr
from aircl.serve.service import serving
from aircl.serve.settings import Settings
from aircl.serve.tokens import Tokens
from aircl.serve.versions import Directory
from aircl.storage.errors import InputError


def run(
    directory: Directory,
    settings: Settings,
    *,
    host: str,
    port: int,
    tokens: Path,
    read_only: bool,
    follow: bool,
    log_level: str,
    ready: Callable[[str], None],
) -> None:
    """Serve a directory until the process is told to stop. `ready` is told the address, whose port may be chosen."""
    known = Tokens(tokens)
    if not known.are_needed() and not is_this_machine(host):
        raise InputError(
            f"without tokens it is served on this machine only, not on {host}. Make a token: aircl token "
            f"{directory.path} NAME --scope predict."
        )
    log_to_stderr(log_level)
    # A model that was learned from named columns takes rows without names here: they come in the same order.
    warnings.filterwarnings("ignore", message="X does not have valid feature names", category=UserWarning)
    # Predictions, changes and solutions are made side by side: one thread for each is as fast, and none waits for a
    # pool that is shared by all.
    with threadpool_limits(1), serving(directory, settings, read_only=read_only, follow=follow) as service:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family, backlog=2048) as server:
            address, bound = server.getsockname()[:2]
            config = uvicorn.Config(
                make_app(service, known), log_config=None, access_log=False, server_header=False, proxy_headers=False,
                lifespan="off", timeout_graceful_shutdown=30,
            )  # fmt: skip
            ready(f"http://{f'[{address}]' if family == socket.AF_INET6 else address}:{bound}")
            uvicorn.Server(config).run(sockets=[server])
