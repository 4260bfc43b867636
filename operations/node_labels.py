"""Tells the API servers which labels the machines at sites have, and says what still lacks the label that nobody else can set."""

from __future__ import annotations

from http import HTTPStatus

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cluster.node_labels import NAMESPACE, TABLE, table
from cluster.pools import TRUSTED_POOL
from cluster.spec import Cluster
from operations.access import API_TIMEOUT_S
from operations.conflicts import until_settled


def publish(cluster: Cluster, api: client.ApiClient) -> bool:
    """Write the table of the spec's hosts; whether it was another. A host that it lacks can't register as one of a site.

    Raises ApiException and urllib3's HTTPError.
    """
    core, wanted = client.CoreV1Api(api), table(cluster)

    def attempt() -> bool:
        try:
            found = core.read_namespaced_config_map(TABLE, NAMESPACE, _request_timeout=API_TIMEOUT_S)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=TABLE), data=wanted)
            core.create_namespaced_config_map(NAMESPACE, body, _request_timeout=API_TIMEOUT_S)
            return True
        if (found.data or {}) == wanted:
            return False
        # With its resourceVersion: two runs of different specs don't mix.
        found.data = wanted
        core.replace_namespaced_config_map(TABLE, NAMESPACE, found, _request_timeout=API_TIMEOUT_S)
        return True

    return until_settled(attempt)


def missing(api: client.ApiClient, pool: str) -> str:
    """Why no pod that goes by the label finds a node, "" where one would."""
    selector = f"{TRUSTED_POOL}={pool}"
    found = client.CoreV1Api(api).list_node(label_selector=selector, limit=1, _request_timeout=API_TIMEOUT_S).items
    return "" if found else f"no node has the label {selector} yet; API servers give it to the nodes of pool {pool}"
