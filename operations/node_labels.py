"""Tells the API servers which labels the machines at sites have, and says what still lacks the label that nobody else can set."""

from __future__ import annotations

from kubernetes import client

from clients import config_maps
from clients.access import API_TIMEOUT_S
from cluster.node_labels import NAMESPACE, TABLE, table
from cluster.pools import TRUSTED_POOL
from cluster.spec import Cluster


def publish(cluster: Cluster, api: client.ApiClient) -> bool:
    """Write the table of the spec's hosts; whether it was another. A host that it lacks can't register as one of a site.

    Raises ApiException and urllib3's HTTPError.
    """
    return config_maps.publish(api, NAMESPACE, TABLE, table(cluster))


def missing(api: client.ApiClient, pool: str) -> str:
    """Why no pod that goes by the label finds a node, "" where one would."""
    selector = f"{TRUSTED_POOL}={pool}"
    found = client.CoreV1Api(api).list_node(label_selector=selector, limit=1, _request_timeout=API_TIMEOUT_S).items
    return "" if found else f"no node has the label {selector} yet; API servers give it to the nodes of pool {pool}"
