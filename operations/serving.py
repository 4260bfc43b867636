"""The cluster is told which machine of its spec has which address, before any of them joins.

The approver of kubelets' serving certificates goes by it (`control_plane.host.claims`). It is in the API and not in what API servers
are given at their boot, because a machine more would replace all of them.
"""

from __future__ import annotations

import json
from http import HTTPStatus

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cluster.spec import Cluster
from control_plane.host.claims import HOSTS, KEY
from control_plane.serving import NAMESPACE
from operations.access import API_TIMEOUT_S


def tell(cluster: Cluster, api: client.ApiClient) -> None:
    """Write the addresses of all machines at sites, where others are written. Raises ApiException."""
    core = client.CoreV1Api(api)
    text = json.dumps({host.name: str(host.address) for _, host in cluster.host_list()}, sort_keys=True)
    try:
        found = core.read_namespaced_config_map(HOSTS, NAMESPACE, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        found = _made(core)
    if (found.data or {}).get(KEY) != text:
        body = {"data": {KEY: text}}
        core.patch_namespaced_config_map(HOSTS, NAMESPACE, body, _request_timeout=API_TIMEOUT_S)


def _made(core: client.CoreV1Api) -> client.V1ConfigMap:
    """API servers of an older release have not made it."""
    try:
        core.create_namespace({"metadata": {"name": NAMESPACE}}, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status != HTTPStatus.CONFLICT:
            raise
    return core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": HOSTS}}, _request_timeout=API_TIMEOUT_S)
