"""Reads what a TLS server sends before it authenticates its client: its certificate and trusted client authorities.

No library of Debian's Python shows the second. Up to TLS 1.2, both are unencrypted (RFC 5246, 7.4.2 and 7.4.4).
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import Iterator

_ALERT, _HANDSHAKE = 21, 22
_CERTIFICATE, _CERTIFICATE_REQUEST, _DONE = 11, 13, 14
_HEAD = 5


@dataclass(frozen=True)
class Greeting:
    """certificate: the server's, in DER. authorities: names of those whose clients it trusts, in DER."""

    certificate: bytes
    authorities: tuple[bytes, ...]


def greeting(host: str, port: int, timeout_s: float = 10) -> Greeting:
    """Start a handshake and stop after the server's first messages. OSError if it sends others."""
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.sendall(_hello(host))
        messages = dict(_messages(connection))
    try:
        certificate = next(_vectors(_vector(messages[_CERTIFICATE], 3)[0], 3))
        rest = _vector(_vector(messages[_CERTIFICATE_REQUEST], 1)[1], 2)[1]
        return Greeting(certificate, tuple(_vectors(_vector(rest, 2)[0], 2)))
    except (KeyError, StopIteration):
        raise OSError(f"{host}:{port} shows no certificate, or asks for none") from None


def _hello(host: str) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    outgoing = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def _messages(connection: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Yield type and content of each message up to ServerHelloDone. A message may span several records."""
    said = b""
    while True:
        kind, *_, high, low = _exactly(connection, _HEAD)
        body = _exactly(connection, high << 8 | low)
        if kind != _HANDSHAKE:
            raise OSError(f"the server ended the handshake with {body.hex() if kind == _ALERT else kind}")
        said += body
        while len(said) >= 4 and len(said) >= 4 + int.from_bytes(said[1:4], "big"):
            content, rest = _vector(said[1:], 3)
            if said[0] == _DONE:
                return
            yield said[0], content
            said = rest


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise OSError("the server closed the connection in its greeting")
        data += more
    return data


def _vector(data: bytes, size: int) -> tuple[bytes, bytes]:
    """Return the content after a length of `size` bytes, and the rest."""
    end = size + int.from_bytes(data[:size], "big")
    return data[size:end], data[end:]


def _vectors(data: bytes, size: int) -> Iterator[bytes]:
    while data:
        content, data = _vector(data, size)
        yield content
