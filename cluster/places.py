"""Labels that say what a node has and where it stands, by which jobs choose their hosts and stay close together.

Labels of the spec (`pools.<name>.labels`) win over these. What a machine in the region has of the cloud, `topology.kubernetes.io/zone`
and `node.kubernetes.io/instance-type`, is told by the cloud itself. Which hosts share NVLink beyond their own eight GPUs, no spec
says; NVIDIA's GPU Feature Discovery labels those `nvidia.com/gpu.clique`.
"""

from __future__ import annotations

import hashlib
import re

from cluster import hardware
from cluster.pools import POOL_LABEL, TRUSTED_POOL, Host, Pool
from cluster.spec import Cloud, Cluster

GPU_LABEL = "menagerie.dev/gpu"
"""Label of nodes whose GPUs the cluster's own device plugin gives to pods; the value is true."""
GPU_KIND = "menagerie.dev/gpu-kind"
"""As nvidia-smi names it, with hyphens: NVIDIA-H100-80GB-HBM3. So does GPU Feature Discovery (nvidia.com/gpu.product)."""
SITE = "menagerie.dev/site"
RACK = "menagerie.dev/rack"
RAILS = "menagerie.dev/rails"
"""The switches that a machine's links lead to. Machines of one value reach each other in one hop on each rail."""
STORAGE_HOST = "menagerie.dev/storage-host"
"""On the nodes that Ceph's daemons run on."""
STORAGE_RACK = "topology.rook.io/rack"
"""Where Rook reads the rack of a storage host from ("OSD Topology")."""
_LONGEST = 63
"""Characters of a label's value (k8s.io/apimachinery, validation.LabelValueMaxLength)."""


def of_pool(cloud: Cloud, name: str, pool: Pool) -> dict[str, str]:
    """What all of a pool's nodes have from their first second. The spec's win over ours, so that it can keep the device plugin away."""
    found = hardware.of_pool(cloud, pool)
    gpus = {GPU_LABEL: "true"} if hardware.runs_gpus(cloud, pool) else {}
    kind = {GPU_KIND: _value(found.gpus.product)} if found and found.gpus else {}
    own = {POOL_LABEL: name} if pool.site is None else {}
    return {**gpus, **kind, **pool.labels, **own}


def of_host(pool: Pool, host: Host) -> dict[str, str]:
    """Where a machine at a site stands."""
    switches = [cable.switch for _, cable in sorted(host.links.items())]
    rails = {RAILS: _value(".".join(each for each in switches if each))} if switches and all(switches) else {}
    return {SITE: pool.site or "", RACK: host.rack, **rails}


def of_node(cluster: Cluster, name: str, host: Host) -> dict[str, str]:
    """All that the kubelet of a machine at a site says of its Node when it registers. name: of the host's pool."""
    pool = cluster.spec.pools[name]
    ceph = cluster.spec.sites[pool.site or ""].ceph
    storage = {STORAGE_HOST: "true", STORAGE_RACK: host.rack} if ceph and name in ceph.hosts else {}
    return {**of_host(pool, host), **of_pool(cluster.spec.control_plane.cloud, name, pool), **storage}


def given(cluster: Cluster, name: str, host: Host) -> dict[str, str]:
    """All labels that the Node of a machine at a site has by the spec, with those that no kubelet may set."""
    return {**of_node(cluster, name, host), TRUSTED_POOL: name}


def _value(text: str) -> str:
    """What a label may have of a text; one that is too long ends in what tells it from others."""
    whole = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return whole if len(whole) <= _LONGEST else f"{whole[: _LONGEST - 11].rstrip('-._')}-{digest}"
