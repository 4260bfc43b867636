"""Where replicas of an add-on run: on hosts that anybody's pods may use, apart from each other, and not for long on a dead one. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.pools import TaintEffect
from cluster.spec import Cluster
from components.control_plane.objects import Object

REPLICAS = 2
GIVE_UP_S = 60
"""After so many seconds, an add-on leaves a host that does not answer. The jobs there stay for as long as a day."""


def hosts(cluster: Cluster) -> int:
    """Return the minimum number of hosts whose taints admit add-ons."""
    soft = TaintEffect.PREFER_NO_SCHEDULE
    pools = {name: p for name, p in cluster.spec.pools.items() if all(taint.effect is soft for taint in p.taints)}
    return sum(len(cluster.hosts.get(name, ())) if pool.site else pool.min for name, pool in pools.items())


def apart(cluster: Cluster, labels: Mapping[str, str]) -> Object:
    """Return the affinity of replicas with these labels: never two on a host if there are enough hosts, otherwise a preference."""
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    if hosts(cluster) < REPLICAS:
        preferred = [{"weight": 100, "podAffinityTerm": term}]
        return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def leave_dead_hosts() -> list[Object]:
    """Return the tolerations of pods that leave a host that does not answer."""
    return [
        {
            "key": f"node.kubernetes.io/{condition}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": GIVE_UP_S,
        }
        for condition in ("not-ready", "unreachable")
    ]


def budget(name: str, namespace: str, labels: Mapping[str, str]) -> Object:
    """Return the PodDisruptionBudget of an add-on: drains take one replica at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(labels)}},
    }
