"""Serves the pages over HTTP, in a thread, for the length of a block."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from cluster.errors import FailedError, TimedOutError
from cluster.waiting import poll

_STARTS_S, _ENDS_S = 30.0, 5
_MOST = 200
"""Connections at a time; others get 503."""


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 picks a free one. Raises FailedError if the address can't be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host.strip("[]"), port))
        opened.listen(128)
    except OSError as error:
        opened.close()
        hint = "; choose another with --port" if port else ""
        raise FailedError(f"can't listen on {host}:{port}: {error.strerror}{hint}", code="address") from None
    return opened


@contextmanager
def serving(app: ASGIApp, listener: socket.socket, tls: ssl.SSLContext | None = None) -> Iterator[None]:
    """Serve while the block runs. Closes the socket. Errors: raises TimedOutError if the server does not start."""
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        limit_concurrency=_MOST,
        timeout_graceful_shutdown=_ENDS_S,
    )
    config.load()
    config.ssl = tls
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="web", daemon=True)
    thread.start()
    try:
        if not poll(lambda: server.started or not thread.is_alive(), _STARTS_S, 0.02) or not server.started:
            raise TimedOutError("the web server did not start")
        yield
    finally:
        server.should_exit = True
        thread.join(_ENDS_S + 5)
        listener.close()
