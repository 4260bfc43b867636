"""A relay of metrics with real TLS, fake programs behind it, and clients of all kinds, in this process."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cluster.metrics import relay
from cluster.metrics.host import relay as program
from components.control_plane import metrics_relay, scraper
from stacks import certificates
from stacks.certificates import Request, Signed, issue, new_authority
from tests.ports import free_port

CA, STRANGER = new_authority("kubernetes"), new_authority("kubernetes")
SCRAPER = Request(scraper.USER, dns_names=(relay.SCRAPER,), usages=("client",))
SERVER = Request(relay.NAME, dns_names=(scraper.API_SERVERS,), addresses=("127.0.0.1",), usages=("server",))
CONTENT = "text/plain; version=0.0.4"
Answer = Callable[[BaseHTTPRequestHandler], None]


def body(text: str) -> Answer:
    """Return an answer of a program that compresses if it may."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        is_gzip = "gzip" in handler.headers.get("Accept-Encoding", "")
        data = gzip.compress(text.encode()) if is_gzip else text.encode()
        handler.send_response(200)
        handler.send_header("Content-Type", CONTENT)
        if is_gzip:
            handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def endless(pause_s: float) -> Answer:
    """Return an answer that never ends, in pieces of 1 KiB. At most a minute, if nobody reads any more."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            handler.wfile.write(b"a 1\n" * 256)
            time.sleep(pause_s)

    return answer


@contextmanager
def upstream(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[Any]]]:
    """Run a program on 127.0.0.1. Yield its URL, and a list that gets the certificate of each client."""
    clients: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            clients.append(self.connection.getpeercert() if tls else None)  # type: ignore[attr-defined]
            answer(self)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}/metrics", clients
    finally:
        server.shutdown()
        server.server_close()


def serving(folder: Path, signed: Signed) -> ssl.SSLContext:
    """Return the context of a component: it asks for clients' certificates of `CA`, as components do."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.verify_mode = ssl.CERT_OPTIONAL
    made.load_verify_locations(cadata=CA.certificate)
    loaded(made, folder, signed)
    return made


def loaded(context: ssl.SSLContext, folder: Path, signed: Signed) -> None:
    pem = folder / f"{threading.get_ident()}-{time.monotonic_ns()}.pem"
    pem.write_text(signed.certificate + signed.private_key)
    context.load_cert_chain(pem)


def kubeconfig(signed: Signed) -> str:
    """Return what kubeadm writes, as far as it matters."""
    data = {"client-certificate-data": signed.certificate, "client-key-data": signed.private_key}
    return "".join(f"    {name}: {base64.b64encode(text.encode()).decode()}\n" for name, text in data.items())


def credentials(folder: Path, server: Signed | None = None) -> Path:
    """Write the credentials of the relay's unit."""
    own = server or issue(CA, SERVER)
    texts = {
        relay.CA: CA.certificate,
        relay.CERTIFICATE: own.certificate,
        relay.KEY: own.private_key,
        "kubeconfig": kubeconfig(issue(CA, Request(metrics_relay.USER, usages=("client",)))),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


@contextmanager
def running(folder: Path, upstreams: Mapping[str, str], unverified: tuple[str, ...] = ()) -> Iterator[int]:
    """Run a relay for these jobs; yield its port."""
    port = free_port()
    settings = json.loads(relay.settings("127.0.0.1", port, upstreams, unverified))
    server = program.Server(settings, credentials(folder))
    with ExitStack() as ends:
        ends.callback(server.server_close)
        ends.callback(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield port


def trusting(folder: Path, client: Signed | None) -> ssl.SSLContext:
    """Return a client's context, which verifies the relay by `CA`."""
    made = ssl.create_default_context(cadata=CA.certificate)
    if client:
        loaded(made, folder, client)
    return made


def ask(
    folder: Path,
    port: int,
    path: str,
    client: Signed | None,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    source: str = "127.0.0.1",
) -> tuple[int, dict[str, str], bytes]:
    """Return (status, headers, body). Raises OSError or HTTPException if there is no whole answer. source: address of the client."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", port, timeout=60, context=trusting(folder, client), source_address=(source, 0)
    )
    try:
        connection.request(method, path, headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read()
    finally:
        connection.close()


def expired(request: Request) -> Signed:
    """Return a certificate of `CA` that ended yesterday."""
    before = certificates.BACKDATE
    try:
        certificates.BACKDATE = timedelta(days=2)
        return issue(CA, replace(request, days=-1))
    finally:
        certificates.BACKDATE = before
