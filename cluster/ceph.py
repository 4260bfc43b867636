"""The model of Ceph: the storage of a site, on disks of the site's machines, run by Rook.

`components.ceph.render` turns it into Rook's resources; `components.ceph.host` selects the disks on storage hosts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from cluster import disk_names
from cluster.model import Model
from cluster.quantities import Bytes, Name, Network

USABLE = 0.85
"""Share of the disks that may be used. Above it Ceph warns (mon_osd_nearfull_ratio, "Health checks")."""

ById = Annotated[str, BeforeValidator(disk_names.parser("CPH-005")), disk_names.SCHEMA]


MONITOR_PORTS, DAEMON_PORTS = (3300, 6789), range(6800, 7569)
"""Ports of monitors for versions 2 and 1 of Ceph's protocol, and the range of all other daemons (Ceph, "Network Configuration
Reference")."""


class FailureDomain(StrEnum):
    """What can fail as a unit. No two replicas are in the same one."""

    RACK = "rack"
    HOST = "host"


class Disks(Model):
    """Which disks of a storage host Ceph uses. A disk must match all settings and be empty."""

    by_id: ById
    """Name in /dev/disk/by-id, with * and ? as wildcards, usually of the model. Kernel names (sdb) can change at boot."""
    count: int = Field(ge=1, le=128)
    """Number of such disks in every storage host."""
    min_size: Bytes
    """Smaller disks don't match. Capacity is calculated with this size."""
    max_size: Bytes | None = None
    """Larger disks don't match. Default: no limit."""
    rotational: bool = False
    """Whether it is a hard disk with rotating platters."""
    allow_every_disk: bool = False
    """Accept a by_id such as nvme-*, which matches every empty disk of a kind, even one installed for another use."""

    @property
    def names_no_model(self) -> bool:
        """Whether by_id names little more than the bus."""
        return disk_names.names_no_model(self.by_id)


class Team(Model):
    """How much a team may store. Without a size for a kind of storage, the team has no class or user for it."""

    block: Bytes | None = None
    """Quota of its pool of block devices (class block-<team>), before replication."""
    file: Bytes | None = None
    """Quota of its pool of the shared file system (class file-<team>), before replication."""
    object: Bytes | None = None
    """Quota of its user of the object store, before replication."""
    disks: Name | None = None
    """One of `disks`, for block and file. Disks that no other team uses keep its load away from others. Default: the first."""

    @property
    def quotas(self) -> dict[str, int]:
        """Kind of storage -> bytes, without kinds that have no quota."""
        sizes = {"block": self.block, "file": self.file, "object": self.object}
        return {kind: size for kind, size in sizes.items() if size is not None}


class Networks(Model):
    """Ranges that Ceph's daemons listen in, on the hosts' own interfaces."""

    public: tuple[Network, ...] = Field(default=(), strict=False)
    """Ranges for clients and monitors. Default: the racks of the storage hosts."""
    cluster: tuple[Network, ...] = Field(default=(), strict=False)
    """Ranges for replication only, on a second port of every storage host. Default: replication uses the public
    network."""


class Ceph(Model):
    """A site's storage. The defaults survive the loss of a rack."""

    hosts: tuple[Name, ...] = Field(min_length=1, strict=False)
    """Pools of the site whose machines are storage hosts."""
    disks: dict[Name, Disks] = Field(min_length=1)
    """Kinds of disks by name. The name becomes the device class."""
    monitors: int = Field(default=3, ge=1, le=9)
    """An odd number, each on a separate storage host: 3 survive one loss, 5 survive two."""
    replicas: int = Field(default=3, ge=1, le=9)
    """Copies of every object, each in a separate failure domain."""
    failure_domain: FailureDomain = Field(default=FailureDomain.RACK, strict=False)
    """rack, or host if there are too few racks."""
    networks: Networks = Networks()
    """Ranges that Ceph's daemons listen in."""
    encrypt: bool = False
    """Encrypt everything on the wire (msgr2's secure mode). Costs CPU on every host."""
    osd_memory: Bytes = 4 * 2**30
    """Memory for the daemon of each disk (OSD). Rook needs at least 2GiB; its chart has 4GiB."""
    teams: dict[Name, Team] = Field(default={})
    """Quotas by team. Each team has separate pools."""

    @property
    def first_disks(self) -> str:
        """The default kind of disks."""
        return next(iter(self.disks))

    def disks_of(self, kind: str, team: Team) -> str:
        """Return the kind of disks for a team's data of a kind. The object store is shared, and on the first kind."""
        return self.first_disks if kind == "object" else team.disks or self.first_disks


def most_data(capacities: list[int], replicas: int) -> int:
    """Return how many bytes of data fit, before replication, with each replica in another failure domain.

    capacities: bytes of each domain. A domain larger than the others can match is only used in part.
    """
    ordered = sorted(capacities)
    if len(ordered) < replicas:
        return 0
    return min(sum(ordered[: len(ordered) - full]) // (replicas - full) for full in range(replicas))
