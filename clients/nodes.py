"""A cluster's nodes: where they are, and which versions they report.

Machines at sites are in the spec; workers in the region are only in the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from ipaddress import ip_address

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.objects import Object
from clients.paging import models
from clients.waiting import is_ready
from cluster.releases import NodePrograms
from cluster.spec import Cluster
from cluster.subnets import worker_ranges


def listed(api: client.ApiClient, timeout_s: float = API_TIMEOUT_S) -> Iterator[client.V1Node]:
    """Yield all Nodes, without what nobody here reads and what is three quarters of their memory: images and managed fields."""
    for node in models(client.CoreV1Api(api).list_node, timeout_s=timeout_s):
        node.metadata.managed_fields = None
        if node.status:
            node.status.images = None
        yield node


def in_the_region(cluster: Cluster, nodes: Iterable[client.V1Node]) -> frozenset[str]:
    """Return the names of the nodes in the region, recognised by address: the cloud chooses their names."""
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
    """Return node -> address: every machine at a site, joined or not, and the current workers in the region."""
    at_sites = {host.name: str(host.address) for _, host in cluster.host_list()}
    if not cluster.spec.cloud_workers:
        return at_sites
    nodes = list(models(client.CoreV1Api(api).list_node))
    names = in_the_region(cluster, nodes)
    return at_sites | {node.metadata.name: _address(node) for node in nodes if node.metadata.name in names}


def region_missing(cluster: Cluster, api: client.ApiClient) -> str:
    """Return how far the region is below its minimum of Ready workers, "" if it has the minimum."""
    least = least_in_region(cluster)
    if not least:
        return ""
    try:
        nodes = list(models(client.CoreV1Api(api).list_node))
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"the API server does not answer ({type(error).__name__})"
    ready = in_the_region(cluster, (node for node in nodes if is_ready(node)))
    return f"{len(ready)} workers in the region are Ready, at least {least} are required" if len(ready) < least else ""


def programs(node: client.V1Node) -> NodePrograms:
    """Return the versions that a node reports."""
    info = node.status.node_info
    return NodePrograms.said(info.kubelet_version, info.container_runtime_version) if info else NodePrograms()


def renewals(leases: Iterable[Object]) -> Iterator[tuple[str, datetime]]:
    """Yield (node, when its kubelet last renewed its Lease) from the Leases of kube-node-lease."""
    for lease in leases:
        if renewed := (lease.get("spec") or {}).get("renewTime"):
            yield lease["metadata"]["name"], datetime.fromisoformat(renewed)


def least_in_region(cluster: Cluster) -> int:
    """Return the minimum number of workers in the region."""
    return sum(pool.min for pool in cluster.spec.pools.values() if pool.site is None)


def _address(node: client.V1Node) -> str:
    """Return a node's internal address, 0.0.0.0 if it has not reported one yet."""
    internal = [address.address for address in node.status.addresses or () if address.type == "InternalIP"]
    return str(internal[0]) if internal else "0.0.0.0"
