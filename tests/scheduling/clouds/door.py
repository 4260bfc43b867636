"""The only way out for the clouds' libraries: a proxy that terminates TLS for every host, logs requests and injects faults.

So the libraries behave as with a real cloud: they use its host names, TLS, and the proxy from the environment.
"""

from __future__ import annotations

import http.server
import json
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.strict_certificates import strict

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Request:
    """A request. path: with the query. headers: names in lower case."""

    host: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def with_body(self, body: bytes) -> Request:
        return replace(self, headers={**self.headers, "content-length": str(len(body))}, body=body)


@dataclass(frozen=True)
class Response:
    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


Upstream = Callable[[Request], Response]
Fault = Callable[[Request], "Response | str | None"]
"""Returns a response, "lost" (execute the request, drop the answer), "dead" (neither), or None (no fault for this request)."""


def json_response(status: int, content: Any, **headers: str) -> Response:
    """Return a JSON response. headers: `retry_after` means Retry-After."""
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return Response(status, json.dumps(content), {"Content-Type": "application/json; charset=utf-8", **named})


def once(fault: Fault) -> Fault:
    """Return a fault that applies only the first time."""
    done: list[object] = []

    def first(request: Request) -> Response | str | None:
        result = None if done else fault(request)
        if result is not None:
            done.append(result)
        return result

    return first


class Trust:
    """A CA, and a certificate for every requested host."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "clouds of tests")])
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._lock = threading.Lock()
        own = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0))
        self.bundle = folder / "ca.pem"
        self.bundle.write_bytes(own)

    def context(self, host: str) -> ssl.SSLContext:
        with self._lock:
            if host not in self._contexts:
                self._contexts[host] = self._make_context(host)
            return self._contexts[host]

    def identity(self, name: str, key: Key) -> bytes:
        """Return a key with its certificate, in PEM."""
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        is_address = name.replace(".", "").isdigit()
        known_as = x509.IPAddress(ip_address(name)) if is_address else x509.DNSName(name)
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        signed = self._signed(subject, key, x509.SubjectAlternativeName([known_as]))
        return key.private_bytes(serialization.Encoding.PEM, *form) + signed

    def _make_context(self, host: str) -> ssl.SSLContext:
        file = self._folder / f"{host}.pem"
        file.write_bytes(self.identity(host, ec.generate_private_key(ec.SECP256R1())))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _signed(self, subject: x509.Name, key: Key, extension: x509.ExtensionType) -> bytes:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=True)
        )
        is_authority = isinstance(extension, x509.BasicConstraints)
        builder = strict(builder, key.public_key(), self._key.public_key(), is_authority=is_authority)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@dataclass
class Door:
    """The proxy's state. at: its host and port."""

    upstream: Upstream
    faults: list[Fault] = field(default_factory=list)
    log: list[Request] = field(default_factory=list)
    at: str = ""

    def answer(self, request: Request) -> Response | None:
        self.log.append(request)
        for fault in self.faults:
            result = fault(request)
            if result == "lost":
                self.upstream(request)
            if isinstance(result, str):
                return None
            if result is not None:
                return result
        return self.upstream(request)


@contextmanager
def served(door: Door, trust: Trust) -> Iterator[Door]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        tunnel = ""

        def do_CONNECT(self) -> None:
            host = self.path.rpartition(":")[0]
            self.send_response(200)
            self.end_headers()
            self.request = trust.context(host).wrap_socket(self.request, server_side=True)
            self.setup()
            self.tunnel, self.close_connection = host, False

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            at = urllib.parse.urlsplit(self.path)
            host = self.tunnel or at.hostname or self.headers["Host"].partition(":")[0]
            path = urllib.parse.urlunsplit(("", "", at.path, at.query, ""))
            headers = {name.lower(): value for name, value in self.headers.items()}
            response = door.answer(Request(host, self.command, path, headers, body))
            if response is None:
                self.close_connection = True
                return
            data = response.body.encode()
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _answer

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    door.at = f"127.0.0.1:{server.server_port}"
    try:
        yield door
    finally:
        server.shutdown()
        server.server_close()
