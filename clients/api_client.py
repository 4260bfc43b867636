"""The Kubernetes library's client: connections, TLS, credentials, and typed calls that read or write one object.

Importing this module takes 40 MB: all of Kubernetes' models. Lists and plain objects: `clients.kube`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client import rest
from kubernetes.client.exceptions import ApiException


class ApiClient(client.ApiClient):  # type: ignore[misc]  # the library has no types
    """The library's client for a server.

    may_change: called before every request that changes something, typed or not; it raises if the request must not be
    sent.
    """

    def __init__(self, configuration: client.Configuration, may_change: Callable[[], None] | None = None) -> None:
        super().__init__(configuration)
        self.rest_client = _Connections(configuration)
        if may_change:
            self.rest_client.pool_manager = _Fenced(self.rest_client.pool_manager, may_change)


class _Connections(rest.RESTClientObject):  # type: ignore[misc]
    """The library's connections, fixed to raise ApiException when TLS fails.

    kubernetes 36 decodes the body of every ApiException. If the TLS handshake fails (an API server that is being
    stopped), there is no body, and the resulting AttributeError would escape every caller that waits for the API.
    """

    def request(self, *arguments: Any, **named: Any) -> Any:
        try:
            return super().request(*arguments, **named)
        except ApiException as error:
            error.body = error.body or b""
            raise


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
