"""Names by which operators' commands and API servers keep Nodes' labels as the spec has them.

An operator's command writes `TABLE`, for only it has the hosts files; `components.control_plane.host.labels`, on the API servers, goes by it.
Programs on hosts have copies of these names; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable

from cluster import places, preflight
from cluster.spec import Cluster

NAMESPACE = "kube-system"
TABLE = "menagerie-hosts"
"""ConfigMap: machine at a site -> key of its kind; "<kind>" -> labels, "<kind>.taints" -> taints, a line each. Kinds begin with "_",
as no host's name does."""
POOLS = "menagerie-region"
"""ConfigMap: worker in the region -> the pool that its kubelet named when it was seen first."""
USER = "menagerie:node-labels"
"""Whom the API servers' companion is known as."""


def table(cluster: Cluster) -> dict[str, str]:
    """`TABLE`'s data. Hosts of a rack share their kind, so that 10,000 fit into a ConfigMap."""
    kinds: dict[tuple[str, str], str] = {}
    found: dict[str, str] = {}
    for name, host in cluster.host_list():
        labels = _lines(f"{key}={value}" for key, value in places.given(cluster, name, host).items())
        taints = _lines(
            f"{taint.key}={taint.value}:{taint.effect}" for taint in preflight.taints(cluster.spec.pools[name])
        )
        found[host.name] = kinds.setdefault((labels, taints), f"_{len(kinds)}")
    for (labels, taints), kind in kinds.items():
        found |= {kind: labels, f"{kind}.taints": taints}
    return found


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(sorted(texts))
