"""The profiles of the cluster's only scheduler, as kube-scheduler reads them. Pure.

There is one scheduler because two would give away the same capacity twice: each counts the pods that it bound itself, and
learns of the other's pods from the API only later.
"""

from __future__ import annotations

from typing import Any

from cluster.scheduling import PACK, Pack, Scheduling

GPU = "nvidia.com/gpu"
DEFAULT = "default-scheduler"


def configuration(scheduling: Scheduling, kubeconfig: str, calls: int, burst: int) -> dict[str, Any]:
    """Return a KubeSchedulerConfiguration.

    calls: API requests per second that the scheduler's client may make. burst: how many at once. With a configuration file,
    kube-scheduler ignores the flags for the same settings (cmd/kube-scheduler/app/options).
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
    """Return the profile that prefers the fullest host with room.

    Scores that pull the other way are off: the default spreading of a Service's pods, and the score for balanced use of
    processors and memory. Constraints in the pod itself still apply.
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
