"""Servers on loopback for tests."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stacks import certificates
from stacks.certificates import Request


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server. Provide its host:port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tls_of(authority: certificates.Signed, folder: Path) -> ssl.SSLContext:
    """Return a server's TLS context with a certificate of the authority for 127.0.0.1."""
    leaf = certificates.issue(authority, Request("api", addresses=("127.0.0.1",)))
    (folder / "leaf").write_text(leaf.certificate + leaf.private_key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "leaf")
    return tls
