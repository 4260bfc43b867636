"""The gRPC server: TLS, a deadline, and always an answer."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from google.protobuf.message import DecodeError

from cluster.errors import RefusedError
from cluster.reading import UnreadableError, read_bytes
from controllers.expander import wire
from controllers.expander.choose import Choice, choose
from controllers.expander.offers import PriceOf, read

_LONGEST = 128 << 20
"""Bytes of a request; cluster-autoscaler accepts answers of this size."""
_AT_ONCE = 4
DEADLINE_S = 3.0
"""cluster-autoscaler waits five seconds (`gRPCTimeout` of its client), then decides without an answer."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tls:
    """PEM files. clients: of the CA that must have signed clients' certificates, None for any client."""

    certificate: Path
    key: Path
    clients: Path | None = None

    def read(self) -> tuple[tuple[bytes, bytes], bytes | None]:
        """Return ((key, certificate), CA of clients). Errors: raises RefusedError if a file can't be read."""
        try:
            pair = (read_bytes(self.key), read_bytes(self.certificate))
            return pair, read_bytes(self.clients) if self.clients else None
        except UnreadableError as error:
            raise RefusedError(str(error), code="expander") from None


class Expander:
    """Answers requests, one at a time. If one is in progress or time is up, the answer has all offers, so the next expander decides."""

    def __init__(self, price_of: PriceOf, deadline_s: float = DEADLINE_S) -> None:
        self._price_of = price_of
        self._deadline_s = deadline_s
        self._thinker = ThreadPoolExecutor(1, "thinker")
        self._busy = threading.Lock()

    def answer(self, request: Any, context: Any = None) -> Any:
        """Return the best options of a `wire.Request`, or all of them if undecided, so that the next expander decides."""
        start_s = time.monotonic()
        choice = self._choice(request)
        response = wire.Response()
        for option in request.options:
            if choice is None or option.nodeGroupId in choice.ids:
                reason = choice.reasons.get(option.nodeGroupId, "") if choice else ""
                response.options.add(nodeGroupId=option.nodeGroupId, nodeCount=option.nodeCount, debug=reason)
        if choice is not None:
            chosen = "; ".join(f"{id_}: {choice.reasons[id_]}" for id_ in choice.ids)
            action = "chose" if choice.decided else "leaves the choice to the next expander"
            took_s = time.monotonic() - start_s
            log.info("%s of %d offers, in %.2f s: %s", action, len(request.options), took_s, chosen)
        return response

    def _choice(self, request: Any) -> Choice | None:
        if not self._busy.acquire(blocking=False):
            log.warning("leaves the choice to the next expander: an earlier request is still in progress")
            return None
        thought: Future[Choice] = self._thinker.submit(self._think, request)
        try:
            return thought.result(self._deadline_s)
        except TimeoutError:
            log.warning("leaves the choice to the next expander: no result within %.1f s", self._deadline_s)
        except (DecodeError, ValueError) as error:
            log.error("leaves the choice to the next expander: the request can't be read: %r", error)
        except (ArithmeticError, LookupError):
            log.exception("leaves the choice to the next expander: the planner failed")
        return None

    def _think(self, request: Any) -> Choice:
        try:
            return choose(*read(request, self._price_of))
        finally:
            self._busy.release()

    def close(self) -> None:
        """Accept no more requests. One in progress finishes on its own."""
        self._thinker.shutdown(wait=False, cancel_futures=True)


def serve(expander: Expander, address: str, tls: Tls) -> tuple[grpc.Server, int]:
    """Start the server; return it and its port. address: host:port; port 0 takes any free one.

    Errors: raises RefusedError if the files can't be read or the address is in use.
    """
    handlers = {
        wire.METHOD: grpc.unary_unary_rpc_method_handler(
            expander.answer,
            request_deserializer=wire.Request.FromString,
            response_serializer=wire.Response.SerializeToString,
        )
    }
    server = grpc.server(
        ThreadPoolExecutor(_AT_ONCE, "expander"),
        handlers=[grpc.method_handlers_generic_handler(wire.SERVICE, handlers)],
        options=[("grpc.max_receive_message_length", _LONGEST), ("grpc.so_reuseport", 0)],
    )
    try:
        port = server.add_secure_port(address, _credentials(tls))
    except RuntimeError as error:
        raise RefusedError(f"can't listen on {address}: {error}", code="expander") from None
    server.start()
    return server, port


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    """Return credentials that are read again for each connection, so renewed certificates take effect. A half-written pair is ignored."""
    last = tls.read()

    def again() -> Any:
        nonlocal last
        try:
            now = tls.read()
            _check_pair(now[0])
        except (RefusedError, ValueError) as error:
            log.error("keeps the previous certificate: %s", error)
            return None
        if now == last:
            return None
        last = now
        return _configuration(now)

    try:
        _check_pair(last[0])
    except ValueError as error:
        raise RefusedError(
            f"{tls.certificate} and {tls.key} are not a certificate and its key: {error}", code="expander"
        ) from None
    return grpc.dynamic_ssl_server_credentials(_configuration(last), again, tls.clients is not None)


def _configuration(files: tuple[tuple[bytes, bytes], bytes | None]) -> Any:
    pair, clients = files
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=clients)


def _check_pair(pair: tuple[bytes, bytes]) -> None:
    """Check a (key, certificate) pair. Errors: raises ValueError unless the key belongs to the certificate."""
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    certified = x509.load_pem_x509_certificate(pair[1]).public_key().public_bytes(*form)
    if load_pem_private_key(pair[0], None).public_key().public_bytes(*form) != certified:
        raise ValueError("the key belongs to another certificate")
