"""Prevents `up` and `configure` from changing the release, which only `upgrade` does host by host and with drains."""

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
"""Only a few columns of each object ("Kubernetes API Concepts"); for nodes, also those of `kubectl get -o wide`."""
_COLUMNS = ("Name", "Version", "Container-Runtime")


def other_release(cluster: Cluster, access: Access) -> str:
    """Return the message if API servers run another version than the spec's, "" if none does or none responds."""
    version = cluster.spec.kubernetes.version
    if not (other := sorted(versions.servers(access) - {version})):
        return ""
    return (
        f"{cluster.name} runs Kubernetes {' and '.join(other)}, but its spec has {version}: up would replace all API servers "
        f"at once. To upgrade host by host, run: ./menagerie upgrade {cluster.name} (to see the plan first: "
        f"./menagerie upgrade {cluster.name} --dry-run)"
    )


def refuse_other_release(cluster: Cluster, access: Access) -> None:
    """Raise RefusedError with what to run instead. If the API does not respond, don't: `up` may be needed to repair it."""
    if message := other_release(cluster, access):
        raise RefusedError(message, code="other-release")


def other_workers(cluster: Cluster, access: Access, roles: Collection[str] = ()) -> frozenset[str]:
    """Return machines at sites where these roles would install another release, so that they must be drained first. (): all roles.

    Raises urllib3's HTTPError if the API does not respond.
    """
    expected = NodePrograms.beside(cluster.spec.kubernetes.version)
    placed = frozenset(roles or asdict(expected)) & asdict(expected).keys()
    if not placed:
        return frozenset()
    (text,) = access.ask(("/api/v1/nodes?includeObject=None",), accept=_TABLE)
    table = json.loads(text)
    titles = [column["name"] for column in table["columnDefinitions"]]
    name, kubelet, runtime = map(titles.index, _COLUMNS)
    on_nodes = {
        row["cells"][name]: NodePrograms.said(row["cells"][kubelet], row["cells"][runtime]) for row in table["rows"]
    }
    others = {node for node, node_programs in on_nodes.items() if node_programs.others(expected) & placed}
    return frozenset(host.name for _, host in cluster.host_list() if host.name in others)


def left_to_upgrade(cluster: Cluster, hosts: frozenset[str]) -> str:
    """Return the message about hosts that were left out, "" for none."""
    if not hosts:
        return ""
    named = ", ".join(sorted(hosts)[:5]) + (" …" if len(hosts) > 5 else "")
    return (
        f"{len(hosts)} workers run another release of Kubernetes or containerd and were left out ({named}); to drain and upgrade "
        f"them, run: ./menagerie upgrade {cluster.name}"
    )
