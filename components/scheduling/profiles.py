"""The profiles of the cluster's one scheduler, as kube-scheduler reads them. Pure.

One scheduler, because two of them give the same room away twice: each counts what it has bound itself, and learns of the other's
pods by the API only later.
"""

from __future__ import annotations

from typing import Any

from cluster.scheduling import PACK, Pack, Scheduling

GPU = "nvidia.com/gpu"
DEFAULT = "default-scheduler"


def configuration(scheduling: Scheduling, kubeconfig: str, calls: int, burst: int) -> dict[str, Any]:
    """A KubeSchedulerConfiguration.

    calls: a second, of the API, as the scheduler's client may make them; burst: at once. Where a configuration is given,
    kube-scheduler ignores the flags that say the same (cmd/kube-scheduler/app/options).
    """
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, "qps": calls, "burst": burst},
        "leaderElection": {"leaderElect": True},
        "enableProfiling": False,
        "enableContentionProfiling": False,
        "profiles": [{"schedulerName": DEFAULT}, _pack(scheduling.pack)],
    }


def _pack(pack: Pack) -> dict[str, Any]:
    """The fullest host that has room.

    What pulls the other way is off: spreading of Services' pods that nobody asked for, and the score for an even use of
    processors and memory. Constraints that a pod itself has still count.
    """
    weights = ((GPU, pack.gpu), ("cpu", pack.cpu), ("memory", pack.memory))
    strategy = {
        "type": "MostAllocated",
        "resources": [{"name": name, "weight": weight} for name, weight in weights],
    }
    return {
        "schedulerName": PACK,
        "percentageOfNodesToScore": pack.nodes_scored,
        "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
        "pluginConfig": [
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}},
            {"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}},
        ],
    }
