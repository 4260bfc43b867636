"""Clients of an API server for benches: one connection each, kept open."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from components.control_plane.ports import API_PORT

TIMEOUT_S = 65.0
"""A little more than the API server's own limit for a request."""
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Login:
    """How a client reaches the API as one user. It can be passed to another process."""

    address: str
    ca: str
    certificate: str
    key: str

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.certificate, self.key)
        return context


class Api:
    """One connection, reopened after an error."""

    def __init__(self, login: Login) -> None:
        self._connection = http.client.HTTPSConnection(
            login.address, API_PORT, timeout=TIMEOUT_S, context=login.context()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, bytes]:
        """Return (HTTP status, body). OSError if there is no answer."""
        data = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, data, {"Content-Type": kind})
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            self._connection.close()
            raise ConnectionError(str(error)) from error
        except OSError:
            self._connection.close()
            raise

    def get(self, path: str) -> Any:
        """Return the object or list at a path. OSError if the API refuses."""
        return json.loads(self.text(path))

    def text(self, path: str) -> str:
        """Return the text at a path. OSError if the API refuses."""
        # Servers close idle connections; an API server does after 90 s.
        self._connection.close()
        status, body = self.call("GET", path)
        if status != http.client.OK:
            raise ConnectionError(f"GET {path}: {status} {body[:300].decode()}")
        return body.decode()
