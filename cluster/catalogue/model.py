"""Types of the catalogue of a cloud, cluster/catalogue/<cloud>.yaml.

Figures are the cloud's own, in its own units: a GB is what its page or API calls one. Figures without a source are
None, or left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from cluster.model import Model

_NAME = "[a-z0-9-]+"
_PLACE = f"{_NAME}(:{_NAME}(,{_NAME})*)?"


def _places(text: Any) -> Any:
    """Parse ``"eastus:1,3 westus"`` -> {"eastus": ("1", "3"), "westus": ()}."""
    if not (isinstance(text, str) and re.fullmatch(f"{_PLACE}( {_PLACE})*", text)):
        raise ValueError("write regions separated by spaces, each with its zones after a colon: eastus:1,3 westus")
    places: dict[str, tuple[str, ...]] = {}
    for word in text.split():
        region, _, zones = word.partition(":")
        if region in places:
            raise ValueError(f"region {region} is listed twice")
        places[region] = tuple(zones.split(",")) if zones else ()
    return places


def _words(text: Any) -> Any:
    if not (isinstance(text, str) and text):
        raise ValueError("write names separated by spaces")
    return tuple(text.split())


class Nvme(NamedTuple):
    """Local NVMe disks that a machine always has."""

    disks: int
    gb: int
    """Size of each."""


def _nvme(text: Any) -> Any:
    """Parse ``"2x1900"``: two disks of 1900 GB."""
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text) if isinstance(text, str) else None
    if not match:
        raise ValueError("write local disks as 2x1900, for two of 1900 GB each")
    return Nvme(int(match[1]), int(match[2]))


Places = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_places)]
"""Region -> zones. Empty if the region has no zones, or if it isn't known which of them."""
Names = Annotated[tuple[str, ...], BeforeValidator(_words)]
Keys = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
Arch = Literal["amd64", "arm64"]


class Source(Model):
    """A source of figures."""

    title: str
    date: Annotated[date, Field(strict=False)]
    """Date of the document, or the day it was read (2026-11-21) if it has none."""


class Regions(Model):
    """Regions and their zones, named as in a spec."""

    sources: Keys
    zones: Places
    zone_ids: Places = Field(default_factory=dict)
    """AWS only: zone IDs, which are the same in every account."""
    zones_unknown: Names = ()
    """Regions whose zones aren't known."""


class Gpu(Model):
    """A GPU of a machine."""

    kind: str
    memory_gb: float | None = None


class MachineType(Model):
    """One machine type."""

    vcpus: int = Field(ge=1)
    memory_gb: float = Field(gt=0)
    gpus: int = 0
    nics: int | None = None
    """Maximum number of network interfaces."""
    data_disks: int | None = None
    """Maximum number of network disks."""
    gbps: float | None = None
    """Maximum network bandwidth, with bursts if the cloud has them."""
    nvme: Annotated[Nvme | None, BeforeValidator(_nvme)] = None
    temp_gb: int | None = None
    """Local disk that isn't a separate NVMe device, or isn't documented as one."""
    efa: int = 0
    """Maximum number of Elastic Fabric Adapters."""
    offered: Places | None = None
    """Where it is offered, if that differs from its series."""


class Series(Model):
    """Machine types of one kind."""

    series: str
    sources: Keys
    arch: Arch = "amd64"
    gpu: Gpu | None = None
    local_nvme: Literal["listed", "on-request", "unstated"] = "listed"
    """listed: a type has the disks in its `nvme`, or none. on-request: disks are added when the machine is created."""
    accelerated_networking: bool | None = None
    """Only on Azure."""
    infiniband_gbps: int | None = None
    """Sum over all links of a machine."""
    rdma: Literal["roce"] | None = None
    placement: Keys | None = None
    """Strategies of placement groups."""
    offered: Places
    types: dict[str, MachineType]


class Others(Model):
    """Machine types of which only the name is known, by CPU architecture."""

    sources: Keys
    amd64: Names
    arm64: Names
    unstated: Names = ()


class DiskKind(Model):
    """A kind of data disk."""

    sources: Keys
    fast: bool
    """Whether a write takes less than a millisecond, as etcd's log needs."""
    latency: str
    """Latency, in words that follow "has"."""
    max_gib: int | None = None
    max_iops: int | None = None
    max_mb_per_s: int | None = None


class UserData(Model):
    """Limit of the text that a host gets at boot."""

    sources: Keys
    max_bytes: int
    """Size before base64 encoding."""


class NameLength(Model):
    """Length of a name in characters."""

    sources: Keys
    min: int
    max: int


class LinkMtu(Model):
    """MTUs that links of the cloud's network can have, in bytes."""

    sources: Keys
    min: int
    max: int


class EtcdDiskSizes(Model):
    """Sizes of etcd's disks in first specs."""

    main: str
    events: str


class Choices(Model):
    """What Menagerie picks of the above: for first specs, in hints of `check`, and as defaults."""

    machines: Annotated[tuple[Names, ...], Field(strict=False, min_length=1)]
    """Candidates for (control plane, workers). The first pair that a region offers in three zones is used."""
    local_disk_machine: str
    """A machine type with a local disk for etcd."""
    etcd_disk: str
    """The network disk for etcd without one."""
    etcd_disk_sizes: EtcdDiskSizes
    volumes: Names
    """Candidates for the default disk of volumes, in order of preference."""


class Machine(NamedTuple):
    """What is known about a machine type. `series` and `type` are None if only the name is known."""

    name: str
    arch: Arch | None
    series: Series | None = None
    type: MachineType | None = None

    @property
    def offered(self) -> Mapping[str, tuple[str, ...]] | None:
        """Region -> zones; None if it isn't known."""
        if self.series is None or self.type is None:
            return None
        return self.series.offered if self.type.offered is None else self.type.offered


class Catalogue(Model):
    """Everything known about one cloud."""

    sources: dict[str, Source]
    regions: Regions
    disks: dict[str, DiskKind]
    user_data: UserData
    names: dict[str, NameLength]
    """Kind of resource -> length of its name."""
    link_mtu: LinkMtu
    choices: Choices
    machines: Annotated[tuple[Series, ...], Field(strict=False)]
    others: Others

    @cached_property
    def region_names(self) -> tuple[str, ...]:
        return (*self.regions.zones, *self.regions.zones_unknown)

    @cached_property
    def regions_with_offers(self) -> frozenset[str]:
        """Regions whose offers are known."""
        return frozenset(region for series in self.machines for region in series.offered)

    @cached_property
    def machine_types(self) -> dict[str, Machine]:
        """All machine types by name."""
        lists: tuple[tuple[Arch | None, tuple[str, ...]], ...] = (
            ("amd64", self.others.amd64),
            ("arm64", self.others.arm64),
            (None, self.others.unstated),
        )
        machines = {name: Machine(name, arch) for arch, names in lists for name in names}
        for series in self.machines:
            machines |= {name: Machine(name, series.arch, series, each) for name, each in series.types.items()}
        return machines

    @cached_property
    def as_of(self) -> date:
        """Date of the list of machine types. Newer ones aren't known."""
        return self.sources[self.others.sources[0]].date
