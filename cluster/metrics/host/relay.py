"""metrics-relay: passes on the metrics of programs on this host, which listen on 127.0.0.1, to the cluster's scraper.

    menagerie_relay.py SETTINGS

A client needs a certificate of `ca.crt` for clients, whose only alternative name is the scraper's. GET /metrics/JOB asks
the program of that job, by a new connection each time, and passes its answer on piece by piece. A piece too many, or too
late, ends the connection in the middle of an answer, which the client notices: the last chunk is missing.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import socket
import socketserver
import ssl
import sys
import tempfile
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

CONNECTIONS, OF_ONE_ADDRESS = 64, 16
"""At the same time. Packets of all pods of a worker have its address."""
HANDSHAKE_S = 5
"""For a whole handshake. Nobody without the certificate holds a connection for longer."""
WAIT_S = 10
"""For a program to send something, and for the client to take it."""
LONGEST_S = 25
"""For a whole answer. A scrape has 30 s."""
MOST_BYTES = 64 * 2**20
"""Of an answer, as the program sends it."""
PIECE_BYTES = 64 * 2**10
OK = 200


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Upstream(NamedTuple):
    """A program on this host. tls: None without TLS."""

    job: str
    url: str
    tls: ssl.SSLContext | None

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection, which is opened by the first request."""
        parts = urllib.parse.urlsplit(self.url)
        if self.tls:
            return http.client.HTTPSConnection(parts.netloc, timeout=WAIT_S, context=self.tls)
        return http.client.HTTPConnection(parts.netloc, timeout=WAIT_S)

    def ask(self, connection: http.client.HTTPConnection, is_gzip: bool) -> http.client.HTTPResponse:
        """Return the answer, before its body. Refusal if there is none that can be passed on."""
        try:
            headers = {"Accept-Encoding": "gzip" if is_gzip else "identity"}
            connection.request("GET", urllib.parse.urlsplit(self.url).path, headers=headers)
            answer = connection.getresponse()
        except socket.timeout:
            raise Refusal(504, f"{self.job} does not answer within {WAIT_S} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise Refusal(502, f"{self.job} does not answer: {error}") from None
        if answer.status != OK:
            raise Refusal(502, f"{self.job} answers {answer.status} {answer.reason}")
        return answer


class Server(socketserver.ThreadingTCPServer):
    """Has a thread for each connection, which also does its TLS. client: the alternative name of the scraper."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = CONNECTIONS

    def __init__(self, settings: dict[str, Any], credentials: Path) -> None:
        self.client: str = settings["client"]
        self.upstreams = {f"/metrics/{each.job}": each for each in upstreams(settings, credentials)}
        self._tls = context(credentials)
        self._open: dict[str, int] = {}
        self._lock = threading.Lock()
        super().__init__((settings["address"], int(settings["port"])), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._enter(client_address[0]):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._leave(client_address[0])
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            request.settimeout(HANDSHAKE_S)
            with self._tls.wrap_socket(request, server_side=True) as secured:
                secured.settimeout(WAIT_S)
                self.finish_request(secured, client_address)
        except (OSError, ValueError) as error:
            say(client_address[0], str(error))
        finally:
            self.shutdown_request(request)
            self._leave(client_address[0])

    def _enter(self, address: str) -> bool:
        """Return whether there is room for a connection, and count it."""
        with self._lock:
            own = self._open.get(address, 0)
            if own >= OF_ONE_ADDRESS or sum(self._open.values()) >= CONNECTIONS:
                return False
            self._open[address] = own + 1
            return True

    def _leave(self, address: str) -> None:
        with self._lock:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]


class Handler(BaseHTTPRequestHandler):
    """One request for each connection."""

    server: Server
    connection: ssl.SSLSocket
    protocol_version = "HTTP/1.1"
    server_version = "metrics-relay"
    sys_version = ""

    def do_GET(self) -> None:
        self.close_connection = True
        try:
            self._refuse_strangers()
            if self.path not in self.server.upstreams:
                raise Refusal(404, f"there is only {', '.join(self.server.upstreams)}")
            self._pass_on(self.server.upstreams[self.path])
        except Refusal as refusal:
            say(self.client_address[0], f"{self.path!r}: {refusal}")
            self._answer(refusal)

    def _refuse_strangers(self) -> None:
        names = (self.connection.getpeercert() or {}).get("subjectAltName", ())
        if names != (("DNS", self.server.client),):
            raise Refusal(403, "this certificate is not the scraper's")

    def _answer(self, refusal: Refusal) -> None:
        text = f"{refusal}\n".encode()
        self.send_response(refusal.status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)

    def _pass_on(self, upstream: Upstream) -> None:
        ends = time.monotonic() + LONGEST_S
        connection = upstream.connect()
        try:
            answer = upstream.ask(connection, "gzip" in self.headers.get("Accept-Encoding", ""))
            self._begin(answer)
            reason = self._pieces(answer, ends)
        finally:
            connection.close()
        if reason:
            say(self.client_address[0], f"{upstream.job}: ended, because {reason}")
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _begin(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(OK)
        for name in ("Content-Type", "Content-Encoding"):
            if answer.headers.get(name):
                self.send_header(name, answer.headers[name])
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()

    def _pieces(self, answer: http.client.HTTPResponse, ends: float) -> str:
        """Pass on the body. Return why it is not whole, "" if it is."""
        passed = 0
        while True:
            try:
                piece = answer.read1(PIECE_BYTES)
            except (OSError, http.client.HTTPException) as error:
                return f"the rest does not come: {error!r}"
            if not piece:
                return f"{answer.length} bytes are missing" if answer.length else ""
            passed += len(piece)
            if passed > MOST_BYTES:
                return f"it has more than {MOST_BYTES} bytes"
            if time.monotonic() > ends:
                return f"it takes longer than {LONGEST_S} s"
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Log nothing: refusals say more."""

    def log_message(self, format: str, *args: Any) -> None:
        say(self.client_address[0], repr(format % args))


def context(credentials: Path) -> ssl.SSLContext:
    """Return the server's context. A session never outlives its connection: each one is verified."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.num_tickets = 0
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(str(credentials / "ca.crt"))
    made.load_cert_chain(str(credentials / "relay.crt"), str(credentials / "relay.key"))
    return made


def upstreams(settings: dict[str, Any], credentials: Path) -> list[Upstream]:
    """Return the programs. Those with TLS get the client certificate of the kubeconfig."""
    contexts: dict[bool, ssl.SSLContext] = {}
    made = []
    for job, url in settings["upstreams"].items():
        tls = None
        if url.startswith("https:"):
            is_verified = job not in settings["unverified"]
            tls = contexts.get(is_verified) or towards(credentials, is_verified)
            contexts[is_verified] = tls
        made.append(Upstream(job, url, tls))
    return made


def towards(credentials: Path, is_verified: bool) -> ssl.SSLContext:
    """Return the context for programs with TLS.

    Who answers on this host's own port gets no more than a proof that this program has a key. So a program that makes its
    certificate at each start need not be verified.
    """
    made = ssl.create_default_context(cafile=str(credentials / "ca.crt"))
    if not is_verified:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    text = (credentials / "kubeconfig").read_text()
    # ssl loads a client certificate only from a file: in a private /tmp, and deleted at once.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
        pem.write("".join(decoded(text, f"client-{name}-data") for name in ("certificate", "key")))
        pem.flush()
        made.load_cert_chain(pem.name)
    return made


def decoded(text: str, name: str) -> str:
    """Return a base64 field of a kubeconfig, decoded. ValueError if it is missing."""
    match = re.search(rf"^\s*{name}: *\"?([^\s\"]+)", text, re.MULTILINE)
    if not match:
        raise ValueError(f"the kubeconfig has no {name}")
    return base64.b64decode(match[1]).decode()


def say(address: str, text: str) -> None:
    print(f"{address}: {text}", flush=True)


def main() -> None:
    try:
        settings = json.loads(Path(sys.argv[1]).read_text())
        server = Server(settings, Path(os.environ["CREDENTIALS_DIRECTORY"]))
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"metrics-relay can't start: {error!r}")
    server.serve_forever()


if __name__ == "__main__":
    main()
