"""A cloud's HTTP API on a loopback port, as far as a test's own class answers it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TypeVar


class Answers(Protocol):
    """A class that answers requests. url: where it is served."""

    url: str

    def answer(self, method: str, path: str, headers: Any, body: str, /) -> tuple[int, str]:
        """Return status and text."""
        ...


Cloud = TypeVar("Cloud", bound=Answers)


@contextmanager
def served(cloud: Cloud) -> Iterator[Cloud]:
    """Serve it for a block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            status, text = cloud.answer(self.command, self.path, self.headers, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_PUT = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    cloud.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield cloud
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
