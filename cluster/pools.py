"""The model of workers: pools in the region, and machines at sites."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from cluster.kernel import Kernel
from cluster.links import Cable, LinkName
from cluster.model import Model
from cluster.quantities import Address, Bytes, Name, Share
from cluster.words import CloudWord, FilePath

POOL_LABEL = "menagerie/pool"
"""Label, only of nodes in the region: the name of their pool, set by their kubelets."""
TRUSTED_POOL = "node-restriction.kubernetes.io/menagerie-pool"
"""Label of all nodes: the name of their pool, set by the API servers. No kubelet may set it (NodeRestriction), so pods with
powerful tokens are placed by it."""


class TaintEffect(StrEnum):
    """What happens to pods that don't tolerate the taint."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(Model):
    """A taint with which every node of the pool registers."""

    key: str
    """Key: prefix/name or name."""
    value: str = ""
    """Value; may be empty."""
    effect: TaintEffect = Field(strict=False)
    """NoSchedule, PreferNoSchedule or NoExecute."""


class Placement(StrEnum):
    """How a pool's machines are placed relative to each other."""

    COMPACT = "compact"
    """Close together in one zone, for the lowest latency between them."""
    SPREAD = "spread"
    """On hardware that fails independently."""


class CpuManager(StrEnum):
    """How the kubelet assigns CPUs to pods."""

    NONE = "none"
    """All pods share all CPUs."""
    STATIC = "static"
    """A Guaranteed pod that requests whole CPUs has exclusive use of them."""


class TopologyManager(StrEnum):
    """How the kubelet handles a pod whose CPUs and devices don't fit on one NUMA node."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    """It tries to align them, and admits the pod in any case."""
    RESTRICTED = "restricted"
    """It refuses the pod, unless no choice of NUMA nodes would be better."""
    SINGLE_NUMA_NODE = "single-numa-node"
    """It refuses the pod."""


class Kubelet(Model):
    """How the kubelets of a pool manage CPUs and NUMA nodes."""

    cpu_manager: CpuManager | None = Field(default=None, strict=False)
    """none, or static: pods can have exclusive CPUs. Default: static on machines with GPUs or RDMA, otherwise none."""
    topology_manager: TopologyManager | None = Field(default=None, strict=False)
    """none, best-effort, restricted or single-numa-node. Default: best-effort with static, otherwise none."""


class Pool(Model):
    """Workers of one kind: at a site (`site`, `hosts`) or in the region (`machine`, `min`, `max`)."""

    site: Name | None = None
    """The name of one of sites. Leave it out for workers in the region."""
    hosts: FilePath | None = None
    """File next to cluster.yaml that lists the machines of this pool."""
    hardware: Name | None = None
    """Kind of the machines at a site, such as dgx-h100, which says what hardware each must have. Default: only their clocks
    are checked."""
    driver_branch: int | None = Field(default=None, ge=1)
    """Branch of NVIDIA's driver on machines at a site, such as 580. Default: any."""
    preflight: bool = True
    """Whether machines at a site join with a taint until their own checks have passed."""
    kernel: Kernel = Kernel()
    """Kernel settings of machines at a site."""
    max_unavailable: Share = "10%"
    """Machines at a site that Menagerie may take out of service at the same time, as a number or a share of the pool; at
    least one."""
    max_unhealthy: Share | None = None
    """Nodes that may be unhealthy at the same time; above it no node of the pool is repaired. Default:
    repair.max_unhealthy."""
    machine: CloudWord | None = None
    """Machine type of workers in the region, as the cloud names it."""
    min: int = Field(default=0, ge=0)
    """Least number of workers in the region."""
    max: int = Field(default=0, ge=0)
    """Most workers that the pool can grow to in the region."""
    balloons: int = Field(default=0, ge=0)
    """Idle workers in the region that are kept warm for the next jobs, by pods that give way to all others."""
    zones: tuple[int | CloudWord, ...] = Field(default=(), strict=False)
    """Zones of workers in the region, out of control_plane.zones. Default: all of them."""
    image: CloudWord | None = None
    """Machine image of workers in the region, with a driver if they have GPUs. Default: the cloud's Debian 13, in Azure 12."""
    allow_no_driver: bool = False
    """Accept an image without a driver for the machines' GPUs, because the cluster installs one, for example with NVIDIA's
    GPU Operator."""
    disk_size: Bytes = 128 * 2**30
    """Size of the system disk of a worker in the region, which also holds images and files of pods."""
    spot: bool = False
    """Use cheaper machines that the cloud may take back at any time."""
    reservation: CloudWord | None = None
    """Reserved capacity to take the machines from, as the cloud names it."""
    placement: Placement | None = Field(default=None, strict=False)
    """compact or spread. Default: the cloud chooses."""
    rdma: bool = False
    """Fast interfaces between the machines: EFA on AWS, InfiniBand on Azure, gVNIC with more queues on Google Cloud."""
    kubelet: Kubelet = Kubelet()
    """How kubelets manage CPUs and NUMA nodes."""
    price_hour: float | None = None
    """US dollars that one of the pool's machines at a site costs you in an hour, such as 21.5, for the ledger. Default: unknown,
    and `bill` says so. Pools in the region: autoscaler.prices."""
    watts_idle: int | None = Field(default=None, ge=1, le=1_000_000)
    """Watts that one of the pool's machines at a site draws when no pod requests it, for the ledger's estimate of energy. Default:
    no estimate."""
    watts_busy: int | None = Field(default=None, ge=1, le=1_000_000)
    """The same when pods request all of it: of its GPUs, or of its CPUs if it has none. Readings of its BMC count instead, where
    there are some (`provisioning.bmc.reader`)."""
    labels: dict[str, str] = Field(default={})
    """Node labels, for example openai.org/location: onprem-sjc1."""
    taints: tuple[Taint, ...] = Field(default=(), strict=False)
    """Node taints."""


class Host(Model):
    """One machine of a pool: an entry of its hosts file."""

    name: Name
    """Name of the host and of its node."""
    rack: Name
    """The name of one of the racks of the pool's site."""
    address: Address
    """IPv4 address, in the range of its rack."""
    mac: str | None = None
    """MAC of the card that has the address, such as b8:59:9f:aa:bb:cc."""
    bmc: Address | None = None
    """Address of the machine's management controller."""
    links: dict[LinkName, Cable] = Field(default={})
    """Name of a link that sites.<site>.links declares for the pool -> its card and cable."""


class HostsFile(Model):
    """The machines of a pool."""

    hosts: tuple[Host, ...] = Field(strict=False, min_length=1)
    """The machines. Names, addresses and MACs are unique in the whole fleet."""
