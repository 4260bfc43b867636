"""What must be as it was once a fault is over: pods, and who has which address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Network

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S, Access


def running_pods(access: Access) -> dict[str, str]:
    """UID of each pod that runs -> its namespace and name. Raises what the Kubernetes client raises."""
    listed = client.CoreV1Api(access.api()).list_pod_for_all_namespaces(_request_timeout=API_TIMEOUT_S).items
    return {
        pod.metadata.uid: f"{pod.metadata.namespace}/{pod.metadata.name}"
        for pod in listed
        if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None
    }


def given_up(access: Access, before: Mapping[str, str]) -> list[str]:
    """Pods that ran and do not any more: no fault of the table is one of a node. Nothing where the API is silent."""
    try:
        now = running_pods(access)
    except (ApiException, urllib3.exceptions.HTTPError):
        return []
    return [f"pod {name} was given up" for uid, name in before.items() if uid not in now]


def shared_addresses(access: Access) -> list[str]:
    """Addresses and ranges that two have at once: of nodes, of nodes' pods, of pods. Nothing where the API is silent."""
    core = client.CoreV1Api(access.api())
    try:
        nodes = core.list_node(_request_timeout=API_TIMEOUT_S).items
        pods = core.list_pod_for_all_namespaces(_request_timeout=API_TIMEOUT_S).items
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return [f"the API did not answer in the end: {error}"]
    own = [each.address for node in nodes for each in node.status.addresses or () if each.type == "InternalIP"]
    ranges = [IPv4Network(node.spec.pod_cidr) for node in nodes if node.spec.pod_cidr]
    of_pods = [pod.status.pod_ip for pod in pods if pod.status.phase == "Running" and not pod.spec.host_network]
    counts = Counter([*own, *map(str, ranges), *(address for address in of_pods if address)])
    return [f"{address} has {count} owners" for address, count in counts.items() if count > 1]
