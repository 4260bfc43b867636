"""How a running cluster is: API servers, etcds, nodes, add-ons. Reads only."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cluster import preflight
from cluster.outputs import ClusterOutputs
from cluster.spec import Cluster
from control_plane import csi, dns, gpu, manifests
from etcd.apiserver import ready_checks
from network.addresses import ROLES
from operations.access import Access
from operations.drain import mark_of
from operations.etcd import EtcdClient, EtcdError
from operations.nodes import in_the_region, least_in_region
from operations.waiting import held_back, is_ready, verdict

ANSWER_S = 5.0
"""How long each part has for an answer."""

ADDONS = (dns.NAME, manifests.AGENT, "kube-proxy")
"""What runs in every cluster; kubeadm names the last."""


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
    """Look at every part of the cluster, side by side; an unreachable part is an item that is not ok."""
    outputs = access.outputs
    parts = [
        ("API servers", "load balancer", _load_balancer(outputs)),
        *(("etcds", f"members of {role}", _members(role, EtcdClient(access, role))) for role in outputs.etcds),
        ("api", "API", _api(_client(access), cluster)),
    ]
    with ThreadPoolExecutor(len(parts)) as pool:
        found = pool.map(lambda part: tuple(_guarded(*part)), parts)
    return Status(cluster.name, access.server, tuple(item for items in found for item in items))


def not_well(cluster: Cluster, access: Access) -> str:
    """What is not well, "" when all is."""
    items = read_status(cluster, access).items
    return "; ".join(f"{item.name}: {item.detail}" for item in items if not item.ok)


def _client(access: Access) -> client.ApiClient:
    """A client that asks once; urllib3's default is four times, each with the whole timeout."""
    configuration = access.api().configuration
    configuration.retries = False
    return client.ApiClient(configuration)


def _guarded(group: str, name: str, items: Iterator[Item]) -> Iterator[Item]:
    """The items, as far as they come; what ends them too early is an item as well."""
    try:
        yield from items
    except ApiException as error:
        yield Item(group, name, False, f"{error.status} {error.reason}")
    except EtcdError as error:
        yield Item(group, name, False, str(error))
    except urllib3.exceptions.HTTPError as error:
        yield Item(group, name, False, f"no answer: {type(error).__name__}")


def _load_balancer(outputs: ClusterOutputs) -> Iterator[Item]:
    """API servers as the load balancer sees them, where it says so."""
    if outputs.load_balancer_status:
        states = balancer_states(outputs)
        for host in outputs.api_servers:
            state = states[host.name]
            yield Item("API servers", host.name, state.startswith("UP"), f"{host.address}, load balancer says {state}")


def balancer_states(outputs: ClusterOutputs) -> dict[str, str]:
    """API server -> what haproxy's statistics call it: UP, DOWN and so on; "absent" where they do not have it."""
    url = outputs.load_balancer_status or ""
    text = urllib3.PoolManager().request("GET", url, timeout=ANSWER_S, retries=False).data.decode()
    rows = csv.DictReader(io.StringIO(text.lstrip("# ")))
    states = {row["svname"]: row["status"] for row in rows if row.get("pxname") == "api"}
    return {host.name: states.get(host.name, "absent") for host in outputs.api_servers}


def _members(role: str, etcd: EtcdClient) -> Iterator[Item]:
    for name, ailment in etcd.ailments().items():
        yield Item("etcds", name, not ailment, f"member of {role}, {ailment or 'healthy'}")


def _api(api: client.ApiClient, cluster: Cluster) -> Iterator[Item]:
    """What only the API tells. The first call that fails ends it: the others would only wait as long."""
    yield from _health(api)
    yield from _nodes(api, cluster)
    yield from _addons(cluster, api)


def _health(api: client.ApiClient) -> Iterator[Item]:
    """The API server's own checks; the etcds are among them, the events etcd as an override."""
    checks = dict(_verbose_checks(api))
    named = {f"etcd {role}": ready_checks(role) for role in ROLES}
    for name, group in named.items():
        yield Item("etcds", name, all(checks.get(c, False) for c in group), ", ".join(_told(checks, c) for c in group))
    known = {check for group in named.values() for check in group}
    others = {name: ok for name, ok in checks.items() if name not in known}
    failed = [name for name, ok in others.items() if not ok]
    detail = f"{len(others)} checks pass" if not failed else f"failing: {', '.join(failed)}"
    yield Item("api", "readyz", not failed and bool(others), detail)


def _told(checks: dict[str, bool], name: str) -> str:
    return f"{name} {'ok' if checks.get(name) else 'failed' if name in checks else 'absent'}"


def _verbose_checks(api: client.ApiClient) -> Iterable[tuple[str, bool]]:
    """Lines such as ``[+]etcd ok`` and ``[-]etcd failed: reason withheld``; a failing readyz is a 500."""
    url = f"{api.configuration.host}/readyz?verbose"
    answer = api.rest_client.pool_manager.request("GET", url, timeout=ANSWER_S)
    for line in answer.data.decode().splitlines():
        if line.startswith(("[+]", "[-]")):
            yield line[3:].split(" ")[0], line.startswith("[+]")


def _nodes(api: client.ApiClient, cluster: Cluster) -> Iterator[Item]:
    nodes = {n.metadata.name: n for n in client.CoreV1Api(api).list_node(_request_timeout=ANSWER_S).items}
    expected = {host.name: f"{pool}, rack {host.rack}" for pool, host in cluster.host_list()}
    in_region = {name: _zone(nodes[name]) for name in in_the_region(cluster, nodes.values())}
    for name in sorted(set(nodes) | set(expected)):
        node = nodes.get(name)
        where = expected.get(name) or in_region.get(name, "not in the spec")
        if node is None:
            yield Item("nodes", name, False, f"has not joined ({where})")
            continue
        state = "Ready" if is_ready(node) else "NotReady"
        version = node.status.node_info.kubelet_version
        known = name in expected or name in in_region
        held, told = held_back(node), _told_by_preflight(node)
        detail = ", ".join((state, version, where, *([f"no work yet: {held}"] if held else told), *_cordoned(node)))
        yield Item("nodes", name, is_ready(node) and known and not held, detail)
    if least := least_in_region(cluster):
        found = sum(is_ready(nodes[name]) for name in in_region)
        yield Item("nodes", "workers in the region", found >= least, f"{found} Ready, of {least} at least")


def _cordoned(node: client.V1Node) -> list[str]:
    """By whom, where a verb did it. Somebody wants it so, so the node is none the less well."""
    mark = mark_of(node)
    if mark:
        return [f"out of service by {mark.by} since {mark.since}: {mark.why}"]
    return ["cordoned"] if node.spec and node.spec.unschedulable else []


def _told_by_preflight(node: client.V1Node) -> list[str]:
    """What a host that takes work says of itself beside that it is as expected: Xids to keep an eye on."""
    found = verdict(node)
    said = found.message if found else ""
    return [f"preflight: {said}"] if said and not said.startswith(preflight.AS_EXPECTED) else []


def _workloads(api: client.ApiClient, namespace: str) -> dict[str, tuple[Any, int | None, int | None]]:
    """Name -> (the object, pods wanted, pods ready)."""
    apps = client.AppsV1Api(api)
    daemons = apps.list_namespaced_daemon_set(namespace, _request_timeout=ANSWER_S).items
    deployments = apps.list_namespaced_deployment(namespace, _request_timeout=ANSWER_S).items
    return {
        **{d.metadata.name: (d, d.status.desired_number_scheduled, d.status.number_ready) for d in daemons},
        **{d.metadata.name: (d, d.spec.replicas, d.status.ready_replicas) for d in deployments},
    }


def _zone(node: client.V1Node) -> str:
    return f"in the region, zone {(node.metadata.labels or {}).get('topology.kubernetes.io/zone', 'unknown')}"


def _addons(cluster: Cluster, api: client.ApiClient) -> Iterator[Item]:
    drivers = {
        thing["metadata"]["name"] for thing in csi.objects(cluster) if thing["kind"] in ("DaemonSet", "Deployment")
    }
    found = _workloads(api, "kube-system") | (_workloads(api, csi.NAMESPACE) if drivers else {})
    of_gpus = {thing["metadata"]["name"] for thing in gpu.objects(cluster)}
    for name in sorted({*ADDONS, *drivers, *of_gpus, *found}):
        if name not in found:
            yield Item("add-ons", name, False, "missing; an API-server host makes it again when it boots")
            continue
        thing, wanted, ready = found[name]
        # The counts are those of this generation only once the controller has seen it.
        seen = (thing.status.observed_generation or 0) >= thing.metadata.generation
        ok = seen and (ready or 0) == (wanted or 0) and bool(wanted or name not in ADDONS)
        detail = f"{ready or 0} of {wanted or 0} pods ready" + ("" if seen else ", not yet counted after a change")
        yield Item("add-ons", name, ok, detail)
