"""What the catalogue says of a cloud: the types of cluster/catalogue/<cloud>.yaml.

Figures are the cloud's own, in its own units: a GB is what its page or API calls one. What stands nowhere
in a source is None, or left out.
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
    """``"eastus:1,3 westus"`` -> {"eastus": ("1", "3"), "westus": ()}."""
    if not (isinstance(text, str) and re.fullmatch(f"{_PLACE}( {_PLACE})*", text)):
        raise ValueError("regions are words, each with its zones after a colon: eastus:1,3 westus")
    places: dict[str, tuple[str, ...]] = {}
    for word in text.split():
        region, _, zones = word.partition(":")
        if region in places:
            raise ValueError(f"region {region} stands twice")
        places[region] = tuple(zones.split(",")) if zones else ()
    return places


def _words(text: Any) -> Any:
    if not (isinstance(text, str) and text):
        raise ValueError("names are words with spaces between them")
    return tuple(text.split())


class Nvme(NamedTuple):
    """Local NVMe disks that a machine always has."""

    disks: int
    gb: int
    """Of each."""


def _nvme(text: Any) -> Any:
    """``"2x1900"``: two disks of 1900 GB."""
    found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text) if isinstance(text, str) else None
    if not found:
        raise ValueError("local disks are written as 2x1900: two of 1900 GB each")
    return Nvme(int(found[1]), int(found[2]))


Places = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_places)]
"""Region -> zones. Without zones: the region has none, or which of them isn't known."""
Names = Annotated[tuple[str, ...], BeforeValidator(_words)]
Keys = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
Arch = Literal["amd64", "arm64"]


class Source(Model):
    """Where figures come from."""

    title: str
    date: Annotated[date, Field(strict=False)]
    """Of the document; of reading it (2026-11-21) where it has none."""


class Regions(Model):
    """Regions and their zones, in the words that a spec uses."""

    sources: Keys
    zones: Places
    zone_ids: Places = Field(default_factory=dict)
    """AWS: names of the zones that are the same in every account."""
    zones_unknown: Names = ()
    """Regions of which only the name is known."""


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
    """Network interfaces at most."""
    data_disks: int | None = None
    """Network disks at most."""
    gbps: float | None = None
    """Network bandwidth at most; with bursts where the cloud has them."""
    nvme: Annotated[Nvme | None, BeforeValidator(_nvme)] = None
    temp_gb: int | None = None
    """Local disk that is no NVMe device of its own, or isn't said to be one."""
    efa: int = 0
    """Elastic Fabric Adapters at most."""
    offered: Places | None = None
    """Where it differs from its series."""


class Series(Model):
    """Machine types of one kind."""

    series: str
    sources: Keys
    arch: Arch = "amd64"
    gpu: Gpu | None = None
    local_nvme: Literal["listed", "on-request", "unstated"] = "listed"
    """listed: a type has what its `nvme` says, and none without. on-request: disks are added when it is made."""
    accelerated_networking: bool | None = None
    """Azure's."""
    infiniband_gbps: int | None = None
    """Of all links of a machine together."""
    rdma: Literal["roce"] | None = None
    placement: Keys | None = None
    """Strategies of placement groups."""
    offered: Places
    types: dict[str, MachineType]


class Others(Model):
    """Machine types of which only the name is known, by processor architecture."""

    sources: Keys
    amd64: Names
    arm64: Names
    unstated: Names = ()


class DiskKind(Model):
    """A kind of data disk."""

    sources: Keys
    fast: bool
    """Whether a write takes less than a millisecond, as etcd's log wants."""
    latency: str
    """In words that follow `has`."""
    max_gib: int | None = None
    max_iops: int | None = None
    max_mb_per_s: int | None = None


class UserData(Model):
    """The text that a host is given at boot."""

    sources: Keys
    max_bytes: int
    """Before base64."""


class NameLength(Model):
    """Characters in a name."""

    sources: Keys
    min: int
    max: int


class Machine(NamedTuple):
    """What is known of a machine type. `series` and `type` are None where it is the name alone."""

    name: str
    arch: Arch | None
    series: Series | None = None
    type: MachineType | None = None

    @property
    def offered(self) -> Mapping[str, tuple[str, ...]] | None:
        """Region -> zones; None where it isn't known."""
        if self.series is None or self.type is None:
            return None
        return self.series.offered if self.type.offered is None else self.type.offered


class Catalogue(Model):
    """Everything known of one cloud."""

    sources: dict[str, Source]
    regions: Regions
    disks: dict[str, DiskKind]
    user_data: UserData
    names: dict[str, NameLength]
    """Kind of resource -> how long its name may be."""
    machines: Annotated[tuple[Series, ...], Field(strict=False)]
    others: Others

    @cached_property
    def region_names(self) -> tuple[str, ...]:
        return (*self.regions.zones, *self.regions.zones_unknown)

    @cached_property
    def regions_with_offers(self) -> frozenset[str]:
        """Regions of which it is known what they offer."""
        return frozenset(region for series in self.machines for region in series.offered)

    @cached_property
    def machine_types(self) -> dict[str, Machine]:
        """Every machine type by its name."""
        lists: tuple[tuple[Arch | None, tuple[str, ...]], ...] = (
            ("amd64", self.others.amd64),
            ("arm64", self.others.arm64),
            (None, self.others.unstated),
        )
        known = {name: Machine(name, arch) for arch, names in lists for name in names}
        for series in self.machines:
            known |= {name: Machine(name, series.arch, series, each) for name, each in series.types.items()}
        return known

    @cached_property
    def as_of(self) -> date:
        """The date of the list of machine types: what is newer can't be known."""
        return self.sources[self.others.sources[0]].date
