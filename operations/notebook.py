"""What verbs remember of a cluster, in ConfigMaps of kube-system: whoever looks from any machine sees the same.

It is in etcd, so it is in its backups, and it ends with the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from operations.access import API_TIMEOUT_S
from operations.conflicts import until_settled

NAMESPACE = "kube-system"

_T = TypeVar("_T")
Pages = dict[str, Any]
"""Key -> what stands there, as JSON."""


def read(api: client.ApiClient, name: str) -> Pages:
    """All pages; none where nobody wrote one."""
    return _pages(_found(api, name))


def change(api: client.ApiClient, name: str, edit: Callable[[Pages], _T]) -> _T:
    """Edit the pages as they are now, and once more where somebody else was quicker. What `edit` raises leaves them alone."""
    core = client.CoreV1Api(api)

    def attempt() -> _T:
        found = _found(api, name)
        pages = _pages(found)
        result = edit(pages)
        body = client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name=name),
            data={key: json.dumps(value, sort_keys=True) for key, value in pages.items()},
        )
        if found is None:
            core.create_namespaced_config_map(NAMESPACE, body, _request_timeout=API_TIMEOUT_S)
        else:
            body.metadata.resource_version = found.metadata.resource_version
            core.replace_namespaced_config_map(name, NAMESPACE, body, _request_timeout=API_TIMEOUT_S)
        return result

    return until_settled(attempt)


def _found(api: client.ApiClient, name: str) -> client.V1ConfigMap | None:
    try:
        return client.CoreV1Api(api).read_namespaced_config_map(name, NAMESPACE, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None


def _pages(found: client.V1ConfigMap | None) -> Pages:
    return {key: json.loads(text) for key, text in ((found and found.data) or {}).items()}
