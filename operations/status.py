"""How a running cluster is: API servers, etcds, nodes, add-ons. Reads only."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cluster.outputs import ClusterOutputs
from cluster.spec import Cluster
from operations.access import API_TIMEOUT_S, Access
from operations.waiting import is_ready


@dataclass(frozen=True)
class Item:
    """One line of a status: what it is about, whether it is well, and what was seen."""

    group: str
    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Status:
    cluster: str
    endpoint: str
    items: tuple[Item, ...]

    @property
    def ok(self) -> bool:
        return all(item.ok for item in self.items)

    def to_json(self) -> dict[str, object]:
        return {
            "cluster": self.cluster,
            "ok": self.ok,
            "endpoint": self.endpoint,
            "items": [asdict(item) for item in self.items],
        }


def read_status(cluster: Cluster, access: Access) -> Status:
    """Look at every part of the cluster; an unreachable part is an item that is not ok."""
    api = access.api()
    items = [
        *_load_balancer(access.outputs),
        *_guarded("api", lambda: _health(api)),
        *_guarded("nodes", lambda: _nodes(api, cluster)),
        *_guarded("add-ons", lambda: _addons(api)),
    ]
    return Status(cluster.name, f"https://{access.outputs.endpoint}", tuple(items))


def not_well(cluster: Cluster, access: Access) -> str:
    """What is not well, "" when all is."""
    items = read_status(cluster, access).items
    return "; ".join(f"{item.name}: {item.detail}" for item in items if not item.ok)


def _guarded(group: str, read: Callable[[], Iterable[Item]]) -> list[Item]:
    try:
        return list(read())
    except ApiException as error:
        return [Item(group, "API", False, f"{error.status} {error.reason}")]
    except urllib3.exceptions.HTTPError as error:
        return [Item(group, "API", False, f"no answer: {type(error).__name__}")]


def _load_balancer(outputs: ClusterOutputs) -> list[Item]:
    """API servers as the load balancer sees them, where it says so."""
    if not outputs.load_balancer_status:
        return []
    try:
        return [
            Item("API servers", name, state.startswith("UP"), f"{address}, load balancer says {state}")
            for name, address, state in balancer_backends(outputs)
        ]
    except urllib3.exceptions.HTTPError as error:
        return [Item("API servers", "load balancer", False, f"no answer: {type(error).__name__}")]


def balancer_backends(outputs: ClusterOutputs) -> list[tuple[str, str, str]]:
    """(name, address:port, state) of every API server behind haproxy, from its statistics."""
    url = outputs.load_balancer_status or ""
    text = urllib3.PoolManager().request("GET", url, timeout=API_TIMEOUT_S, retries=False).data.decode()
    rows = csv.DictReader(io.StringIO(text.lstrip("# ")))
    addresses = {host.name: host.address for host in outputs.api_servers}
    return [
        (row["svname"], addresses[row["svname"]], row["status"])
        for row in rows
        if row["pxname"].startswith("api") and row["svname"] in addresses
    ]


def _health(api: client.ApiClient) -> list[Item]:
    """The API server's own checks; the etcds are among them, the events etcd as an override."""
    checks = dict(_verbose_checks(api))
    named = {
        "etcd main": ("etcd", "etcd-readiness"),
        "etcd events": ("etcd-override-0", "etcd-override-readiness-0"),
    }
    known = {check for group in named.values() for check in group}
    items = [
        Item("etcds", name, all(checks.get(c, False) for c in group), ", ".join(_told(checks, c) for c in group))
        for name, group in named.items()
    ]
    others = {name: ok for name, ok in checks.items() if name not in known}
    failed = [name for name, ok in others.items() if not ok]
    detail = f"{len(others)} checks pass" if not failed else f"failing: {', '.join(failed)}"
    return [*items, Item("api", "readyz", not failed and bool(others), detail)]


def _told(checks: dict[str, bool], name: str) -> str:
    return f"{name} {'ok' if checks.get(name) else 'failed' if name in checks else 'absent'}"


def _verbose_checks(api: client.ApiClient) -> Iterable[tuple[str, bool]]:
    """Lines such as ``[+]etcd ok`` and ``[-]etcd failed: reason withheld``; a failing readyz is a 500."""
    url = f"{api.configuration.host}/readyz?verbose"
    answer = api.rest_client.pool_manager.request("GET", url, timeout=API_TIMEOUT_S, retries=False)
    for line in answer.data.decode().splitlines():
        if line.startswith(("[+]", "[-]")):
            yield line[3:].split(" ")[0], line.startswith("[+]")


def _nodes(api: client.ApiClient, cluster: Cluster) -> list[Item]:
    nodes = {n.metadata.name: n for n in client.CoreV1Api(api).list_node(_request_timeout=API_TIMEOUT_S).items}
    expected = {host.name: f"{pool}, rack {host.rack}" for pool, host in cluster.host_list()}
    items = []
    for name in sorted(set(nodes) | set(expected)):
        node = nodes.get(name)
        where = expected.get(name, "not in the spec")
        if node is None:
            items.append(Item("nodes", name, False, f"has not joined ({where})"))
            continue
        state = "Ready" if is_ready(node) else "NotReady"
        version = node.status.node_info.kubelet_version
        items.append(Item("nodes", name, is_ready(node) and name in expected, f"{state}, {version}, {where}"))
    return items


def _addons(api: client.ApiClient) -> list[Item]:
    apps = client.AppsV1Api(api)
    items = []
    for daemon in apps.list_namespaced_daemon_set("kube-system", _request_timeout=API_TIMEOUT_S).items:
        wanted, ready = daemon.status.desired_number_scheduled or 0, daemon.status.number_ready or 0
        items.append(Item("add-ons", daemon.metadata.name, ready == wanted, f"{ready} of {wanted} pods ready"))
    for deployment in apps.list_namespaced_deployment("kube-system", _request_timeout=API_TIMEOUT_S).items:
        wanted, ready = deployment.spec.replicas or 0, deployment.status.ready_replicas or 0
        items.append(Item("add-ons", deployment.metadata.name, ready == wanted, f"{ready} of {wanted} pods ready"))
    return items
