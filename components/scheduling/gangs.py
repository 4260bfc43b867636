"""Gangs: pods that start all together or not at all. The only place that knows how each Kubernetes release does it. Pure.

Gangs use Kubernetes' own PodGroup (docs/explanation/gangs.md has the measurements behind that choice). A Job with the label
`LABEL` whose pods name a PodGroup is a gang. `menagerie_host.gangs`, next to the API servers, creates the PodGroup in the
running release's API and restarts the whole gang when a member dies. So people write the same Job for every release.

Sources for the releases: pkg/features/kube_features.go of 1.36.4 and 1.37.1, and k8s.io/api/scheduling of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.releases import POD_GROUPS, minor

LABEL = "menagerie.dev/gang"
"""Label of a Job, with any value: its pods are a gang."""
WITHIN = "menagerie.dev/gang-within"
"""Annotation of the Job: a node label. All members run on nodes with the same value of it."""

_ALPHA = ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption")
_GATES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    # 1.37 merged GangScheduling and WorkloadAwarePreemption into GenericWorkload, and programs reject unknown gates.
    # Without WorkloadAwarePreemption each member preempts pods alone: even if the rest does not fit, and twice if a pass fails.
    "1.36": {
        "kube-apiserver": (*_ALPHA, "TopologyAwareWorkloadScheduling"),
        "kube-controller-manager": ("GenericWorkload",),
        "kube-scheduler": (*_ALPHA, "TopologyAwareWorkloadScheduling"),
    },
    "1.37": {
        "kube-apiserver": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
        "kube-controller-manager": ("GenericWorkload",),
        "kube-scheduler": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    },
}


def gates(version: str, program: str) -> dict[str, str]:
    """Return the feature gates that a program of the release needs, gate -> true. KeyError for a release without gangs."""
    return dict.fromkeys(_GATES[minor(version)][program], "true")


def api(version: str) -> str:
    """Return the API group and version of the release's PodGroups. Raises KeyError for a release without gangs."""
    return POD_GROUPS[minor(version)]


def pod_group(version: str, name: str, members: int, within: str = "", priority: str = "") -> dict[str, Any]:
    """Return a PodGroup of `members` pods.

    within: a node label; all pods run on nodes with the same value of it. priority: the class of the pods; empty for the
    cluster's default.
    """
    more: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": within}]}} if within else {}
    more |= {"priorityClassName": priority} if priority else {}
    return {
        "apiVersion": api(version),
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": members}}, **more},
    }


def job(name: str, members: int, pod: Mapping[str, Any], within: str = "", failures: int = 100) -> dict[str, Any]:
    """Return a gang as people write it: an indexed Job of `members` pods.

    pod: the PodSpec of each member. failures: failed members after which the Job fails.
    """
    annotations = {"annotations": {WITHIN: within}} if within else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {LABEL: ""}, **annotations},
        "spec": {
            "completionMode": "Indexed",
            "completions": members,
            "parallelism": members,
            "backoffLimit": failures,
            "template": {"spec": {"restartPolicy": "Never", "schedulingGroup": {"podGroupName": name}, **pod}},
        },
    }
