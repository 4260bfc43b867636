"""Labels for a node's hardware and location, with which jobs choose hosts and stay close together.

Labels of the spec (`pools.<name>.labels`) take precedence. In the region the cloud itself sets `topology.kubernetes.io/zone` and
`node.kubernetes.io/instance-type`. A spec doesn't say which hosts share NVLink beyond their own eight GPUs; NVIDIA's GPU
Feature Discovery labels them `nvidia.com/gpu.clique`.
"""

from __future__ import annotations

import hashlib
import re

from cluster import hardware
from cluster.pools import POOL_LABEL, TRUSTED_POOL, Host, Pool
from cluster.spec import Cloud, Cluster

GPU_LABEL = "menagerie.dev/gpu"
"""Label, with value true, of nodes whose GPUs the cluster's own device plugin assigns to pods."""
GPU_KIND = "menagerie.dev/gpu-kind"
"""Label: the GPU's name in nvidia-smi with hyphens, such as NVIDIA-H100-80GB-HBM3, as in GPU Feature Discovery's
nvidia.com/gpu.product."""
SITE = "menagerie.dev/site"
RACK = "menagerie.dev/rack"
RAILS = "menagerie.dev/rails"
"""Label: the switches that a machine's links lead to. Machines with the same value reach each other in one hop on each
rail."""
STORAGE_HOST = "menagerie.dev/storage-host"
"""Label of nodes that run Ceph's daemons."""
STORAGE_RACK = "topology.rook.io/rack"
"""Label from which Rook reads a storage host's rack ("OSD Topology")."""
_LONGEST = 63
"""Characters of a label's value (k8s.io/apimachinery, validation.LabelValueMaxLength)."""


def of_pool(cloud: Cloud, name: str, pool: Pool) -> dict[str, str]:
    """Return the labels that all nodes of a pool register with.

    Labels of the spec take precedence, so that it can keep the device plugin away.
    """
    machine = hardware.of_pool(cloud, pool)
    gpus = {GPU_LABEL: "true"} if hardware.runs_gpus(cloud, pool) else {}
    kind = {GPU_KIND: _value(machine.gpus.product)} if machine and machine.gpus else {}
    own = {POOL_LABEL: name} if pool.site is None else {}
    return {**gpus, **kind, **pool.labels, **own}


def of_host(pool: Pool, host: Host) -> dict[str, str]:
    """Return the location labels of a machine at a site."""
    switches = [cable.switch for _, cable in sorted(host.links.items())]
    rails = {RAILS: _value(".".join(each for each in switches if each))} if switches and all(switches) else {}
    return {SITE: pool.site or "", RACK: host.rack, **rails}


def of_node(cluster: Cluster, name: str, host: Host) -> dict[str, str]:
    """Return all labels with which the kubelet of a machine at a site registers its Node. name: the host's pool."""
    pool = cluster.spec.pools[name]
    ceph = cluster.spec.sites[pool.site or ""].ceph
    storage = {STORAGE_HOST: "true", STORAGE_RACK: host.rack} if ceph and name in ceph.hosts else {}
    return {**of_host(pool, host), **of_pool(cluster.spec.control_plane.cloud, name, pool), **storage}


def node_labels(cluster: Cluster, name: str, host: Host) -> dict[str, str]:
    """Return all labels of the Node of a machine at a site, including those that no kubelet may set."""
    return {**of_node(cluster, name, host), TRUSTED_POOL: name}


def _value(text: str) -> str:
    """Return a text as a valid label value. A text that is too long is cut, with a digest at its end."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 11].rstrip('-._')}-{digest}"
