"""The part of the model that is about Ceph: the storage of a site, on disks of its own machines, run by Rook.

`components.ceph.render` makes Rook's resources of it, `components.ceph.host` tells storage hosts which disks are meant.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from cluster import disk_names
from cluster.model import Model
from cluster.quantities import Bytes, Name, Network

USABLE = 0.85
"""Share of the disks that may be full: above it Ceph warns (mon_osd_nearfull_ratio) ("Health checks")."""

ById = Annotated[str, BeforeValidator(disk_names.parser("CPH-005")), disk_names.SCHEMA]


class FailureDomain(StrEnum):
    """What may be lost as a whole: no two replicas are in one."""

    RACK = "rack"
    HOST = "host"


class Disks(Model):
    """Which disks of a storage host Ceph is given. A disk must meet all of it, and hold nothing."""

    by_id: ById
    """Name in /dev/disk/by-id, with * and ? in it: the model, say. Names of the kernel (sdb) change with a boot."""
    count: int = Field(ge=1, le=128)
    """How many of them every storage host has."""
    min_size: Bytes
    """A smaller disk isn't meant. Capacity is reckoned with it."""
    max_size: Bytes | None = None
    """A larger disk isn't meant. Default: none is too large."""
    rotational: bool = False
    """Whether the platters of a hard disk turn in it."""
    allow_every_disk: bool = False
    """Accept a by_id such as nvme-*, which means every empty disk of a kind, also one that is put in for another use."""

    @property
    def names_no_model(self) -> bool:
        """Whether by_id says little more than the bus."""
        return disk_names.names_no_model(self.by_id)


class Team(Model):
    """What a team may store. What it has no size for, it has no class or user for."""

    block: Bytes | None = None
    """Most data in its pool of block devices (class block-<team>), before replication."""
    file: Bytes | None = None
    """Most data in its pool of the shared file system (class file-<team>), before replication."""
    object: Bytes | None = None
    """Most data of its user of the object store, before replication."""
    disks: Name | None = None
    """One of `disks`, for block and file: disks that no other team has keep its load from others. Default: the first."""

    @property
    def quotas(self) -> dict[str, int]:
        """Kind -> bytes, of those that are given."""
        given = {"block": self.block, "file": self.file, "object": self.object}
        return {kind: size for kind, size in given.items() if size is not None}


class Networks(Model):
    """Ranges that Ceph's daemons listen in, on the hosts' own interfaces."""

    public: tuple[Network, ...] = Field(default=(), strict=False)
    """For clients and monitors. Default: the racks of the storage hosts."""
    cluster: tuple[Network, ...] = Field(default=(), strict=False)
    """For replication alone, on a second port of every storage host. Default: replication shares the public network."""


class Ceph(Model):
    """A site's storage. The defaults survive the loss of a rack."""

    hosts: tuple[Name, ...] = Field(min_length=1, strict=False)
    """Pools of the site whose machines are storage hosts."""
    disks: dict[Name, Disks] = Field(min_length=1)
    """Kinds of disks: name -> which. The name becomes the device class."""
    monitors: int = Field(default=3, ge=1, le=9)
    """An odd number, each on a storage host of its own: 3 survive one loss, 5 two."""
    replicas: int = Field(default=3, ge=1, le=9)
    """Copies of every object, each in a failure domain of its own."""
    failure_domain: FailureDomain = Field(default=FailureDomain.RACK, strict=False)
    """rack, or host where there are too few racks."""
    networks: Networks = Networks()
    """Ranges that Ceph's daemons listen in."""
    encrypt: bool = False
    """Encrypt everything on the wire (msgr2's secure mode); costs processor on every host."""
    osd_memory: Bytes = 4 * 2**30
    """Memory of a disk's daemon (OSD). Rook wants at least 2GiB and its chart gives 4GiB."""
    teams: dict[Name, Team] = Field(default={})
    """Who may store how much: name -> team. Each has pools of its own."""

    @property
    def first_disks(self) -> str:
        """The kind of disks for whatever names none."""
        return next(iter(self.disks))

    def disks_of(self, kind: str, team: Team) -> str:
        """The kind of disks that a team's data of a kind are on; the object store is shared, and on the first."""
        return self.first_disks if kind == "object" else team.disks or self.first_disks


def most_data(capacities: list[int], replicas: int) -> int:
    """Bytes of data that fit before replication, when each of its replicas is in another failure domain.

    capacities: bytes of each domain. A domain larger than the others together can fill is used in part.
    """
    ordered = sorted(capacities)
    if len(ordered) < replicas:
        return 0
    return min(sum(ordered[: len(ordered) - full]) // (replicas - full) for full in range(replicas))
