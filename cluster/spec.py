"""The typed model of a cluster: what an operator writes in ``inventories/<cluster>/cluster.yaml``.

Strict (an unknown key or a wrong type is an error), frozen, and without dependencies on the rest, which reads it.
Units are in the type (`Bytes`, `DurationMs`) or in the field's name; a field with neither has none.
Rules that look at more than one field are in `cluster.check`.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Literal

from pydantic import Field

from cluster import versions
from cluster.autoscaler import Autoscaler
from cluster.metering import Metering
from cluster.mirrors import MirrorRegistry, MirrorUrl
from cluster.model import Model
from cluster.monitoring import Monitoring
from cluster.network import ClusterNetwork, Neighbours
from cluster.pools import Host, Pool
from cluster.quantities import (
    Bytes,
    DataDir,
    Domain,
    DurationMs,
    Name,
    Network,
    Port,
    Sha256,
)
from cluster.repair import Repair
from cluster.scheduling import Scheduling
from cluster.sites import Site
from cluster.tenancy import Tenancy
from cluster.volumes import Storage
from cluster.web import Web
from cluster.words import CloudWord


class Cloud(StrEnum):
    """Where the control plane runs. `lab` runs everything on one machine."""

    AZURE = "azure"
    AWS = "aws"
    GCP = "gcp"
    LAB = "lab"


class Kubernetes(Model):
    """The release of Kubernetes."""

    version: str = versions.KUBERNETES
    """Version of Kubernetes: all three numbers in quotes, without the v."""


class PublicEndpoint(Model):
    """Additional access to the API from the internet, for operators without a line to the region."""

    name: Domain
    """DNS name of the API on the internet. The API's certificate includes it; point it to the target that `up` prints."""
    operators: tuple[Network, ...] = Field(min_length=1, strict=False)
    """Ranges on the internet that may connect."""
    allow_any_operator: bool = False
    """Accept 0.0.0.0/0 in operators: everybody can connect, and certificates are the API's only protection."""


class AuditLog(Model):
    """Who sent which requests to the API, kept in a bucket that outlives API servers."""

    keep: DurationMs = 30 * 86_400_000
    """Time for which nobody can delete or change shipped logs. After that they are removed. In whole days."""


class ControlPlane(Model):
    """API servers and where they run. Their hosts aren't nodes."""

    cloud: Cloud = Field(strict=False)
    """The provider of the region."""
    region: Name
    """Region, as the cloud names it. A cluster never leaves it."""
    zones: tuple[int | CloudWord, ...] = Field(default=(1, 2, 3), min_length=1, strict=False)
    """Zones of the region, as the cloud names them. Hosts fill them in turn."""
    machine: CloudWord
    """Machine type of API servers, as the cloud names it."""
    api_servers: int = Field(default=2, ge=1)
    """Number of API servers. They are stateless, so two survive the loss of one."""
    image: CloudWord | None = None
    """Machine image of API servers and etcd members, as the cloud names it. Default: the cloud's Debian 13, in Azure 12."""
    operators: tuple[Network, ...] = Field(default=(), strict=False)
    """Ranges from which operators reach the API and the health endpoints of etcd members, such as a VPN or a peering. In a
    cloud nobody else can."""
    allow_any_operator: bool = False
    """Accept 0.0.0.0/0, or another range too large for a single owner, in operators."""
    public: PublicEndpoint | None = None
    """Public endpoint of the API. Default: only the cluster's NAT and VPN gateways have public addresses."""
    audit_log: AuditLog = AuditLog()
    """How long the API's audit log is kept."""
    vcpu_quota: int | None = Field(default=None, ge=1)
    """vCPUs that the account may use in the region. `check` compares them with what the pools can grow to."""
    security_group_rules: int = Field(default=60, ge=60, le=1000)
    """Rules that the account may have in one direction of a security group, on AWS: its quota "Inbound or outbound rules per
    security group". Write a raised one here; `check` compares."""


class Backup(Model):
    """Snapshots of an etcd."""

    every: DurationMs
    """Time between snapshots."""
    keep: DurationMs
    """Age at which a snapshot is removed, by the next successful drill."""
    drill: DurationMs = 86_400_000
    """Time between drills, which restore the newest snapshot into a separate etcd and compare it."""


class EtcdHosts(StrEnum):
    """Which hosts the members of an etcd run on."""

    DEDICATED = "dedicated"
    """Separate hosts: the only choice that isolates its disk and CPU."""
    MAIN = "main"
    """Only for `events`: on the hosts of `main`, with its own process, disk, CA and quota."""


class EtcdCluster(Model):
    """One etcd: its members, hosts and disks. The defaults are for main."""

    members: int = Field(default=3, ge=1)
    """Number of members, which must be odd: 3 survive one loss, 5 survive two."""
    machine: CloudWord
    """Machine type of members, as the cloud names it."""
    hosts: EtcdHosts = Field(default=EtcdHosts.DEDICATED, strict=False)
    """dedicated, or for events also main: which hosts the members run on. Default: dedicated."""
    disk: CloudWord = "local-nvme"
    """Kind of data disk. A write takes 0.2 ms on local NVMe and 2 ms on a network disk."""
    disk_size: Bytes = 128 * 2**30
    """Size of the data disk: at least twice the quota, because defragmentation writes a second copy."""
    iops: int = Field(default=3000, ge=1)
    """Provisioned operations per second of a network disk, if its kind has them."""
    quota: Bytes = 8 * 2**30
    """Database size at which etcd refuses writes. etcd supports up to 8 GiB well."""
    client_port: Port = 2379
    """TCP port for clients, on every member."""
    peer_port: Port = 2380
    """TCP port between members."""
    data_dir: DataDir = "/var/lib/etcd/main"
    """Given to etcd whole. The default is the path that CIS 1.1.11 is checked at."""
    heartbeat_interval: DurationMs = 100
    """Time between the leader's heartbeats: about one round trip between members."""
    election_timeout: DurationMs = 1000
    """Time without heartbeats after which members elect a leader: at least ten round trips (etcd's documentation) and five
    heartbeats."""
    backup: Backup | None = None
    """Backups. Default: none."""
    allow_single_zone: bool = False
    """Accept that losing one zone can stop this etcd."""


class EtcdEvents(EtcdCluster):
    """The etcd for events, which may share the hosts of main."""

    client_port: Port = 2381
    """TCP port for clients, on every member."""
    peer_port: Port = 2382
    """TCP port between members."""
    data_dir: DataDir = "/var/lib/etcd/events"
    """Given to etcd whole. The default is the path that CIS 1.1.11 is checked at."""


class Etcd(Model):
    """The etcds of the cluster."""

    main: EtcdCluster
    """The etcd for everything except Event objects."""
    events: EtcdEvents
    """The etcd for Event objects, which change a lot and can be lost without harm."""


class Artefacts(Model):
    """Where hosts download programs and images from."""

    mirror: MirrorUrl | None = None
    """Base URL of a mirror with the layout of the upstream download sites: <mirror>/<host>/<path>."""
    registry: MirrorRegistry | None = None
    """Registry, as host:port, that mirrors registry.k8s.io and docker.io under the same repository paths."""
    sha256: dict[str, Sha256] = Field(default={})
    """SHA-256 of downloads: host/path of a program, or an image with its tag -> 64 hexadecimal digits, as printed by sha256sum
    or `crane digest`. Default: those that upstream publishes, and those that `bundle` wrote to artefacts.lock."""
    own_builds: dict[str, Sha256] = Field(default={})
    """SHA-256 of your own builds that mirrors serve under upstream's names. They replace the published ones, and `check` warns
    of each."""


class Profile(StrEnum):
    """How strict the checks are."""

    PRODUCTION = "production"
    DEVELOPMENT = "development"
    """Allows what production refuses, such as an etcd with one member."""


class ClusterSpec(Model):
    """One regional cluster."""

    name: Name
    """Name of the cluster and of its Pulumi stack. By convention the next animal in the alphabet."""
    profile: Profile = Field(default=Profile.PRODUCTION, strict=False)
    """production, or development, which allows what production refuses."""
    kubernetes: Kubernetes = Kubernetes()
    """The release of Kubernetes."""
    control_plane: ControlPlane
    """API servers and where they run."""
    etcd: Etcd
    """The etcds of the cluster: main, and events."""
    network: ClusterNetwork
    """Address ranges, and the pods' overlay."""
    neighbours: Neighbours = Neighbours()
    """Neighbour (ARP) table thresholds. Default: computed from the cluster's size."""
    sites: dict[Name, Site] = Field(default={}, max_length=100)
    """Sites, which are places with your own machines, by name."""
    pools: dict[Name, Pool] = Field(default={})
    """Pools of workers of one kind, by name."""
    storage: Storage = Storage()
    """Volumes of pods on workers in the region."""
    repair: Repair = Repair()
    """When nodes are repaired automatically, and what limits it."""
    autoscaler: Autoscaler | None = None
    """Automatic scaling of pools in the region. Default: you set the number of workers in the cloud by hand."""
    scheduling: Scheduling = Scheduling()
    """The scheduler: its profile for batch work, and gangs."""
    tenancy: Tenancy | None = None
    """Namespaces for people and teams. Default: only those that operators create."""
    metering: Metering | None = None
    """The ledger of what teams used. Default: none."""
    web: Web | None = None
    """Pages for people, served in the cluster. Default: only `menagerie web` on an operator's machine."""
    monitoring: Monitoring = Monitoring()
    """Alerts, dashboards and the size of the cluster's metrics, for your own Prometheus."""
    artefacts: Artefacts = Artefacts()
    """Where hosts download programs and images from. Default: the upstream sites."""

    @property
    def has_backups(self) -> bool:
        """Whether any etcd has backups."""
        return any(etcd.backup for etcd in (self.etcd.main, self.etcd.events))

    @property
    def region_pools(self) -> dict[str, Pool]:
        """The pools of workers in the region, by name."""
        return {name: pool for name, pool in self.pools.items() if pool.site is None}

    @property
    def cloud_workers(self) -> int:
        """The most workers that pools in the region can grow to."""
        return sum(pool.max for pool in self.region_pools.values())

    def zones_of(self, pool: Pool) -> tuple[str, ...]:
        """Return the zones of a pool in the region: its own, or those of the control plane."""
        return tuple(map(str, pool.zones or self.control_plane.zones))

    @property
    def checked_workers(self) -> bool:
        """Whether any workers join with a taint until their own checks have passed."""
        return any(pool.site and pool.preflight for pool in self.pools.values())


class Cluster(Model):
    """A loaded cluster: the spec and the machines in its hosts files. Every other package reads this."""

    spec: ClusterSpec
    hosts: dict[str, tuple[Host, ...]] = Field(default={})
    """Pool name -> its machines, in the order of the hosts file."""
    authorities: dict[str, str] = Field(default={})
    """Site -> PEM of the CA that its `registries.ca` names."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_lab(self) -> bool:
        """Whether the cluster is a lab on this machine, with nothing worth keeping."""
        return self.spec.control_plane.cloud is Cloud.LAB

    @property
    def has_private_access(self) -> bool:
        """Whether anybody reaches more than the API's public endpoint: firewalls admit ranges of operators, or a site."""
        return bool(self.is_lab or self.spec.control_plane.operators or self.spec.sites)

    @property
    def digest(self) -> str:
        """SHA-256 in hex of all loaded values, regardless of how the files are written."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def host_list(self) -> tuple[tuple[str, Host], ...]:
        """Return (pool name, host) of every machine at a site."""
        return tuple((pool, host) for pool, hosts in self.hosts.items() for host in hosts)


RoleName = Literal["main", "events"]
"""Name of an etcd of a cluster."""
