"""Keeps `up` and `configure` from what only `upgrade` does: another release on all API servers at once, or on undrained nodes."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict

from clients.access import Access
from cluster.errors import RefusedError
from cluster.releases import NodePrograms
from cluster.spec import Cluster
from operations.upgrade import versions

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
"""A few columns of each object ("Kubernetes API Concepts"), of nodes also those that `kubectl get -o wide` shows alone."""
_COLUMNS = ("Name", "Version", "Container-Runtime")


def other_release(cluster: Cluster, access: Access) -> str:
    """What to say where API servers run another version than the spec says, "" where none does, or none answers."""
    wanted = cluster.spec.kubernetes.version
    if not (other := sorted(versions.servers(access) - {wanted})):
        return ""
    return (
        f"{cluster.name} runs Kubernetes {' and '.join(other)}, and its spec says {wanted}: up would replace all API servers "
        f"at once. Run ./menagerie upgrade {cluster.name}, which goes host by host; ./menagerie upgrade {cluster.name} "
        "--dry-run shows how"
    )


def refuse_other_release(cluster: Cluster, access: Access) -> None:
    """RefusedError with what to run instead. A cluster whose API does not answer is `up`'s to repair."""
    if told := other_release(cluster, access):
        raise RefusedError(told, code="other-release")


def other_workers(cluster: Cluster, access: Access, roles: Collection[str] = ()) -> frozenset[str]:
    """Machines at sites that run another release than these roles would place, all roles for (): to be drained before.

    Raises urllib3's HTTPError where the API does not answer.
    """
    wanted = NodePrograms.beside(cluster.spec.kubernetes.version)
    placed = frozenset(roles or asdict(wanted)) & asdict(wanted).keys()
    if not placed:
        return frozenset()
    (text,) = access.ask(("/api/v1/nodes?includeObject=None",), accept=_TABLE)
    table = json.loads(text)
    titles = [column["name"] for column in table["columnDefinitions"]]
    name, kubelet, runtime = map(titles.index, _COLUMNS)
    found = {
        row["cells"][name]: NodePrograms.said(row["cells"][kubelet], row["cells"][runtime]) for row in table["rows"]
    }
    others = {node for node, each in found.items() if each.others(wanted) & placed}
    return frozenset(host.name for _, host in cluster.host_list() if host.name in others)


def left_to_upgrade(cluster: Cluster, hosts: frozenset[str]) -> str:
    """What to say of hosts that were left out, "" for none."""
    if not hosts:
        return ""
    named = ", ".join(sorted(hosts)[:5]) + (" …" if len(hosts) > 5 else "")
    return (
        f"{len(hosts)} workers run another release of Kubernetes or containerd and are left out ({named}); drained, by "
        f"./menagerie upgrade {cluster.name}"
    )
