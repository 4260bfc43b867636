"""What people write on pods and nodes for the autoscaler, in one place."""

from __future__ import annotations

PREFIX = "scheduling.menagerie.dev/"

CLOUD, REGION, GPU_KIND, NEAR = f"{PREFIX}cloud", f"{PREFIX}region", f"{PREFIX}gpu-kind", f"{PREFIX}near-data"
WORTH, SPOT, CEILING = f"{PREFIX}worth", f"{PREFIX}spot", f"{PREFIX}price-ceiling"
KEEP = f"{PREFIX}keep"
"""On a pod: "true" for one that is never moved. On a Node: "true" for one that is never taken away."""

ALL = (CLOUD, REGION, GPU_KIND, NEAR, WORTH, SPOT, CEILING, KEEP)

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""cluster-autoscaler's own, on pods: "false" keeps a host. Its FAQ, "What types of pods can prevent CA from removing a node?\""""
REGION_LABEL = "topology.kubernetes.io/region"
ZONE_LABEL = "topology.kubernetes.io/zone"
MACHINE_LABEL = "node.kubernetes.io/instance-type"
HOSTNAME_LABEL = "kubernetes.io/hostname"
