"""CLD-005, CLD-007: what pools in the region need from their cloud."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.catalogue import Machine
from cluster.check.catalogue import of_cloud
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.fields import did_you_mean
from cluster.pools import Placement, Pool
from cluster.spec import Cloud, Profile


def _in_region(subject: Subject) -> Iterator[tuple[str, Pool]]:
    return ((name, pool) for name, pool in subject.spec.pools.items() if pool.site is None)


def _machine(subject: Subject, name: str | None) -> Machine | None:
    facts = of_cloud(subject)
    return facts.machine_types.get(name or "") if facts else None


def quota(subject: Subject) -> Iterator[Finding]:
    """Pools fit into the account's quota: a pool that hits it silently stops growing, and its pods wait."""
    limit = subject.spec.control_plane.vcpu_quota
    if limit is None:
        return
    vcpus = {}
    for name, pool in _in_region(subject):
        machine = _machine(subject, pool.machine)
        if machine and machine.type:
            vcpus[name] = pool.max * machine.type.vcpus
    if sum(vcpus.values()) <= limit:
        return
    most = max(vcpus, key=lambda name: vcpus[name])
    others = sum(vcpus.values()) - vcpus[most]
    also: tuple[Where, ...] = (("control_plane", "vcpu_quota"),)
    yield Finding(
        ("pools", most, "max"),
        f"pools.{most} max {subject.spec.pools[most].max} needs {vcpus[most]:,} vCPUs"
        f"{f', and other pools {others:,}' if others else ''}; control_plane.vcpu_quota is {limit:,}",
        "write a smaller max, or request a larger quota from the cloud and write it here",
        also=also,
    )


def zones_of_pools(subject: Subject) -> Iterator[Finding]:
    """Pools use the control plane's zones, which have the subnets and load balancers."""
    plane_zones = [str(zone) for zone in subject.spec.control_plane.zones]
    for name, pool in _in_region(subject):
        where: Where = ("pools", name, "zones")
        for index, zone in enumerate(map(str, pool.zones)):
            if zone not in plane_zones:
                message = f"pools.{name} names zone {zone}, which isn't in control_plane.zones{did_you_mean(zone, plane_zones)}"
                hint = f"write one of {', '.join(plane_zones)}, or add {zone} to control_plane.zones"
                yield Finding((*where, index), message, hint, also=(("control_plane", "zones"),))
        if pool.placement is Placement.COMPACT and len(pool.zones or plane_zones) > 1:
            message = f"pools.{name} has placement compact in {len(pool.zones or plane_zones)} zones; machines in different zones are never close"
            place = where if pool.zones else ("pools", name, "placement")
            yield Finding(place, message, f"name one zone: zones: [{(pool.zones or plane_zones)[0]}]", also=(where,))


def spot_or_reserved(subject: Subject) -> Iterator[Finding]:
    """A pool is spot or reserved: no cloud has spot machines in reserved capacity."""
    for name, pool in _in_region(subject):
        if pool.spot and pool.reservation:
            message = f"pools.{name} has spot and reservation {pool.reservation}; a machine can only be one of the two"
            yield Finding(
                ("pools", name, "spot"), message, "remove one of the two", also=(("pools", name, "reservation"),)
            )


def fast_interfaces(subject: Subject) -> Iterator[Finding]:
    """The machine type has interfaces for RDMA. Google Cloud isn't checked: every new machine type has gVNIC."""
    cloud = subject.spec.control_plane.cloud
    for name, pool in _in_region(subject):
        machine = _machine(subject, pool.machine)
        if not pool.rdma or machine is None or machine.type is None or machine.series is None or cloud is Cloud.GCP:
            continue
        kind = "Elastic Fabric Adapter" if cloud is Cloud.AWS else "InfiniBand"
        if not (machine.type.efa if cloud is Cloud.AWS else machine.series.infiniband_gbps):
            yield Finding(
                ("pools", name, "rdma"),
                f"pools.{name} has rdma, but {pool.machine} has no {kind}",
                "remove rdma, or write a machine type that has it",
                also=(("pools", name, "machine"),),
            )


def driver(subject: Subject) -> Iterator[Finding]:
    """Machines with GPUs have a driver: without one, pods see no GPUs."""
    production = subject.spec.profile is Profile.PRODUCTION
    for name, pool in _in_region(subject):
        machine = _machine(subject, pool.machine)
        if machine is None or machine.type is None or not machine.type.gpus or pool.image or pool.allow_no_driver:
            continue
        message = (
            f"pools.{name} has {machine.type.gpus} GPUs per machine, but the cloud's Debian has no driver for them; "
            "pods would see no GPUs"
        )
        hint = (
            f"write pools.{name}.image: an image with the driver, or allow_no_driver: true if the cluster installs it"
        )
        yield Finding(
            ("pools", name, "machine"),
            message,
            hint,
            also=(("pools", name, "image"), ("pools", name, "allow_no_driver")),
            severity="error" if production else "warning",
        )


RULES: tuple[tuple[str, Rule], ...] = (
    ("CLD-005", quota),
    ("CLD-007", zones_of_pools),
    ("CLD-007", spot_or_reserved),
    ("CLD-007", fast_interfaces),
    ("CLD-007", driver),
)
