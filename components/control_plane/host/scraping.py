"""What API servers write for the scraper, in a namespace of its own: its keys, and where their relays of metrics are.

Each host writes its own address into an EndpointSlice, because a cloud chooses the addresses of API servers. It removes
it when it stops, and those of hosts whose API server has had no lease for an hour: Kubernetes deletes the lease then.
"""

from __future__ import annotations

import http.client
from typing import Any

from .api import Api, ApiError

NAMESPACE = "menagerie-monitoring"
SECRET, AUTHORITIES = "scraper", "scraper-authorities"
SERVICE = "api-servers"
CERTIFICATE, KEY = "scraper.crt", "scraper.key"
"""Credentials of metrics-keys' unit."""
MANAGER = "metrics-keys"
SERVICE_LABEL, HOST_LABEL = "kubernetes.io/service-name", "kubernetes.io/hostname"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
LEASES = (
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    "?labelSelector=apiserver.kubernetes.io/identity%3Dkube-apiserver"
)
NOT_FOUND = 404


def path(host: str) -> str:
    """Return the path of a host's EndpointSlice in the API."""
    return f"{SLICES}/{SERVICE}-{host.lower()}"


def endpoint_slice(host: str, address: str, port: int) -> dict[str, Any]:
    """Return a host's EndpointSlice."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{SERVICE}-{host.lower()}",
            "namespace": NAMESPACE,
            "labels": {SERVICE_LABEL: SERVICE, HOST_LABEL: host},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "metrics", "port": port, "protocol": "TCP"}],
    }


class Addresses:
    """Keeps this host's EndpointSlice, and removes others'."""

    def __init__(self, api: Api, host: str, port: int) -> None:
        self._api, self._host = api, host
        self._own = endpoint_slice(host, api.host, port)

    def look(self) -> None:
        """Write this host's slice if it differs. Remove those of hosts that are gone."""
        live = self._live()
        slices = self._api.call("GET", f"{SLICES}?labelSelector={SERVICE_LABEL}%3D{SERVICE}")["items"]
        by_host = {_host(each): each for each in slices}
        # Without a lease, another host would remove it.
        if self._host in live and not _same(by_host.get(self._host), self._own):
            self._api.apply(path(self._host), self._own, MANAGER, force=True)
            print(f"{path(self._host)}: written", flush=True)
        for host in sorted(set(by_host) - live):
            self._remove(f"{SLICES}/{by_host[host]['metadata']['name']}")

    def leave(self) -> None:
        """Remove this host's slice, because the host or this program stops."""
        try:
            self._remove(path(self._host))
        except (ApiError, OSError, http.client.HTTPException) as error:
            print(f"{path(self._host)}: stays: {error}", flush=True)

    def _live(self) -> set[str]:
        """Return the hosts whose API servers have leases."""
        return {_host(each) for each in self._api.call("GET", LEASES)["items"]}

    def _remove(self, where: str) -> None:
        try:
            self._api.call("DELETE", where)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
        print(f"{where}: removed", flush=True)


def _host(thing: dict[str, Any]) -> str:
    return str((thing["metadata"].get("labels") or {}).get(HOST_LABEL, ""))


def _same(there: Any, ours: dict[str, Any]) -> bool:
    """Return whether a slice in the API sends the scraper where ours does."""
    return there is not None and all(there.get(name) == ours[name] for name in ("endpoints", "ports"))
