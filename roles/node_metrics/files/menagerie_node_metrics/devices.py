"""Which pod has which device, from the kubelet: one gRPC call on its socket, by the standard library.

The kubelet's API `v1.PodResourcesLister` is stable since Kubernetes 1.28. gRPC is HTTP/2 (RFC 9113) with one message in each
direction, after a byte for compression and four for its length ("gRPC over HTTP2"). Headers are sent without compression
(RFC 7541, 6.2.2), and those of the answer are not read: without a message, the call has failed.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

from . import Unanswered

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
VENDOR = "nvidia.com/"
PATIENCE_S = 10.0
LARGEST = 1 << 24
"""Bytes of an answer; 110 pods with 8 devices each are less than 1 MiB."""
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS, _PADDED = 1, 1, 4, 8
_INITIAL_WINDOW_SIZE = 4
# How a field's value is written ("Protocol Buffers, Encoding"); the last are numbers of fixed size in bytes.
_NUMBER, _WITH_LENGTH, _FIXED = 0, 2, {1: 8, 5: 4}
_CALL = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/v1.PodResourcesLister/List"),
    (":authority", "localhost"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
)


def pods(path: str = SOCKET, patience_s: float = PATIENCE_S) -> dict[str, list[tuple[str, str]]]:
    """Return device -> (namespace, name) of the pods that have it. Raises Unanswered if the kubelet does not answer."""
    try:
        return assigned(_ask(path, patience_s))
    except (OSError, ValueError) as error:
        raise Unanswered(f"{path}: {error}") from None


def assigned(message: bytes) -> dict[str, list[tuple[str, str]]]:
    """Parse a ListPodResourcesResponse (api.proto): device -> pods. Raises ValueError if it is cut off."""
    by_device: dict[str, list[tuple[str, str]]] = {}
    for pod in _parts(message, 1):
        name, namespace = (b"".join(_parts(pod, number)).decode() for number in (1, 2))
        for container in _parts(pod, 3):
            for devices in _parts(container, 2):
                if b"".join(_parts(devices, 1)).decode().startswith(VENDOR):
                    for device in _parts(devices, 2):
                        # A GPU that the plugin shares has a number after its UUID.
                        by_device.setdefault(device.decode().partition("::")[0], []).append((namespace, name))
    return {device: sorted(set(its)) for device, its in by_device.items()}


def _parts(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the values of a message's field that have a length: texts, and messages in it."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _NUMBER:
            _, at = _varint(message, at)
            continue
        length, at = _varint(message, at) if kind == _WITH_LENGTH else (_FIXED.get(kind, LARGEST), at)
        if at + length > len(message):
            raise ValueError("the kubelet's answer is no message of its API")
        if kind == _WITH_LENGTH and key >> 3 == number:
            yield message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, and where the next value begins."""
    value = shift = 0
    while at < len(message) and shift < 64:
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 0x80:
            return value, at
    raise ValueError("the kubelet's answer is cut off")


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _ask(path: str, patience_s: float) -> bytes:
    """Return the message of the answer. Raises OSError or ValueError."""
    headers = b"".join(b"\0" + b"".join(bytes([len(word)]) + word.encode() for word in header) for header in _CALL)
    hello = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(_SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW_SIZE, LARGEST))
        + _frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST))
        + _frame(_HEADERS, _END_HEADERS, 1, headers)
        + _frame(_DATA, _END_STREAM, 1, bytes(5))
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(patience_s)
        connection.connect(path)
        connection.sendall(hello)
        body = _answer(connection, time.monotonic() + patience_s)
    if len(body) < 5 or body[0] or len(body) - 5 != int.from_bytes(body[1:5], "big"):
        raise ValueError("the kubelet refused, or its answer is compressed or cut off")
    return body[5:]


def _answer(connection: socket.socket, deadline: float) -> bytes:
    """Return the data of the first stream."""
    body = bytearray()
    while len(body) <= LARGEST:
        head = _exactly(connection, 9, deadline)
        length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        payload = _exactly(connection, length, deadline)
        if kind in (_RST_STREAM, _GOAWAY):
            raise ValueError("the kubelet ended the call")
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            connection.sendall(_frame(kind, _ACK, 0, b"" if kind == _SETTINGS else payload))
        if kind == _DATA:
            body += payload[1 : length - payload[0]] if flags & _PADDED and payload else payload
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            return bytes(body)
    raise ValueError(f"the kubelet's answer is longer than {LARGEST} bytes")


def _exactly(connection: socket.socket, length: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < length:
        if time.monotonic() > deadline:
            raise TimeoutError("no answer in time")
        part = connection.recv(min(length - len(received), 1 << 16))
        if not part:
            raise ConnectionError("the kubelet closed the connection")
        received += part
    return bytes(received)
