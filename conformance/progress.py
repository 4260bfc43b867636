"""The suite's word on every test as it ends: e2e.test posts it to an address that it is given."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Say = Callable[[str], None]


@contextmanager
def listening(total: int, say: Say) -> Iterator[str]:
    """The address to give, for the length of a block; `say` hears of each of `total` tests when it ended."""
    told = Told(total, say)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class Told:
    """Counts what ended. Each process of the suite counts its own tests only, so its numbers are left aside."""

    def __init__(self, total: int, say: Say) -> None:
        self._total, self._say, self._ended, self._lock = total, say, 0, threading.Lock()

    def __call__(self, body: bytes) -> None:
        state, _, test = str(json.loads(body).get("msg", "")).partition(" ")
        if state not in ("PASSED", "FAILED") or not test.startswith("["):
            return
        with self._lock:
            self._ended += 1
            self._say(f"[{self._ended}/{self._total}] {state.lower()}  {test}")
