"""Annotations that people set on pods and nodes for the autoscaler, labels that it reads, and where its memory is."""

from __future__ import annotations

PREFIX = "scheduling.menagerie.dev/"

CLOUD, REGION, GPU_KIND, NEAR = f"{PREFIX}cloud", f"{PREFIX}region", f"{PREFIX}gpu-kind", f"{PREFIX}near-data"
WORTH, SPOT, CEILING = f"{PREFIX}worth", f"{PREFIX}spot", f"{PREFIX}price-ceiling"
KEEP = f"{PREFIX}keep"
"""On a pod: "true" if it must never be moved. On a Node: "true" if it must never be removed."""

ALL = (CLOUD, REGION, GPU_KIND, NEAR, WORTH, SPOT, CEILING, KEEP)

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""cluster-autoscaler's annotation of pods: "false" keeps a host. See its FAQ, "What types of pods can prevent CA from removing a node?\""""
REGION_LABEL = "topology.kubernetes.io/region"
ZONE_LABEL = "topology.kubernetes.io/zone"
MACHINE_LABEL = "node.kubernetes.io/instance-type"
HOSTNAME_LABEL = "kubernetes.io/hostname"
NOTEBOOK = "menagerie-autoscaler"
"""The ConfigMap with the memory."""
