"""Publishes the labels of machines at sites to the API servers, and tells whether nodes have the label only these can set."""

from __future__ import annotations

from kubernetes import client

from clients import config_maps
from clients.access import API_TIMEOUT_S
from cluster.node_labels import NAMESPACE, TABLE, table
from cluster.pools import TRUSTED_POOL
from cluster.spec import Cluster


def publish(cluster: Cluster, api: client.ApiClient) -> bool:
    """Publish the table of the spec's hosts. Return whether it changed. Hosts not in it can't register as hosts of a site.

    Raises ApiException and urllib3's HTTPError.
    """
    return config_maps.publish(api, NAMESPACE, TABLE, table(cluster))


def missing(api: client.ApiClient, pool: str) -> str:
    """Return why pods with this node label would find no node, "" if they would."""
    selector = f"{TRUSTED_POOL}={pool}"
    nodes = client.CoreV1Api(api).list_node(label_selector=selector, limit=1, _request_timeout=API_TIMEOUT_S).items
    return "" if nodes else f"no node has the label {selector} yet; API servers give it to the nodes of pool {pool}"
