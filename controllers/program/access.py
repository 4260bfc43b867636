"""The API as the pod's ServiceAccount, for as long as the Lease is held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubernetes import client, config

from clients.api_client import ApiClient


class PodAccess:
    """check: called before whatever changes something; it raises where this process may not act (any more).

    The library reads the token again each minute: kubelets renew it (kubernetes.io, "Managing Service Accounts").
    Raises kubernetes' ConfigException outside a pod.
    """

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self._check = check

    def api(self, *, once: bool = False, connections: int | None = None) -> ApiClient:
        """As `clients.access.Access.api`."""
        configuration = client.Configuration()
        config.load_incluster_config(configuration)
        configuration.retries = False if once else None
        if connections:
            configuration.connection_pool_maxsize = connections
        return _Fenced(configuration, self._check)


class _Fenced(ApiClient):
    def __init__(self, configuration: client.Configuration, check: Callable[[], None]) -> None:
        super().__init__(configuration)
        self._check = check

    def request(self, method: str, *arguments: Any, **named: Any) -> Any:
        if method != "GET":
            self._check()
        return super().request(method, *arguments, **named)
