"""Names shared by operators' commands and API servers to keep Nodes' labels as in the spec.

An operator's command writes `TABLE`, as only it has the hosts files; `components.control_plane.host.labels` on the API
servers applies it. Programs on hosts have copies of these names; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable

from cluster import places, preflight
from cluster.spec import Cluster

NAMESPACE = "kube-system"
TABLE = "menagerie-hosts"
"""ConfigMap: machine at a site -> key of its kind; "<kind>" -> labels, "<kind>.taints" -> taints, one per line. Kinds start
with "_", unlike names of hosts."""
POOLS = "menagerie-region"
"""ConfigMap: worker in the region -> the pool that its kubelet named when it first appeared."""
USER = "menagerie:node-labels"
"""User name of the API servers' companion."""


def table(cluster: Cluster) -> dict[str, str]:
    """Return the data of `TABLE`. Hosts of a rack share a kind, so that 10,000 hosts fit into a ConfigMap."""
    kinds: dict[tuple[str, str], str] = {}
    data: dict[str, str] = {}
    for name, host in cluster.host_list():
        labels = _lines(f"{key}={value}" for key, value in places.node_labels(cluster, name, host).items())
        taints = _lines(
            f"{taint.key}={taint.value}:{taint.effect}" for taint in preflight.taints(cluster.spec.pools[name])
        )
        data[host.name] = kinds.setdefault((labels, taints), f"_{len(kinds)}")
    for (labels, taints), kind in kinds.items():
        data |= {kind: labels, f"{kind}.taints": taints}
    return data


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(sorted(texts))
