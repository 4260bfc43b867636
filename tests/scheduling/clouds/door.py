"""A server in front of a cloud that is made up: it notes what is asked, and spoils answers on their way."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Told:
    status: int
    body: str


Upstream = Callable[[Asked], Told]
Fault = Callable[[Asked], "Told | str | None"]
""""lost" does it and loses the answer, "dead" does nothing and answers nothing, None is not this fault's business."""


def told(status: int, content: Any) -> Told:
    return Told(status, json.dumps(content))


def once(fault: Fault) -> Fault:
    """The first time that it is its business."""
    done: list[object] = []

    def first(asked: Asked) -> Told | str | None:
        made = None if done else fault(asked)
        if made is not None:
            done.append(made)
        return made

    return first


@dataclass
class Door:
    upstream: Upstream
    faults: list[Fault] = field(default_factory=list)
    log: list[Asked] = field(default_factory=list)
    url: str = ""

    def answer(self, asked: Asked) -> Told | None:
        self.log.append(asked)
        for fault in self.faults:
            made = fault(asked)
            if made == "lost":
                self.upstream(asked)
            if isinstance(made, str):
                return None
            if made is not None:
                return made
        return self.upstream(asked)


@contextmanager
def served(door: Door) -> Iterator[Door]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            made = door.answer(Asked(self.command, self.path, dict(self.headers), body))
            if made is None:
                self.close_connection = True
                return
            data = made.body.encode()
            self.send_response(made.status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _answer

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    door.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield door
    finally:
        server.shutdown()
        server.server_close()
