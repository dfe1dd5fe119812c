"""A process that serves: a socket, threads, signals."""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import warnings
from collections.abc import Callable
from contextlib import suppress
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

# Of glibc: memory of so many bytes is asked of the system, and given back when it is free. By default that limit grows
# up to 32 MB with what is freed; statistics then leave gaps, of different size in every thread's heap, that stay.
_M_MMAP_THRESHOLD, _LARGE_BYTES = -3, 2**20


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
    with suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    # A model that was learned from named columns takes rows without names here: they come in the same order.
    warnings.filterwarnings("ignore", message="X does not have valid feature names", category=UserWarning)
    # Predictions, changes and solutions are made side by side: one thread for each is as fast, and none waits for a
    # pool that is shared by all.
    with threadpool_limits(1), serving(directory, settings, read_only=read_only, follow=follow) as service:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with _listening(host, port, family) as server:
            # Head and body of an answer are sent one after the other: without this, the second waits for the first to
            # be acknowledged, 40 ms. asyncio sets it only for sockets that were made by their protocol's number.
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            address, bound = server.getsockname()[:2]
            app = make_app(service, known)
            config = uvicorn.Config(
                app, log_config=None, access_log=False, server_header=False, proxy_headers=False,
                lifespan="off", timeout_graceful_shutdown=30,
            )  # fmt: skip
            ready(f"http://{f'[{address}]' if family == socket.AF_INET6 else address}:{bound}")
            running = uvicorn.Server(config)
            gc.collect()
            gc.freeze()  # what is there now stays: it need not be looked through again and again
            with app.watch.running(lambda: running.should_exit):
                running.run(sockets=[server])


def _listening(host: str, port: int, family: socket.AddressFamily) -> socket.socket:
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise InputError(
            f"{host}, port {port}, cannot be listened at ({reason}). Choose another: --port, 0 for one that is free."
        ) from None
