"""Types of cluster/hardware/*.yaml, and of the expectations that hosts get to compare themselves with."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cluster.catalogue.model import Source
from cluster.model import Model

Keys = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
Rows = Field(default=(), strict=False)


class Gpu(Model):
    """A GPU, as nvidia-smi names and measures it. None: there is no source, so the value isn't compared."""

    product: str
    memory_mib: int
    pcie_gen: int | None = None
    pcie_width: int | None = None
    nvlinks: int | None = None
    nvlink_gb_s: float | None = None
    """Bandwidth of one link in one direction."""
    sm_mhz: int | None = None
    """Maximum clock."""
    memory_mhz: int | None = None
    ecc: bool | None = None


class Product(Gpu):
    """An entry of gpus.yaml."""

    sources: Keys

    @property
    def gpu(self) -> Gpu:
        return Gpu(**self.model_dump(exclude={"sources"}))


class Gpus(Gpu):
    """The GPUs of a machine, which are all of one kind."""

    count: int = Field(ge=1)
    driver_branch: str = ""
    """First number of the driver's version; "" if it isn't compared."""


class Disks(Model):
    """At least this many disks of at least this size."""

    count: int = Field(ge=1)
    gb: int = Field(ge=1)
    """Decimal gigabytes, as disks are sold."""
    nvme: bool = False


class Ports(Model):
    """At least this many ports that are up with at least this speed."""

    ports: int = Field(ge=1)
    gbit_s: int | None = None


class Expected(Model):
    """Expected hardware of a host. None or empty values aren't compared."""

    kind: str
    sockets: int | None = None
    cpus: int | None = None
    """Logical CPUs."""
    memory_gib: float | None = None
    """Up to 5 % less is accepted, as firmware and kernel reserve some."""
    disks: tuple[Disks, ...] = Rows
    links: Ports | None = None
    """Ethernet ports."""
    rdma: Ports | None = None
    """RDMA ports, InfiniBand or RoCE."""
    gpus: Gpus | None = None


class Machine(Model):
    """An entry of machines.yaml."""

    sources: Keys
    sockets: int | None = None
    cpus: int | None = None
    memory_gib: float | None = None
    disks: tuple[Disks, ...] = Rows
    rdma: Ports | None = None
    gpu: str
    gpus: int = Field(ge=1)


class GpuFile(Model):
    """gpus.yaml."""

    sources: dict[str, Source]
    gpus: dict[str, Product]


class MachineFile(Model):
    """machines.yaml."""

    sources: dict[str, Source]
    kinds: dict[str, Machine]


class CloudFile(Model):
    """clouds.yaml: cloud -> series -> GPU."""

    sources: dict[str, Source]
    aws: dict[str, str]
    azure: dict[str, str]
    gcp: dict[str, str]
