"""How a pool's kubelets deal with CPUs and NUMA nodes. No I/O."""

from __future__ import annotations

from typing import Any

from cluster import catalogue, hardware
from cluster.pools import CpuManager, TopologyManager
from cluster.spec import ClusterSpec
from cluster.storage import has_gpus


def of_pool(spec: ClusterSpec, name: str) -> dict[str, Any]:
    """Variables of role kubelet."""
    said = spec.pools[name].kubelet
    cpus = said.cpu_manager or (CpuManager.STATIC if _is_numa_bound(spec, name) else CpuManager.NONE)
    usual = TopologyManager.BEST_EFFORT if cpus is CpuManager.STATIC else TopologyManager.NONE
    return {"kubelet_cpu_manager": cpus.value, "kubelet_topology_manager": (said.topology_manager or usual).value}


def _is_numa_bound(spec: ClusterSpec, name: str) -> bool:
    """Whether the machines have GPUs, or cards for RDMA, which a CPU of another NUMA node reaches slowly."""
    pool = spec.pools[name]
    if pool.site is None:
        return spec.control_plane.cloud in catalogue.CLOUDS and has_gpus(spec, pool)
    known, fabric = hardware.of_pool(spec.control_plane.cloud, pool), spec.sites[pool.site].roce
    return bool(known and known.gpus) or (fabric is not None and name in fabric.rails)
