"""Which nodes a cluster has, where, and what they say that they run.

Machines at sites are in the spec, workers in the region only in the API.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.waiting import is_ready
from cluster.releases import NodePrograms
from cluster.spec import Cluster
from cluster.subnets import worker_ranges


def in_the_region(cluster: Cluster, nodes: Iterable[client.V1Node]) -> frozenset[str]:
    """The nodes that have their address where the region's workers have theirs; their names are the cloud's choice."""
    if not cluster.spec.cloud_workers:
        return frozenset()
    ranges = worker_ranges(cluster.spec)
    at_sites = {host.name for _, host in cluster.host_list()}
    return frozenset(
        node.metadata.name
        for node in nodes
        if node.metadata.name not in at_sites and any(ip_address(_address(node)) in network for network in ranges)
    )


def addresses(cluster: Cluster, api: client.ApiClient) -> dict[str, str]:
    """Node -> its address: every machine at a site, joined or not, and the workers that the region has now."""
    at_sites = {host.name: str(host.address) for _, host in cluster.host_list()}
    if not cluster.spec.cloud_workers:
        return at_sites
    nodes = client.CoreV1Api(api).list_node(_request_timeout=API_TIMEOUT_S).items
    found = in_the_region(cluster, nodes)
    return at_sites | {node.metadata.name: _address(node) for node in nodes if node.metadata.name in found}


def region_missing(cluster: Cluster, api: client.ApiClient) -> str:
    """How many workers the region still lacks of those that it has at least, "" when it has them."""
    least = least_in_region(cluster)
    if not least:
        return ""
    try:
        nodes = client.CoreV1Api(api).list_node(_request_timeout=API_TIMEOUT_S).items
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"the API server does not answer ({type(error).__name__})"
    ready = in_the_region(cluster, (node for node in nodes if is_ready(node)))
    return f"{len(ready)} workers of the region are Ready, of {least} at least" if len(ready) < least else ""


def programs(node: client.V1Node) -> NodePrograms:
    """What a node says that it runs."""
    info = node.status.node_info
    return NodePrograms.said(info.kubelet_version, info.container_runtime_version) if info else NodePrograms()


def least_in_region(cluster: Cluster) -> int:
    """How many workers the region has at least."""
    return sum(pool.min for pool in cluster.spec.pools.values() if pool.site is None)


def _address(node: client.V1Node) -> str:
    """A node that has not yet said its address is nowhere."""
    own = [each.address for each in node.status.addresses or () if each.type == "InternalIP"]
    return str(own[0]) if own else "0.0.0.0"
