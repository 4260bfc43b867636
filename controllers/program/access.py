"""Access to the API as the pod's ServiceAccount, while the Lease is held."""

from __future__ import annotations

from collections.abc import Callable

from kubernetes import client, config

from clients.api_client import ApiClient


class PodAccess:
    """Access with the pod's ServiceAccount.

    check: called before every request that changes something; it raises if this process may not act (any more).

    The library reads the token again every minute, because kubelets renew it (kubernetes.io, "Managing Service Accounts").
    Errors: raises kubernetes' ConfigException outside a pod.
    """

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self.check = check

    def api(self, *, once: bool = False, connections: int | None = None) -> ApiClient:
        """See `clients.access.Access.api`."""
        configuration = client.Configuration()
        config.load_incluster_config(configuration)
        configuration.retries = False if once else None
        if connections:
            configuration.connection_pool_maxsize = connections
        return ApiClient(configuration, self.check)
