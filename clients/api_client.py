"""The Kubernetes library's client: connections, TLS, credentials, and typed calls that read or write one object.

Importing this module takes 40 MB: all of Kubernetes' models. Lists and plain objects: `clients.kube`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import urllib3
from kubernetes import client


class ApiClient(client.ApiClient):  # type: ignore[misc]  # mypy skips the library: pyproject.toml
    """The library's client for a server.

    may_change: called before every request that changes something, typed or not; it raises if the request must not be
    sent.
    """

    def __init__(self, configuration: client.Configuration, may_change: Callable[[], None] | None = None) -> None:
        super().__init__(configuration)
        if may_change:
            self.rest_client.pool_manager = _Fenced(self.rest_client.pool_manager, may_change)


class _Fenced:
    """A connection pool that checks before each request that changes something."""

    def __init__(self, pool: urllib3.PoolManager, may_change: Callable[[], None]) -> None:
        self._pool, self._may_change = pool, may_change

    def request(self, method: str, url: str, **options: Any) -> urllib3.BaseHTTPResponse:
        if method != "GET":
            self._may_change()
        return self._pool.request(method, url, **options)

    def clear(self) -> None:
        self._pool.clear()
