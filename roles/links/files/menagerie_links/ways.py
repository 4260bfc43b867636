"""Find the largest packet that a path carries whole, with packets that must not be fragmented."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

# <linux/in.h>, <linux/errqueue.h>, <linux/tcp.h>; Python has no names for most of them.
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IP_RECVERR = 10, 3, 11
ORIGIN_ICMP = 2
ICMP_HEADERS, TCP_HEADERS = 28, 40
LEAST = 576
TRIES = 3
# A lost packet costs the shortest of these, or four times an answer's time.
SHORTEST_S, PATIENCE_S, TLS_PATIENCE_S = 0.25, 1.0, 2.0


class Answer(NamedTuple):
    """The answer to a packet. reported: MTU of the next link, from a router, or from this host's own port (by "")."""

    arrived: bool
    seconds: float = 0.0
    reported: int = 0
    by: str = ""


class PathResult(NamedTuple):
    """The result for a path. largest: bytes of the largest packet that crossed; 0 if nothing answers.

    by: what reported the limit. held: TCP's ends agreed on this size, so larger packets weren't tested.
    """

    largest: int
    by: str = ""
    held: bool = False


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    return int(~words & 0xFFFF)


def ping(address: str, size: int, patience_s: float = PATIENCE_S) -> Answer:
    """Send one echo request of `size` bytes, IP header included, that must not be fragmented.

    IP_PMTUDISC_PROBE ignores the path MTU that the kernel has cached, so each answer is current.
    """
    ident, sequence = os.getpid() & 0xFFFF, int(time.monotonic() * 1000) & 0xFFFF
    body = bytes(size - ICMP_HEADERS)
    head = struct.pack("!BBHHH", 8, 0, 0, ident, sequence)
    head = struct.pack("!BBHHH", 8, 0, checksum(head + body), ident, sequence)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as end:
        end.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
        end.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        try:
            end.connect((address, 0))
            began = time.monotonic()
            end.send(head + body)
            while (left := began + patience_s - time.monotonic()) > 0:
                end.settimeout(left)
                got = end.recv(65536)
                at = (got[0] & 0xF) * 4
                if struct.unpack_from("!BxxxHH", got, at) == (0, ident, sequence):
                    return Answer(True, time.monotonic() - began)
        except TimeoutError:
            return Answer(False)
        except OSError as error:
            return _refusal(end) if error.errno == errno.EMSGSIZE else Answer(False)
    return Answer(False)


def _refusal(end: socket.socket) -> Answer:
    """Read the refusal from the error queue (ip(7), IP_RECVERR): sock_extended_err with the MTU, then its sender."""
    try:
        _, messages, _, _ = end.recvmsg(1, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
    except OSError:
        return Answer(False)
    for level, kind, data in messages:
        if (level, kind) == (socket.IPPROTO_IP, IP_RECVERR) and len(data) >= 24:
            _, origin, _, _, mtu = struct.unpack_from("=IBBBxI", data)
            return Answer(False, 0.0, mtu, socket.inet_ntoa(data[20:24]) if origin == ORIGIN_ICMP else "")
    return Answer(False)


def by_pings(address: str, expected: int) -> PathResult:
    """Find the largest packet, up to `expected`, that reaches an address that answers pings."""
    first = next((answer for _ in range(TRIES) if (answer := ping(address, 84)).arrived), None)
    if first is None:
        return PathResult(0)
    patience = min(PATIENCE_S, max(SHORTEST_S, 4 * first.seconds))
    refusal = Answer(False)

    def passes(size: int) -> bool:
        nonlocal refusal
        for _ in range(TRIES):
            answer = ping(address, size, patience)
            if answer.arrived:
                return True
            if answer.reported:
                refusal = answer
                return False
        return False

    if passes(expected):
        return PathResult(expected)
    own = f"{refusal.by} says so" if refusal.by else "this host's own port" if refusal.reported else ""
    if 84 < refusal.reported < expected and passes(refusal.reported) and not passes(refusal.reported + 1):
        return PathResult(refusal.reported, own)
    return PathResult(_bisect(passes, 84, expected), own)


def _handshake(address: str, port: int, most: int = 0) -> tuple[bool | None, int, int]:
    """Return (whether TLS answered, bytes of a full packet, the kernel's path MTU); None if TCP did not connect.

    Both directions carry full packets: a long list of protocols makes the first message longer than a packet, and the
    server's certificate does so for the answer. Clouds' load balancers answer no pings.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
        if most:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, most - TCP_HEADERS)
        end.settimeout(TLS_PATIENCE_S)
        try:
            end.connect((address, port))
        except OSError:
            return None, 0, 0
        with _context(_sizes(end)[0]).wrap_socket(end, do_handshake_on_connect=False) as secured:
            try:
                secured.do_handshake()
            except TimeoutError:
                return False, *_sizes(secured)
            except OSError:  # an answer that is not TLS counts too
                pass
            return True, *_sizes(secured)


def _context(longer_than: int) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    names = (f"x{number:03}".ljust(250, "-") for number in range(longer_than // 250 + 2))
    context.set_alpn_protocols(["h2", "http/1.1", *names])
    return context


def _sizes(end: socket.socket) -> tuple[int, int]:
    """Return (bytes of a full packet, path MTU) from tcp_info, whose snd_mss excludes the options of each packet."""
    tcp_info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    (options,) = struct.unpack_from("=B", tcp_info, 5)
    (segment,) = struct.unpack_from("=I", tcp_info, 16)
    (mtu,) = struct.unpack_from("=I", tcp_info, 60)
    return segment + TCP_HEADERS + (12 if options & 1 else 0), mtu


def by_tls(address: str, port: int, expected: int) -> PathResult:
    """Do the same for a server that answers only TLS."""
    came, size, mtu = _handshake(address, port)
    if came is False:  # a router may have needed the time to report that the first long packet was too long
        came, size, mtu = _handshake(address, port)
    if came is None:
        return PathResult(0)
    if came and mtu < expected:
        return PathResult(mtu, "a router on the way, or this host's own port, says so")
    if came:
        return PathResult(min(size, expected), held=size < expected)
    top = min(size, expected)

    def passes(size: int) -> bool:
        return bool(_handshake(address, port, size)[0])

    if not any(passes(LEAST) for _ in range(TRIES)):
        return PathResult(0)
    low = LEAST
    for _ in range(TRIES):
        low = _bisect(passes, low, top)
        # A handshake also fails on a busy server, so the size that ends the search must fail twice.
        if low == top or not passes(low + 1):
            break
        low += 1
    return PathResult(low, held=low == size < expected)


def _bisect(passes: Callable[[int], bool], low: int, high: int) -> int:
    """Return the largest size that passes, between one that does and one that does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def look(way: dict[str, Any], router: str) -> PathResult:
    """Test one path of the settings. One without an address leads to the host's own router."""
    address = way.get("address") or router
    if not address:
        return PathResult(0)
    if "port" in way:
        return by_tls(_address(address), way["port"], way["mtu"])
    return by_pings(address, way["mtu"])


def _address(name: str) -> str:
    try:
        return socket.gethostbyname(name)
    except OSError:
        return name


def verdict(way: dict[str, Any], result: PathResult) -> tuple[str, str]:
    """Return (error, note) for one path; both "" if packets can be as large as wanted."""
    if not result.largest:
        return "", f"{way['to']} ({way.get('address', 'no default route')}) doesn't answer: not tested"
    if result.largest >= way["mtu"]:
        return "", ""
    if result.held:
        limit = f"the other end or a router limits TCP to packets of {result.largest} (MSS)"
        return "", f"to {way['to']}: {limit}; longer ones aren't tested"
    by = f" ({result.by})" if result.by else ""
    place = f"{way['to']} ({way.get('address', 'default route')})"
    most = f"{result.largest} is the most that does{by}"
    return f"packets of {way['mtu']} bytes don't reach {place} whole; {most}; {way['setting']} says {way['mtu']}", ""
