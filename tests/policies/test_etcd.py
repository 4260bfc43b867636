"""Rules for specs, and for the machines and disks of etcd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.spec import Cluster
from stacks.policies.etcd import EVENTS_APART_ABOVE, HEAVY_ABOVE, HEAVY_IOPS, LEAST_IOPS, max_nodes
from stacks.policies.model import Resource
from tests.policies.support import REGIONS, ZONES, broken, resource

Build = Callable[..., Cluster]

BACKUP = {"every": "15m", "keep": "30d"}
NETWORK = {"aws": "io2", "azure": "premium_ssd_v2", "gcp": "hyperdisk-balanced"}
DISKS = {
    "aws": ("aws:ebs/volume:Volume", "iops"),
    "azure": ("azure-native:compute:Disk", "diskIOPSReadWrite"),
    "gcp": ("gcp:compute/disk:Disk", "provisionedIops"),
}


@pytest.fixture(scope="session")
def lemur(build: Build) -> Build:
    """lemur(cloud, workers, main={...}, events={...}): a cluster in production."""

    def build_lemur(cloud: str, workers: int = 10, profile: str = "production", **etcd: dict[str, Any]) -> Cluster:
        defaults = {"members": 3, "disk": NETWORK[cloud], "hosts": "dedicated", "backup": None}
        return build(
            {
                "name": "lemur",
                "profile": profile,
                "control_plane": {"cloud": cloud, "region": REGIONS[cloud], "zones": ZONES[cloud]},
                "etcd": {role: {**defaults, **etcd.get(role, {})} for role in ("main", "events")},
                "pools": {"workers": None, "cpu": {"machine": "m7i.large", "max": workers}},
            },
            {},
        )

    return build_lemur


@pytest.mark.parametrize("cloud", REGIONS)
def test_events_have_dedicated_hosts_above_a_thousand_nodes(lemur: Build, cloud: str) -> None:
    def violations(workers: int, **more: Any) -> list[Any]:
        return broken("etcd-events-apart", lemur(cloud, workers, **{"events": {"hosts": "main"}, **more}), ())

    assert violations(EVENTS_APART_ABOVE) == []
    (violation,) = violations(EVENTS_APART_ABOVE + 1)
    assert (violation.severity, violation.path) == ("error", ("etcd", "events", "hosts"))
    assert violation.resource.urn == ""
    assert [violation.severity for violation in violations(EVENTS_APART_ABOVE + 1, profile="development")] == [
        "warning"
    ]
    assert violations(EVENTS_APART_ABOVE + 1, events={}) == []


@pytest.mark.parametrize("cloud", REGIONS)
def test_main_on_local_disks_has_backups(lemur: Build, cloud: str) -> None:
    local = {"disk": "local-nvme"}
    (violation,) = broken("etcd-backed-up", lemur(cloud, main=local), ())
    assert violation.path == ("etcd", "main")
    assert broken("etcd-backed-up", lemur(cloud, main={**local, "backup": BACKUP}), ()) == []
    assert broken("etcd-backed-up", lemur(cloud), ()) == []
    assert broken("etcd-backed-up", lemur(cloud, events=local), ()) == []


def test_a_lab_keeps_nothing_and_needs_no_backups(lab: Cluster) -> None:
    assert broken("etcd-backed-up", lab, ()) == []


@pytest.mark.parametrize("cloud", REGIONS)
@pytest.mark.parametrize(("workers", "least"), [(HEAVY_ABOVE, LEAST_IOPS), (HEAVY_ABOVE + 1, HEAVY_IOPS)])
def test_network_disks_of_etcd_have_enough_iops_for_the_cluster_size(
    lemur: Build, cloud: str, workers: int, least: int
) -> None:
    def violations(iops: int, role: str = "main", **more: Any) -> list[Any]:
        other = {"main": "events", "events": "main"}[role]
        etcd = {role: {"iops": iops, **more}, other: {"iops": HEAVY_IOPS}}
        return broken("etcd-iops", lemur(cloud, workers, **etcd), ())

    for role in ("main", "events"):
        assert violations(least, role) == []
        (violation,) = violations(least - 1, role)
        assert violation.path == ("etcd", role, "iops")
        assert str(least) in violation.way_out
    assert violations(least - 1, disk="local-nvme") == []


@pytest.mark.parametrize("cloud", REGIONS)
def test_a_disk_of_etcd_has_the_iops_of_the_spec(lemur: Build, cloud: str) -> None:
    type_, path = DISKS[cloud]
    cluster = lemur(cloud, main={"iops": 4000}, events={"iops": 1000})

    def slow_disks(name: str, iops: Any) -> list[Resource]:
        return [
            violation.resource for violation in broken("etcd-iops", cluster, (resource(type_, {path: iops}, name),))
        ]

    assert [violation.name for violation in slow_disks("lemur-etcd-main-1", 3999)] == ["lemur-etcd-main-1"]
    assert (
        slow_disks("lemur-etcd-main-1", 4000)
        == slow_disks("lemur-etcd-events-1", 1000)
        == slow_disks("another", 1)
        == []
    )
    assert slow_disks("lemur-etcd-main-1", "[secret]") == []


def machines(cloud: str, zones: list[str], role: str = "main") -> tuple[Resource, ...]:
    """Return machines of members, each in its zone, in the format of each cloud."""
    formats: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
        "aws": ("aws:ec2/instance:Instance", lambda zone: {"availabilityZone": zone}),
        "azure": ("azure-native:compute:VirtualMachine", lambda zone: {"zones": [zone]}),
        "gcp": ("gcp:compute/instance:Instance", lambda zone: {"zone": zone}),
    }
    type_, inputs = formats[cloud]
    return tuple(resource(type_, inputs(zone), f"lemur-etcd-{role}-{i + 1}") for i, zone in enumerate(zones))


@pytest.mark.parametrize("cloud", REGIONS)
@pytest.mark.parametrize("role", ["main", "events"])
def test_members_are_spread_so_that_losing_a_zone_leaves_a_quorum(lemur: Build, cloud: str, role: str) -> None:
    a, b, c = map(str, ZONES[cloud])
    rule, cluster, five = "etcd-in-zones", lemur(cloud), lemur(cloud, **{role: {"members": 5}})
    assert broken(rule, cluster, machines(cloud, [a, b, c], role)) == []
    assert broken(rule, five, machines(cloud, [a, a, b, b, c], role)) == []
    (violation,) = broken(rule, cluster, machines(cloud, [b, a, b], role))
    assert f"2 of 3 members are in zone {b}" in violation.message
    assert violation.resource.name == f"lemur-etcd-{role}-1"
    assert len(broken(rule, five, machines(cloud, [a, a, a, b, c], role))) == 1
    accepted = lemur(cloud, **{role: {"allow_single_zone": True}})
    assert broken(rule, accepted, machines(cloud, [a, a, a], role)) == []


def test_a_machine_of_aws_is_in_the_zone_of_the_subnet_of_its_interface(lemur: Build) -> None:
    cluster = lemur("aws")

    def resources(zones: list[str]) -> list[Resource]:
        machines_ = []
        for i, zone in enumerate(zones):
            name = f"lemur-etcd-main-{i + 1}"
            machines_ += [
                resource("aws:ec2/subnet:Subnet", {"availabilityZoneId": zone}, f"s{i}", outputs={"id": f"subnet-{i}"}),
                resource(
                    "aws:ec2/networkInterface:NetworkInterface",
                    {"subnetId": f"subnet-{i}"},
                    name,
                    outputs={"id": f"eni-{i}"},
                ),
                resource(
                    "aws:ec2/instance:Instance", {"primaryNetworkInterface": {"networkInterfaceId": f"eni-{i}"}}, name
                ),
            ]
        return machines_

    assert broken("etcd-in-zones", cluster, tuple(resources(["use1-az1", "use1-az2", "use1-az3"]))) == []
    assert len(broken("etcd-in-zones", cluster, tuple(resources(["use1-az1", "use1-az1", "use1-az3"])))) == 1


def test_without_machines_the_zones_come_from_the_plan(build: Build) -> None:
    plane = {"cloud": "gcp", "region": "us-central1", "zones": ["us-central1-a", "us-central1-b"]}
    etcd = {"main": {"members": 3}, "events": {"hosts": "main"}}
    two_zones = build({"control_plane": plane, "etcd": etcd})
    (violation,) = broken("etcd-in-zones", two_zones, ())
    assert (violation.resource.urn, violation.path) == ("", ("control_plane", "zones"))


def test_max_nodes_counts_pools_at_their_maximum_and_machines_at_sites(build: Build) -> None:
    cluster = build({"pools": {"cpu": {"machine": "m7i.large", "max": 7}}})
    assert max_nodes(cluster) == 7 + len(cluster.host_list())
