"""A web server on loopback, and the user that the test runs as."""

from __future__ import annotations

import grp
import http.server
import os
import pwd
import threading
from collections.abc import Iterator

import pytest


class WebServer(http.server.ThreadingHTTPServer):
    """Serves `pages` (path -> body). requested: the paths of all requests."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.requested: list[str] = []
        self.status = 404
        super().__init__(("127.0.0.1", 0), _Answer)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(http.server.BaseHTTPRequestHandler):
    server: WebServer

    def do_GET(self) -> None:
        self.server.requested.append(self.path)
        body = self.server.pages.get(self.path)
        self.send_response(self.server.status if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def owner() -> str:
    return f"{pwd.getpwuid(os.getuid()).pw_name}:{grp.getgrgid(os.getgid()).gr_name}"
