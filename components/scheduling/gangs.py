"""Gangs: pods that start all together or not at all. The one place that knows by what, and in which release how. Pure.

It is Kubernetes' own PodGroup (docs/explanation/gangs.md has the measurements that chose it). A Job that is labelled `LABEL` and whose pods name a
PodGroup is a gang; `menagerie_host.gangs`, beside the API servers, makes the PodGroup in the words of the release that runs, and starts
the whole gang anew when a member dies. So what people write is the same in each release.

Facts of releases: pkg/features/kube_features.go of 1.36.4 and 1.37.1, and k8s.io/api/scheduling of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.releases import POD_GROUPS, minor

LABEL = "menagerie.dev/gang"
"""On a Job, with any value: its pods are a gang."""
WITHIN = "menagerie.dev/gang-within"
"""Annotation of the Job: a label of nodes, of whose values all members stand on one."""

_ALPHA = ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption")
_GATES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    # 1.37 took GangScheduling and WorkloadAwarePreemption into GenericWorkload, and a program refuses a gate that it does not know.
    # Without WorkloadAwarePreemption each member puts pods out for itself: also where the rest finds no room, and twice when a pass fails.
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
    """Feature gates that a program of the release needs, gate -> true. KeyError for a release without gangs."""
    return dict.fromkeys(_GATES[minor(version)][program], "true")


def api(version: str) -> str:
    """Group and version of the release's PodGroups. KeyError for a release without gangs."""
    return POD_GROUPS[minor(version)]


def pod_group(version: str, name: str, members: int, within: str = "", priority: str = "") -> dict[str, Any]:
    """A PodGroup of so many pods. within: a label of nodes, of whose values all pods stand on one.

    priority: the class of its pods; none is the cluster's default.
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
    """A gang as people write it: a Job of so many pods, each with a number of its own.

    pod: what each runs, a PodSpec. failures: of members, after which the gang is given up.
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
