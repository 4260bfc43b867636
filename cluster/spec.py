"""The one typed model: what an operator writes in ``inventories/<cluster>/cluster.yaml``.

Strict (an unknown key or a wrong type is an error), frozen, and a leaf: everything else reads it.
Units are in the type (`Bytes`, `DurationMs`) or in the field's name; a field with neither has none.
Rules that look at more than one field live in `cluster.check`.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Literal

from pydantic import Field

from cluster import versions
from cluster.autoscaler import Autoscaler
from cluster.mirrors import MirrorRegistry, MirrorUrl
from cluster.model import Model
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
from cluster.words import CloudWord


class Cloud(StrEnum):
    """Where the control plane runs. `lab` is a data centre on one machine."""

    AZURE = "azure"
    AWS = "aws"
    GCP = "gcp"
    LAB = "lab"


class Kubernetes(Model):
    """The release of Kubernetes."""

    version: str = versions.KUBERNETES
    """Kubernetes version: all three numbers in quotes, without the v."""


class PublicEndpoint(Model):
    """A second way to the API, from the internet, for operators without a line to the region."""

    name: Domain
    """DNS name of the API there. The API's certificate covers it; you point it at what `up` prints."""
    operators: tuple[Network, ...] = Field(min_length=1, strict=False)
    """Ranges of the internet that are let in."""
    allow_any_operator: bool = False
    """Accept that operators holds 0.0.0.0/0: everybody may try, and certificates alone guard the API."""


class AuditLog(Model):
    """What was asked of the API, by whom: kept in a bucket that outlives API servers."""

    keep: DurationMs = 30 * 86_400_000
    """Time for which nobody deletes or changes what is shipped there; after it, it is removed. In whole days."""


class ControlPlane(Model):
    """API servers and where they run. Its hosts are not nodes."""

    cloud: Cloud = Field(strict=False)
    """The provider of the region."""
    region: Name
    """The cloud's own name of the region; a cluster never leaves it."""
    zones: tuple[int | CloudWord, ...] = Field(default=(1, 2, 3), min_length=1, strict=False)
    """Zones of the region, in the cloud's own words. Hosts fill them in turn."""
    machine: CloudWord
    """Machine type of an API-server host, in the cloud's own words."""
    api_servers: int = Field(default=2, ge=1)
    """API-server hosts. They keep no state: two survive the loss of one."""
    image: CloudWord | None = None
    """Machine image of API servers and etcd members, in the cloud's own words. Default: the cloud's Debian 12."""
    operators: tuple[Network, ...] = Field(default=(), strict=False)
    """Ranges from which operators reach the API and ask members of their health: a VPN, a peering. In a cloud nobody
    else does."""
    allow_any_operator: bool = False
    """Accept that operators holds 0.0.0.0/0, or another range that no one owner has."""
    public: PublicEndpoint | None = None
    """Default: no address of the cluster is public but those of its NAT and VPN gateways."""
    audit_log: AuditLog = AuditLog()
    """How long the API's audit log is kept."""
    vcpu_quota: int | None = Field(default=None, ge=1)
    """vCPUs that the account may use in the region, to be compared with what the pools can grow to."""


class Backup(Model):
    """Snapshots of an etcd."""

    every: DurationMs
    """Time from one snapshot to the next."""
    keep: DurationMs
    """Age at which a snapshot is removed; by the next drill that finds all well."""
    drill: DurationMs = 86_400_000
    """Time from one drill to the next: the newest snapshot is restored into an etcd of its own, and compared."""


class EtcdHosts(StrEnum):
    """Which hosts the members of an etcd run on."""

    DEDICATED = "dedicated"
    """Hosts of its own: the only choice that isolates its disk and CPU."""
    MAIN = "main"
    """For `events` only: on the hosts of `main`, with its own process, disk, CA and quota."""


class EtcdCluster(Model):
    """One etcd: its members, their hosts and disks. The defaults are those of main."""

    members: int = Field(default=3, ge=1)
    """An odd number: 3 survive one loss, 5 two."""
    machine: CloudWord
    """Machine type of a member's host, in the cloud's own words."""
    hosts: EtcdHosts = Field(default=EtcdHosts.DEDICATED, strict=False)
    """Default: hosts of its own."""
    disk: CloudWord = "local-nvme"
    """Kind of data disk. Local NVMe: a write takes 0.2 ms where a network disk takes 2 ms."""
    disk_size: Bytes = 128 * 2**30
    """Size of the data disk; at least twice the quota, for defragmentation writes a second copy."""
    iops: int = Field(default=3000, ge=1)
    """Operations a second that a network disk is bought with, where its kind sells them."""
    quota: Bytes = 8 * 2**30
    """Size at which etcd refuses writes. 8 GiB is the most that etcd supports well."""
    client_port: Port = 2379
    """TCP port for clients, on every member."""
    peer_port: Port = 2380
    """TCP port between members."""
    data_dir: DataDir = "/var/lib/etcd/main"
    """Given to etcd whole. The default is the path that CIS 1.1.11 is checked at."""
    heartbeat_interval: DurationMs = 100
    """Time between the leader's heartbeats: about one round trip between members."""
    election_timeout: DurationMs = 1000
    """etcd's documentation: at least ten round trips, and at least five heartbeats."""
    backup: Backup | None = None
    """Default: no backups."""
    allow_single_zone: bool = False
    """Accept that the loss of one zone can stop this etcd."""


class EtcdEvents(EtcdCluster):
    """The etcd of events; it fits on the hosts of main."""

    client_port: Port = 2381
    """TCP port for clients, on every member."""
    peer_port: Port = 2382
    """TCP port between members."""
    data_dir: DataDir = "/var/lib/etcd/events"
    """Given to etcd whole. The default is the path that CIS 1.1.11 is checked at."""


class Etcd(Model):
    """The etcds of the cluster."""

    main: EtcdCluster
    """Everything but Event objects."""
    events: EtcdEvents
    """Events in an etcd of their own: they churn, and may be lost without harm."""


class Artefacts(Model):
    """Where hosts download programs and images from."""

    mirror: MirrorUrl | None = None
    """Base URL of a mirror with the layout of the upstream download sites: <mirror>/<host>/<path>."""
    registry: MirrorRegistry | None = None
    """Registry that mirrors registry.k8s.io and docker.io under the same repository paths: host:port."""
    sha256: dict[str, Sha256] = Field(default={})
    """SHA-256 of what upstream publishes no list of: a program's host/path, or an image with its tag -> 64 hexadecimal digits, as
    sha256sum or `crane digest` prints them."""
    own_builds: dict[str, Sha256] = Field(default={})
    """The same of builds of your own that mirrors serve under upstream's names. They replace the published ones, and `check` names
    each."""


class Profile(StrEnum):
    """How strict the checks are."""

    PRODUCTION = "production"
    DEVELOPMENT = "development"
    """Allows what production refuses, such as an etcd of one member."""


class ClusterSpec(Model):
    """One regional cluster."""

    name: Name
    """Also the Pulumi stack. By custom the next animal in the alphabet."""
    profile: Profile = Field(default=Profile.PRODUCTION, strict=False)
    """production, or development, which allows what production refuses."""
    kubernetes: Kubernetes = Kubernetes()
    """The release of Kubernetes."""
    control_plane: ControlPlane
    """API servers and where they run."""
    etcd: Etcd
    """The etcds of the cluster: main, and events."""
    network: ClusterNetwork
    """Ranges of addresses, and the pods' overlay."""
    neighbours: Neighbours = Neighbours()
    """Neighbour (ARP) table thresholds. Default: computed from the cluster's size."""
    sites: dict[Name, Site] = Field(default={}, max_length=100)
    """Places with machines of your own: name -> site."""
    pools: dict[Name, Pool] = Field(default={})
    """Workers, by kind: name -> pool."""
    storage: Storage = Storage()
    """Volumes of pods on workers in the region."""
    repair: Repair = Repair()
    """When nodes are repaired by themselves, and what stops that."""
    autoscaler: Autoscaler | None = None
    """Default: pools in the region have as many workers as their clouds are told by hand."""
    scheduling: Scheduling = Scheduling()
    """The scheduler: its profile for batch work, and gangs."""
    tenancy: Tenancy | None = None
    """Default: nobody has a namespace but whom operators make one."""
    artefacts: Artefacts = Artefacts()
    """Where hosts download programs and images from. Default: the upstream sites."""

    @property
    def has_backups(self) -> bool:
        """Whether any etcd has."""
        return any(etcd.backup for etcd in (self.etcd.main, self.etcd.events))

    @property
    def cloud_workers(self) -> int:
        """The most workers that pools in the region can grow to."""
        return sum(pool.max for pool in self.pools.values() if pool.site is None)

    @property
    def checked_workers(self) -> bool:
        """Whether workers join tainted, until they have found themselves as expected."""
        return any(pool.site and pool.preflight for pool in self.pools.values())


class Cluster(Model):
    """A loaded cluster: the spec and the machines that its pools name. What every other package reads."""

    spec: ClusterSpec
    hosts: dict[str, tuple[Host, ...]] = Field(default={})
    """Pool name -> its machines, in the order of the hosts file."""
    authorities: dict[str, str] = Field(default={})
    """Site -> PEM of the authority that its `registries.ca` names."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_lab(self) -> bool:
        """Whether the cluster is made on this machine, of which nothing outlives it or is worth keeping."""
        return self.spec.control_plane.cloud is Cloud.LAB

    @property
    def digest(self) -> str:
        """SHA-256 in hex of all that was loaded, however it was written down."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def host_list(self) -> tuple[tuple[str, Host], ...]:
        """(pool name, host) of every machine at a site."""
        return tuple((pool, host) for pool, hosts in self.hosts.items() for host in hosts)


RoleName = Literal["main", "events"]
"""The etcds of a cluster."""
