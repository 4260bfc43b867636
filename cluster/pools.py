"""The part of the model that is about workers: pools of them in the region, and machines at sites."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from cluster.kernel import Kernel
from cluster.links import Cable, LinkName
from cluster.model import Model
from cluster.quantities import Address, Bytes, Name, Share
from cluster.words import CloudWord, FilePath

POOL_LABEL = "menagerie/pool"
"""On nodes in the region alone: the name of their pool, as their kubelets say."""
TRUSTED_POOL = "node-restriction.kubernetes.io/menagerie-pool"
"""On all nodes: the name of their pool, as the API servers know it. No kubelet may set it (NodeRestriction), so what holds
powerful tokens goes by it."""


class TaintEffect(StrEnum):
    """What happens to pods that don't tolerate the taint."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(Model):
    """A taint that every node of the pool has from its first second."""

    key: str
    """prefix/name or name."""
    value: str = ""
    """May be empty."""
    effect: TaintEffect = Field(strict=False)
    """NoSchedule, PreferNoSchedule or NoExecute."""


class Placement(StrEnum):
    """How a pool's machines stand to each other."""

    COMPACT = "compact"
    """Close together, in one zone: the least latency between them."""
    SPREAD = "spread"
    """On hardware that fails apart."""


class CpuManager(StrEnum):
    """How the kubelet gives CPUs to pods."""

    NONE = "none"
    """All pods share all CPUs."""
    STATIC = "static"
    """A Guaranteed pod that asks for whole CPUs has them alone."""


class TopologyManager(StrEnum):
    """What the kubelet does about a pod whose CPUs and devices don't fit onto one NUMA node."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    """It tries, and takes the pod in any case."""
    RESTRICTED = "restricted"
    """It refuses the pod, unless no choice of nodes would be better."""
    SINGLE_NUMA_NODE = "single-numa-node"
    """It refuses the pod."""


class Kubelet(Model):
    """How the kubelets of a pool deal with CPUs and NUMA nodes."""

    cpu_manager: CpuManager | None = Field(default=None, strict=False)
    """none, or static: whole CPUs belong to one pod alone. Default: static on machines with GPUs or RDMA, else none."""
    topology_manager: TopologyManager | None = Field(default=None, strict=False)
    """none, best-effort, restricted or single-numa-node. Default: best-effort with static, else none."""


class Pool(Model):
    """Workers of one kind: at a site (`site`, `hosts`) or in the region (`machine`, `min`, `max`)."""

    site: Name | None = None
    """One of sites; left out for workers in the region."""
    hosts: FilePath | None = None
    """File beside cluster.yaml that lists the machines of this pool."""
    hardware: Name | None = None
    """Kind of the machines at a site, such as dgx-h100: what each must have. Default: only their clocks are compared."""
    driver_branch: int | None = Field(default=None, ge=1)
    """Branch of NVIDIA's driver that machines at a site must have, such as 580. Default: any."""
    preflight: bool = True
    """Whether machines at a site join tainted, until they have found themselves as expected."""
    kernel: Kernel = Kernel()
    """How the kernel of machines at a site is booted."""
    max_unavailable: Share = "10%"
    """Machines at a site that may be out of service at a time where it is for us to choose: a number, or a share of the
    pool; one at least."""
    max_unhealthy: Share | None = None
    """Nodes that may be unwell at once; above it none of the pool is repaired. Default: repair.max_unhealthy."""
    machine: CloudWord | None = None
    """Machine type, in the cloud's own words; for workers in the region."""
    min: int = Field(default=0, ge=0)
    """Workers that the region always has."""
    max: int = Field(default=0, ge=0)
    """Workers that the pool can grow to in the region."""
    balloons: int = Field(default=0, ge=0)
    """Idle workers in the region that are held warm for whoever comes next, by pods that give way to all others."""
    zones: tuple[int | CloudWord, ...] = Field(default=(), strict=False)
    """Zones of control_plane.zones that workers in the region stand in. Default: all of them."""
    image: CloudWord | None = None
    """Machine image of workers in the region, with the driver where they have GPUs. Default: the cloud's Debian 12."""
    allow_no_driver: bool = False
    """Accept an image without a driver for the machines' GPUs: the cluster installs one, as NVIDIA's GPU Operator does."""
    disk_size: Bytes = 128 * 2**30
    """Size of the system disk of a worker in the region; images and pods' own files are on it."""
    spot: bool = False
    """Machines that the cloud may take back at any time, for less money."""
    reservation: CloudWord | None = None
    """Reserved capacity that the machines are taken from, in the cloud's own words."""
    placement: Placement | None = Field(default=None, strict=False)
    """compact or spread. Default: where the cloud likes."""
    rdma: bool = False
    """Fast interfaces between the machines: EFA on AWS, InfiniBand on Azure, gVNIC with more queues on Google Cloud."""
    kubelet: Kubelet = Kubelet()
    """How kubelets deal with CPUs and NUMA nodes."""
    labels: dict[str, str] = Field(default={})
    """Node labels, for example openai.org/location: onprem-sjc1."""
    taints: tuple[Taint, ...] = Field(default=(), strict=False)
    """Node taints."""


class Host(Model):
    """One machine of a pool, an entry of its hosts file."""

    name: Name
    """Host name, and the node's."""
    rack: Name
    """One of the racks of the pool's site."""
    address: Address
    """In the range of its rack."""
    mac: str | None = None
    """Of the card that has the address: b8:59:9f:aa:bb:cc."""
    bmc: Address | None = None
    """Of the machine's management controller."""
    links: dict[LinkName, Cable] = Field(default={})
    """Cards and cables of the links that sites.<site>.links declares for the pool: name -> cable."""


class HostsFile(Model):
    """The machines of a pool."""

    hosts: tuple[Host, ...] = Field(strict=False, min_length=1)
    """Names, addresses and cards are unique in the whole fleet."""
