"""ConfigMaps that are written as a whole, with the resourceVersion that was read: concurrent writes do not mix.

Their version (`cluster.shared`) is an annotation: programs that read only the data need not know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.conflicts import until_settled
from cluster import shared

VERSIONS: Mapping[str, int] = {}
"""ConfigMap -> its version. Those not listed have version 1."""


def read(api: client.ApiClient, namespace: str, name: str) -> client.V1ConfigMap | None:
    """Return the ConfigMap, None if it does not exist. Raises NewerDataError."""
    try:
        config_map = client.CoreV1Api(api).read_namespaced_config_map(name, namespace, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None
    version = (config_map.metadata.annotations or {}).get(shared.ANNOTATION)
    shared.check(f"ConfigMap {namespace}/{name}", version, VERSIONS.get(name, 1))
    return config_map


def write(
    api: client.ApiClient, namespace: str, name: str, data: Mapping[str, str], existing: client.V1ConfigMap | None
) -> None:
    """Create it, or replace `existing`, the object that was read. Raises ApiException 409 if another writer was faster."""
    core, version = client.CoreV1Api(api), {shared.ANNOTATION: str(VERSIONS.get(name, 1))}
    if existing is None:
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, annotations=version), data=dict(data))
        core.create_namespaced_config_map(namespace, body, _request_timeout=API_TIMEOUT_S)
    else:
        existing.data = dict(data)
        existing.metadata.annotations = (existing.metadata.annotations or {}) | version
        core.replace_namespaced_config_map(name, namespace, existing, _request_timeout=API_TIMEOUT_S)


def publish(api: client.ApiClient, namespace: str, name: str, data: Mapping[str, str]) -> bool:
    """Make `data` its whole content. Return whether it changed. Raises ApiException, urllib3's HTTPError and
    NewerDataError."""

    def attempt() -> bool:
        current = read(api, namespace, name)
        if current and (current.data or {}) == data:
            return False
        write(api, namespace, name, data, current)
        return True

    return until_settled(attempt)
