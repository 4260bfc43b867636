"""Messages to nf_tables over netlink: whole batches, which the kernel applies as one transaction, and lists.

The kernel's own interface, as in linux/netlink.h, nfnetlink.h and netfilter/nf_tables.h. Numbers of attributes are
big-endian, headers are in the host's order.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

NETFILTER = 12
NFTABLES = 10
IPV4 = 2
BATCH_BEGIN, BATCH_END = 0x10, 0x11
ERROR, DONE = 2, 3
REQUEST, MULTI, ACK, ROOT, CREATE = 1, 2, 4, 0x300, 0x400
"""Flags of a message. ROOT asks for a list. CREATE makes what is missing, and leaves what is there as it is."""
NESTED = 0x8000
BUFFER = 8 << 20
"""Bytes. A node's whole table fits into one transaction, which is one send."""
TIMEOUT_S = 10
_SNDBUFFORCE, _RCVBUFFORCE = 32, 33


class Message(NamedTuple):
    """A message of nf_tables. kind: NFT_MSG_*."""

    kind: int
    flags: int
    body: bytes
    about: str
    """What it does, for an error."""


class Answer(NamedTuple):
    kind: int
    attributes: dict[int, bytes]


def attribute(kind: int, value: bytes | str | int) -> bytes:
    """Return an attribute. Text ends with NUL; a number has 32 bits."""
    data = value.encode() + b"\0" if isinstance(value, str) else value
    data = struct.pack(">I", data & 0xFFFFFFFF) if isinstance(data, int) else data
    return struct.pack("=HH", len(data) + 4, kind) + data + b"\0" * (-len(data) % 4)


def nested(kind: int, *parts: bytes) -> bytes:
    return attribute(kind | NESTED, b"".join(parts))


def attributes(data: bytes) -> dict[int, bytes]:
    """Return an answer's attributes by number. Of repeated ones, the last."""
    return dict(pairs(data))


def pairs(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            raise ValueError("the kernel sent an attribute without a length")
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3


def text(value: bytes) -> str:
    return value.rstrip(b"\0").decode()


def number(value: bytes) -> int:
    return int.from_bytes(value, "big")


class Netlink:
    """A socket to nf_tables in this process's network namespace. OSError without the right to change it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETFILTER)
        for option in (_SNDBUFFORCE, _RCVBUFFORCE):
            self._socket.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", TIMEOUT_S, 0))
        self._socket.bind((0, 0))
        self._number = 0

    def close(self) -> None:
        self._socket.close()

    def commit(self, messages: Iterable[Message]) -> None:
        """Apply all messages as one transaction, or none. OSError with what the kernel refused."""
        sent: dict[int, str] = {}
        parts = [self._packed(BATCH_BEGIN, REQUEST, _head(0, NFTABLES))]
        listed = list(messages)
        for index, message in enumerate(listed):
            flags = message.flags | REQUEST | (ACK if index == len(listed) - 1 else 0)
            parts.append(self._packed(NFTABLES << 8 | message.kind, flags, _head(IPV4) + message.body))
            sent[self._number] = message.about
        if not sent:
            return
        parts.append(self._packed(BATCH_END, REQUEST, _head(0, NFTABLES)))
        self._socket.sendto(b"".join(parts), (0, 0))
        # The kernel has applied the batch when the send returns, so its answers are there.
        for kind, at, body in self._received(socket.MSG_DONTWAIT):
            code = -struct.unpack_from("=i", body)[0] if kind == ERROR else 0
            if code:
                self._drain()
                raise OSError(code, f"{os.strerror(code)}: {sent.get(at, 'the transaction')}")

    def listed(self, kind: int, body: bytes = b"", about: str = "") -> list[Answer]:
        """Return everything that a list has; nothing if what is asked about does not exist."""
        for _ in range(5):
            try:
                return list(self._list(kind, REQUEST | ROOT, body, about))
            except InterruptedError:
                continue
        raise OSError(errno.EBUSY, f"{about}: somebody changes it all the time")

    def one(self, kind: int, body: bytes = b"", about: str = "") -> Answer | None:
        """Return one answer, None if what is asked about does not exist."""
        return next(iter(self._list(kind, REQUEST | ACK, body, about)), None)

    def _list(self, kind: int, flags: int, body: bytes, about: str) -> list[Answer]:
        """InterruptedError if the list changed meanwhile."""
        self._drain()
        self._socket.sendto(self._packed(NFTABLES << 8 | kind, flags, _head(IPV4) + body), (0, 0))
        answers: list[Answer] = []
        for got, _, data in self._received(0):
            if got == DONE:
                return answers
            if got == ERROR:
                code = -struct.unpack_from("=i", data)[0]
                if code in (0, errno.ENOENT):
                    return answers
                if code == errno.EINTR:
                    raise InterruptedError
                raise OSError(code, f"{os.strerror(code)}: {about}")
            answers.append(Answer(got & 0xFF, attributes(data[4:])))
        raise OSError(errno.ETIMEDOUT, f"{about}: the kernel did not answer within {TIMEOUT_S} s")

    def _received(self, flags: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield (kind, number, body) of each message."""
        while True:
            try:
                data = self._socket.recv(1 << 18, flags)
            except BlockingIOError:
                return
            at = 0
            while at + 16 <= len(data):
                length, kind, more, counted, _ = struct.unpack_from("=IHHII", data, at)
                # NLM_F_DUMP_INTR: the list is of two different moments.
                if more & 0x10:
                    self._drain()
                    raise InterruptedError
                yield kind, counted, data[at + 16 : at + length]
                at += (length + 3) & ~3

    def _drain(self) -> None:
        try:
            while self._socket.recv(1 << 18, socket.MSG_DONTWAIT):
                pass
        except OSError:
            return

    def _packed(self, kind: int, flags: int, body: bytes) -> bytes:
        self._number += 1
        return struct.pack("=IHHII", 16 + len(body), kind, flags, self._number, 0) + body + b"\0" * (-len(body) % 4)


def _head(family: int, resource: int = 0) -> bytes:
    """Return struct nfgenmsg."""
    return struct.pack(">BBH", family, 0, resource)


def word(kind: int, value: Any) -> bytes:
    """Return an attribute with a number of 64 bits."""
    return attribute(kind, struct.pack(">Q", value))
