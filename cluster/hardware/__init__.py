"""Expected hardware of each kind of machine, as data with sources. Role preflight compares hosts with it.

On-prem machines are kinds in machines.yaml; machines of clouds are those of the catalogues, with GPUs from
clouds.yaml. Figures without a source are left out and aren't compared.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cluster import catalogue
from cluster.document import parse
from cluster.hardware.model import CloudFile, Disks, Expected, GpuFile, Gpus, MachineFile, Ports
from cluster.pools import Pool
from cluster.spec import Cloud

__all__ = ["Expected", "kinds", "of_cloud", "of_kind", "of_pool", "runs_gpus"]

_HERE = Path(__file__).parent
_NVLINK_FROM = 8
"""Number of GPUs from which NVLink joins all GPUs of a cloud's machine. Smaller machines are parts of such machines."""
_IB_LINKS = 8
"""Azure's machines with InfiniBand have one link per GPU."""


@cache
def gpus() -> GpuFile:
    return GpuFile.model_validate(_read("gpus.yaml"))


@cache
def machines() -> MachineFile:
    return MachineFile.model_validate(_read("machines.yaml"))


@cache
def clouds() -> CloudFile:
    return CloudFile.model_validate(_read("clouds.yaml"))


def kinds() -> tuple[str, ...]:
    """Return the kinds of on-prem machines."""
    return tuple(machines().kinds)


def of_kind(kind: str, driver_branch: str = "") -> Expected:
    """Return the expected hardware of an on-prem machine. Raises KeyError for an unknown kind."""
    machine = machines().kinds[kind]
    gpu = gpus().gpus[machine.gpu].gpu
    return Expected(
        kind=kind,
        sockets=machine.sockets,
        cpus=machine.cpus,
        memory_gib=machine.memory_gib,
        disks=machine.disks,
        rdma=machine.rdma,
        gpus=Gpus(**gpu.model_dump(), count=machine.gpus, driver_branch=driver_branch),
    )


def of_pool(cloud: Cloud, pool: Pool) -> Expected | None:
    """Return the expected hardware of a pool's machines; None if the spec doesn't say what they are."""
    if pool.site is None:
        return of_cloud(cloud, pool.machine, rdma=pool.rdma) if pool.machine else None
    return of_kind(pool.hardware, str(pool.driver_branch or "")) if pool.hardware else None


def runs_gpus(cloud: Cloud, pool: Pool) -> bool:
    """Return whether the cluster's own device plugin assigns a pool's GPUs to pods.

    False if the driver comes from something like NVIDIA's GPU Operator, which has its own plugin.
    """
    if pool.site is None and (pool.allow_no_driver or not pool.image):
        return False
    machine = of_pool(cloud, pool)
    return bool(machine and machine.gpus)


def of_cloud(cloud: Cloud, name: str, *, rdma: bool = False, driver_branch: str = "") -> Expected | None:
    """Return the expected hardware of a cloud's machine; None if the catalogue has only its name.

    PCIe links aren't compared: a hypervisor can show any. rdma: whether the machine was ordered with RDMA.
    """
    machine = catalogue.of(cloud).machine_types.get(name) if cloud in catalogue.CLOUDS else None
    if machine is None or machine.type is None or machine.series is None:
        return None
    has, series = machine.type, machine.series
    nvme = (Disks(count=has.nvme.disks, gb=has.nvme.gb, nvme=True),) if has.nvme else ()
    links = _IB_LINKS if series.infiniband_gbps else has.efa
    speed = series.infiniband_gbps // _IB_LINKS if series.infiniband_gbps else None
    return Expected(
        kind=name,
        cpus=has.vcpus,
        memory_gib=has.memory_gb,
        disks=nvme,
        rdma=Ports(ports=links, gbit_s=speed) if rdma and links else None,
        gpus=_gpus(cloud, series.series, has.gpus, driver_branch),
    )


def _gpus(cloud: Cloud, series: str, count: int, driver_branch: str) -> Gpus | None:
    by_series: dict[str, str] = getattr(clouds(), cloud)
    if not count or series not in by_series:
        return None
    gpu = gpus().gpus[by_series[series]].gpu
    unspecified = {"pcie_gen": None, "pcie_width": None}
    if count < _NVLINK_FROM:
        unspecified |= {"nvlinks": None, "nvlink_gb_s": None}
    return Gpus(**(gpu.model_dump() | unspecified), count=count, driver_branch=driver_branch)


def _read(name: str) -> object:
    document = parse((_HERE / name).read_text(encoding="utf-8"), name)
    if document.problems:
        raise ValueError("\n".join(map(str, document.problems)))
    return document.data
