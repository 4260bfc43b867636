"""Clients of benches, against a plain HTTP server."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.bench import calls


class HangsUp(BaseHTTPRequestHandler):
    """Announces an open connection, but closes it after the first answer, as servers do with idle connections."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[calls.Api]:
    server = HTTPServer(("127.0.0.1", 0), HangsUp)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def plain(address: str, port: int, timeout: float, context: object) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=timeout)

    monkeypatch.setattr(calls.http.client, "HTTPSConnection", plain)
    monkeypatch.setattr(calls.Login, "context", lambda _: None)
    with calls.Api(calls.Login("127.0.0.1", "", "", "")) as client:
        yield client
    server.shutdown()
    server.server_close()


def test_a_read_on_an_idle_connection_that_the_server_has_closed_succeeds(api: calls.Api) -> None:
    assert [api.get("/"), api.get("/")] == [{}, {}]


def test_a_connection_that_closes_during_a_call_raises(api: calls.Api) -> None:
    assert api.call("GET", "/")[0] == 200
    with pytest.raises(OSError, match="closed connection"):
        api.call("GET", "/")
    assert api.call("GET", "/")[0] == 200
