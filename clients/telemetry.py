"""A loop's HTTP endpoints: metrics in Prometheus' text format ("Exposition formats") and a health check."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

log = logging.getLogger(__name__)
Labels = tuple[tuple[str, str], ...]
Values = Mapping[tuple[str, Labels], float]
Meanings = Mapping[str, tuple[str, str]]
"""Name -> type and meaning."""


class Answer(NamedTuple):
    """The response to a GET."""

    text: str
    status: HTTPStatus = HTTPStatus.OK
    kind: str = "text/plain"


Pages = Mapping[str, Callable[[], Answer]]
"""Path -> function that returns the response. Called from any thread."""


def exposition(prefix: str, meanings: Meanings, values: Values) -> Answer:
    """Format the values with `prefix` before their names, in the order of `meanings`."""
    lines = []
    for name, (kind, meaning) in meanings.items():
        samples = sorted((labels, value) for (name_of_value, labels), value in values.items() if name_of_value == name)
        if samples:
            lines += [f"# HELP {prefix}{name} {meaning}", f"# TYPE {prefix}{name} {kind}"]
            lines += [f"{prefix}{name}{_shown(labels)} {value:.15g}" for labels, value in samples]
    return Answer("".join(f"{line}\n" for line in lines), kind="text/plain; version=0.0.4; charset=utf-8")


def wellness(good: bool, text: str) -> Answer:
    """Return 200 or 503 with the reason."""
    return Answer(f"{text}\n", HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the error; the base class prints it."""
        log.warning("a request from %s failed", client_address[0], exc_info=sys.exception())


@contextmanager
def serving(pages: Pages, address: str, port: int) -> Iterator[int]:
    """Serve the pages for the length of a block and yield the port. Raises OSError if the address can't be bound."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            paths = " and ".join(pages)
            answer = page() if page else Answer(f"not found; this server has {paths}\n", HTTPStatus.NOT_FOUND)
            body = answer.text.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = _Server((address, port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _shown(labels: Labels) -> str:
    escaped = ((key, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for key, value in labels)
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped) + "}" if labels else ""
