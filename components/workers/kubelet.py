"""CPU and topology managers of a pool's kubelets. No I/O."""

from __future__ import annotations

from typing import Any

from cluster import catalogue, hardware
from cluster.pools import CpuManager, TopologyManager
from cluster.spec import ClusterSpec
from cluster.storage import has_gpus


def of_pool(spec: ClusterSpec, name: str) -> dict[str, Any]:
    """Return the pool's variables of role kubelet."""
    kubelet = spec.pools[name].kubelet
    cpus = kubelet.cpu_manager or (CpuManager.STATIC if _is_numa_bound(spec, name) else CpuManager.NONE)
    usual = TopologyManager.BEST_EFFORT if cpus is CpuManager.STATIC else TopologyManager.NONE
    return {"kubelet_cpu_manager": cpus.value, "kubelet_topology_manager": (kubelet.topology_manager or usual).value}


def _is_numa_bound(spec: ClusterSpec, name: str) -> bool:
    """Return whether the machines have GPUs or RDMA cards, which are slow to reach from a CPU of another NUMA node."""
    pool = spec.pools[name]
    if pool.site is None:
        return spec.control_plane.cloud in catalogue.CLOUDS and has_gpus(spec, pool)
    machine, fabric = hardware.of_pool(spec.control_plane.cloud, pool), spec.sites[pool.site].roce
    return bool(machine and machine.gpus) or (fabric is not None and name in fabric.rails)
