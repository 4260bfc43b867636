"""What must be unchanged after a fault: running pods, and unique addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Network

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import Access
from clients.paging import models


def running_pods(access: Access) -> dict[str, str]:
    """Return UID -> namespace/name of each running pod. Raises what the Kubernetes client raises."""
    listed = models(client.CoreV1Api(access.api()).list_pod_for_all_namespaces)
    return {
        pod.metadata.uid: f"{pod.metadata.namespace}/{pod.metadata.name}"
        for pod in listed
        if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None
    }


def lost_pods(access: Access, before: Mapping[str, str]) -> list[str]:
    """List pods that ran and no longer do: no fault in the table affects a node. Empty if the API does not answer."""
    try:
        now = running_pods(access)
    except (ApiException, urllib3.exceptions.HTTPError):
        return []
    return [f"pod {name} was lost" for uid, name in before.items() if uid not in now]


def shared_addresses(access: Access) -> list[str]:
    """List addresses and ranges with two owners: of nodes, of nodes' pods, of pods. Reports an API that does not answer."""
    core = client.CoreV1Api(access.api())
    try:
        nodes = list(models(core.list_node))
        pods = list(models(core.list_pod_for_all_namespaces))
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return [f"the API did not answer after the fault: {error}"]
    node_ips = [entry.address for node in nodes for entry in node.status.addresses or () if entry.type == "InternalIP"]
    ranges = [IPv4Network(node.spec.pod_cidr) for node in nodes if node.spec.pod_cidr]
    pod_ips = [pod.status.pod_ip for pod in pods if pod.status.phase == "Running" and not pod.spec.host_network]
    counts = Counter([*node_ips, *map(str, ranges), *(address for address in pod_ips if address)])
    return [f"{address} has {count} owners" for address, count in counts.items() if count > 1]
