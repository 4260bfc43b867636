"""ConfigMaps that are written as a whole: with the resourceVersion that was read, so that what two write does not mix.

Their version (`cluster.shared`) is an annotation, which programs that read the data alone need not know.
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
"""ConfigMap -> its version; of those that are not here, 1."""


def read(api: client.ApiClient, namespace: str, name: str) -> client.V1ConfigMap | None:
    """None where there is none. NewerDataError."""
    try:
        found = client.CoreV1Api(api).read_namespaced_config_map(name, namespace, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None
    said = (found.metadata.annotations or {}).get(shared.ANNOTATION)
    shared.check(f"ConfigMap {namespace}/{name}", said, VERSIONS.get(name, 1))
    return found


def write(
    api: client.ApiClient, namespace: str, name: str, data: Mapping[str, str], found: client.V1ConfigMap | None
) -> None:
    """Make it, or replace what was found. ApiException with 409 where somebody else was quicker."""
    core, version = client.CoreV1Api(api), {shared.ANNOTATION: str(VERSIONS.get(name, 1))}
    if found is None:
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, annotations=version), data=dict(data))
        core.create_namespaced_config_map(namespace, body, _request_timeout=API_TIMEOUT_S)
    else:
        found.data = dict(data)
        found.metadata.annotations = (found.metadata.annotations or {}) | version
        core.replace_namespaced_config_map(name, namespace, found, _request_timeout=API_TIMEOUT_S)


def publish(api: client.ApiClient, namespace: str, name: str, data: Mapping[str, str]) -> bool:
    """Have it hold just these; whether it was another. Raises ApiException, urllib3's HTTPError and NewerDataError."""

    def attempt() -> bool:
        found = read(api, namespace, name)
        if found and (found.data or {}) == data:
            return False
        write(api, namespace, name, data, found)
        return True

    return until_settled(attempt)
