"""Pods that keep idle hosts of a pool warm: they do nothing, request most of a host, and give way to any other pod. Pure.

An autoscaler keeps the hosts that they run on, and boots new hosts for balloons that were preempted. So the next job starts at
once, and the replacement host boots while the job runs.
"""

from __future__ import annotations

from typing import Any

from cluster import hardware
from cluster.pools import POOL_LABEL, Pool
from cluster.preflight import taints
from cluster.spec import Cluster
from components.scheduling.priorities import BALLOONS
from components.scheduling.profiles import GPU

NAMESPACE = "kube-system"
_SHARE = 3 / 4
"""Share of a machine's processors that a balloon requests. The rest is left for other pods, mostly of DaemonSets; while they
fit into it, the host counts as idle."""


def objects(cluster: Cluster, image: str) -> tuple[dict[str, Any], ...]:
    """Return a Deployment for each pool whose spec sets `balloons`; 0 removes the pods. image: of a container that sleeps."""
    return tuple(
        _deployment(cluster, name, pool, image)
        for name, pool in cluster.spec.pools.items()
        if "balloons" in pool.model_fields_set
    )


def _deployment(cluster: Cluster, name: str, pool: Pool, image: str) -> dict[str, Any]:
    labels = {"app": "balloons", POOL_LABEL: name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"balloons-{name}", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": pool.balloons,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(cluster, pool, labels, image)},
        },
    }


def _pod(cluster: Cluster, pool: Pool, labels: dict[str, str], image: str) -> dict[str, Any]:
    apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    container = {
        "name": "balloon",
        "image": image,
        "resources": _resources(cluster, pool),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": BALLOONS,
        # The pod that preempts a balloon waits until it is gone.
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {POOL_LABEL: labels[POOL_LABEL]},
        "tolerations": [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect.value}
            for taint in taints(pool)
        ],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
        "containers": [container],
    }


def _resources(cluster: Cluster, pool: Pool) -> dict[str, Any]:
    """Return requests for all GPUs of a machine and most of its processors, if the catalogue has the machine."""
    machine = hardware.of_pool(cluster.spec.control_plane.cloud, pool)
    cpus = {"cpu": f"{int(machine.cpus * _SHARE * 1000)}m"} if machine and machine.cpus else {}
    gpus = {GPU: str(machine.gpus.count)} if machine and machine.gpus else {}
    return {"requests": {**cpus, **gpus}, "limits": gpus} if cpus or gpus else {}
