"""A cluster is in one region, and its etcds survive the loss of a zone."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster.layout import member_zones
from cluster.spec import Cluster, EtcdCluster, EtcdHosts
from stacks.policies.data import MACHINES
from stacks.policies.model import Resource, Rule, Violation, of_spec
from stacks.policies.values import at, first, is_hidden, is_one_of, names_of, of_types, text

_ZONE = re.compile(r"(?P<region>[a-z]{2,}(-[a-z]+)+-\d+)[a-z]")
"""A zone of AWS by letter. Zone IDs such as usw2-az1 abbreviate their region."""
_REGION_OF_GOOGLE = re.compile(r"(.*?-[a-z]+\d+)(-[a-z])?")

WORLDWIDE: Mapping[str, frozenset[str]] = {
    "azure-native": frozenset(
        {
            "azure-native:privatedns:PrivateZone",
            "azure-native:privatedns:VirtualNetworkLink",
        }
    ),
}
"""Package -> types that belong to no region and must have the location "global"."""

_PLACES_OF_GOOGLE = ("region", "zone", "location", "replication.userManaged.replicas[].location")


def _one_region(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    region = cluster.spec.control_plane.region
    for resource in resources:
        for path, place in _regions(resource):
            if place != region:
                yield Violation(
                    "one-region",
                    resource,
                    f"{resource.type} {resource.name} is in {place} ({path}), but the cluster is in {region}",
                    f"move it to {region}, or to a separate cluster",
                )


def _regions(resource: Resource) -> Iterator[tuple[str, str]]:
    """Yield each region that a resource names, with the property that names it."""
    package = resource.type.rpartition("pulumi:providers:")[2].partition(":")[0]
    if package == "aws":
        yield from _of_aws(resource)
    elif package == "gcp":
        yield from _of_google(resource)
    elif package == "azure-native":
        location = text(resource.inputs, "location")
        worldwide = resource.type in WORLDWIDE["azure-native"] and location == "global"
        if location and not is_hidden(location) and not worldwide:
            yield "location", location.replace(" ", "").lower()


def _of_aws(resource: Resource) -> Iterator[tuple[str, str]]:
    region = text(resource.inputs, "region")
    if region and not is_hidden(region):
        yield "region", region
    if zone := _ZONE.fullmatch(text(resource.inputs, "availabilityZone")):
        yield "availabilityZone", zone["region"]


def _of_google(resource: Resource) -> Iterator[tuple[str, str]]:
    for path in _PLACES_OF_GOOGLE:
        for value in at(resource.inputs, path):
            if isinstance(value, str) and value and not is_hidden(value):
                place = value.rpartition("/")[2].lower()
                match = _REGION_OF_GOOGLE.fullmatch(place)
                yield path, match[1] if match else place
    copied = first(resource.inputs, "replication.auto") if resource.type == "gcp:secretmanager/secret:Secret" else None
    if copied is not None and not is_hidden(copied):
        yield "replication.auto", "any region that Google chooses"


def _zones(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    machines_by_role = _machines_by_role(resources)
    for role, etcd in (("main", cluster.spec.etcd.main), ("events", cluster.spec.etcd.events)):
        if etcd.members < 2 or etcd.allow_single_zone or cluster.is_lab:
            continue
        if role == "events" and etcd.hosts is EtcdHosts.MAIN:
            continue
        machines = machines_by_role.get(role, [])
        zones = [zone for _, zone in machines] or _planned(cluster, etcd)
        zone, most = Counter(zones).most_common(1)[0]
        if etcd.members - most > etcd.members // 2:
            continue
        yield Violation(
            "etcd-in-zones",
            next((machine for machine, its_zone in machines if its_zone == zone), of_spec(cluster)),
            f"etcd {role}: {most} of {etcd.members} members are in zone {zone}; losing it stops the cluster",
            f"spread them over three zones, or set etcd.{role}.allow_single_zone: true",
            path=("control_plane", "zones"),
        )


def _planned(cluster: Cluster, etcd: EtcdCluster) -> list[str]:
    zones = member_zones(cluster.spec)
    return [zones[number % len(zones)] for number in range(etcd.members)]


def _machines_by_role(resources: Sequence[Resource]) -> Mapping[str, list[tuple[Resource, str]]]:
    """Return role -> the machines of its members, each with its zone; only roles whose zones are all known."""
    by_role: dict[str, list[tuple[Resource, str]]] = defaultdict(list)
    for machine in of_types(resources, MACHINES):
        role = re.search(r"etcd-(main|events)-\d+$", machine.name)
        if role:
            by_role[role[1]].append((machine, _zone(machine, resources)))
    return {role: machines for role, machines in by_role.items() if all(zone for _, zone in machines)}


def _zone(machine: Resource, resources: Sequence[Resource]) -> str:
    """Return a machine's zone, "" if unknown. On AWS it is the subnet's if the machine does not name it."""
    zone = text(machine.inputs, "availabilityZone", "zone", "zones[]") or text(machine.outputs, "availabilityZone")
    if zone:
        return "" if is_hidden(zone) else zone
    interface = _named(resources, "aws:ec2/networkInterface:NetworkInterface", machine, _INTERFACES)
    subnet = _named(resources, "aws:ec2/subnet:Subnet", interface or machine, ("subnetId",))
    return text(subnet.inputs, "availabilityZone", "availabilityZoneId") if subnet else ""


_INTERFACES = ("primaryNetworkInterface.networkInterfaceId", "networkInterfaces[].networkInterfaceId")


def _named(resources: Sequence[Resource], type_: str, holder: Resource, paths: tuple[str, ...]) -> Resource | None:
    value: Any = first(holder.inputs, *paths)
    if value is None or is_hidden(value):
        return None
    return next((resource for resource in of_types(resources, (type_,)) if is_one_of(value, names_of(resource))), None)


RULES = (
    Rule(
        "one-region",
        "All resources of a cluster are in its region, including its keys and copies of its secrets.",
        _one_region,
        "A cluster across two regions fails as a whole when the link between them fails.",
    ),
    Rule(
        "etcd-in-zones",
        "No zone holds so many members of an etcd that its loss stops the etcd, unless allow_single_zone accepts that.",
        _zones,
    ),
)
