"""ConfigMaps that are written as a whole: with the resourceVersion that was read, so that what two write does not mix."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from operations.access import API_TIMEOUT_S
from operations.conflicts import until_settled


def read(api: client.ApiClient, namespace: str, name: str) -> client.V1ConfigMap | None:
    """None where there is none."""
    try:
        return client.CoreV1Api(api).read_namespaced_config_map(name, namespace, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None


def write(
    api: client.ApiClient, namespace: str, name: str, data: Mapping[str, str], found: client.V1ConfigMap | None
) -> None:
    """Make it, or replace what was found. ApiException with 409 where somebody else was quicker."""
    core = client.CoreV1Api(api)
    if found is None:
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=dict(data))
        core.create_namespaced_config_map(namespace, body, _request_timeout=API_TIMEOUT_S)
    else:
        found.data = dict(data)
        core.replace_namespaced_config_map(name, namespace, found, _request_timeout=API_TIMEOUT_S)


def publish(api: client.ApiClient, namespace: str, name: str, data: Mapping[str, str]) -> bool:
    """Have it hold just these; whether it was another. Raises ApiException and urllib3's HTTPError."""

    def attempt() -> bool:
        found = read(api, namespace, name)
        if found and (found.data or {}) == data:
            return False
        write(api, namespace, name, data, found)
        return True

    return until_settled(attempt)
