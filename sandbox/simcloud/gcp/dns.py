"""Cloud DNS."""

from __future__ import annotations

import re
from ipaddress import ip_address

from sandbox.simcloud.gcp.common import bare, chosen, labelled, labels, last, numbered
from sandbox.simcloud.gcp.tokens import NETWORK, ZONE
from sandbox.simcloud.gcp.words import PREVENTED, conflict
from sandbox.simcloud.identifiers import number
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, RefusalError, ResourceType, Saying
from sandbox.simcloud.values import Properties, at

_NETWORKS = "privateVisibilityConfig.networks[].networkUrl"
_VERSIONS = {"A": 4, "AAAA": 6}
# "ManagedZone", Cloud DNS API.
_NAME = Naming(
    "name",
    re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"),
    63,
    "1 to 63 of a-z, 0-9 and hyphens, a letter first, no hyphen last",
)


def _refused(value: str, why: str, way_out: str) -> RefusalError:
    return RefusalError(f"googleapi: Error 400: Invalid value for '{value}': {why}, invalid; {way_out}")


def _is_private(inputs: Properties) -> bool:
    return inputs.get("visibility") == "private"


def _zone_outputs(call: Call) -> Properties:
    cloud = ["ns-gcp-private.googledomains.com."]
    letter = "abcde"[int(number(call.id)) % 5]
    public = [f"ns-cloud-{letter}{i}.googledomains.com." for i in range(1, 5)]
    return {
        "nameServers": cloud if _is_private(call.inputs) else public,
        "managedZoneId": numbered(call),
        "creationTime": "2026-01-01T00:00:00.000Z",
        **labels(call),
        **chosen(call, {"visibility": lambda _: "public", "description": lambda _: "Managed by Pulumi"}),
    }


def _zone(call: Call) -> None:
    name = call.text("dnsName")
    if not name.endswith("."):
        raise _refused("entity.managedZone.dnsName", f"'{name}'", "end it with a dot")
    networks = list(at(call.inputs, _NETWORKS))
    if networks and not _is_private(call.inputs):
        raise conflict("privateVisibilityConfig", "only private zones have one", "set visibility to private")


def _one_of_its_name(call: Call) -> None:
    """Check that a network sees only one private zone with this name ("DNS zones overview")."""
    own = {bare(call, str(text)) for text in at(call.inputs, _NETWORKS)}
    for other in call.world.of_type(ZONE):
        other_networks = {bare(call, str(text)) for text in at(other.inputs, _NETWORKS)}
        if other.id != call.id and other.inputs.get("dnsName") == call.text("dnsName") and own & other_networks:
            raise RefusalError(
                f"googleapi: Error 400: Network '{min(own & other_networks)}' is already bound to zone '{other.id}' with the "
                "same DNS name suffix., badRequest; a network sees one private zone of a name"
            )


def _record(call: Call) -> None:
    name, zone = call.text("name"), call.target("managedZone")
    if not name.endswith("."):
        raise conflict("name", f'"{name}" does not end with trailing dot, for example "example.com."', "add it")
    suffix = str(zone.inputs["dnsName"]) if zone else ""
    if zone and name != suffix and not name.endswith(f".{suffix}"):
        raise _refused("entity.change.additions[0].name", f"'{name}'", f"names of this zone end with {suffix}")
    version = _VERSIONS.get(call.text("type"))
    for text in map(str, at(call.inputs, "rrdatas[]")):
        if version and not _is_address(text, version):
            raise _refused(
                f"entity.change.additions[{name}][{call.text('type')}].rrdata[0]",
                f"'{text}'",
                f"an address of IPv{version}",
            )
    if bool(call.inputs.get("rrdatas")) == bool(call.inputs.get("routingPolicy")):
        raise conflict("rrdatas", "one of `routing_policy,rrdatas` must be specified", "give rrdatas")


def _is_address(text: str, version: int) -> bool:
    try:
        return ip_address(text).version == version
    except ValueError:
        return False


TYPES = (
    ResourceType(
        token=ZONE,
        noun="managed_zone",
        identify=lambda call: f"projects/{call.text('project')}/managedZones/{call.name}",
        outputs=_zone_outputs,
        naming=_NAME,
        where=("project",),
        replace_on=("dnsName", "name", "visibility"),
        references=(Reference(_NETWORKS, (NETWORK,), holds=False, resolve=bare),),
        refuse=(labelled, _zone, _one_of_its_name),
        protected_by={"deletionPolicy": "PREVENT"},
        says={
            **PREVENTED,
            Reason.TAKEN: Saying(
                "googleapi: Error 409: The resource 'entity.managedZone' named '{name}' already exists, alreadyExists",
                "choose another name, import it (`pulumi import {type} <name> {id}`), or delete it",
            ),
            Reason.IN_USE: Saying(
                "googleapi: Error 400: The resource named '{value}' cannot be deleted because it contains one or more "
                "'resource records'., containerNotEmpty",
                "delete first: {users}",
            ),
        },
    ),
    ResourceType(
        token="gcp:dns/recordSet:RecordSet",
        noun="record_set",
        identify=lambda call: "projects/{}/managedZones/{}/rrsets/{}/{}".format(
            call.text("project"), last(call.text("managedZone")), call.text("name"), call.text("type")
        ),
        where=("project",),
        replace_on=("managedZone", "name", "routingPolicy.healthCheck"),
        references=(Reference("managedZone", (ZONE,), resolve=bare),),
        refuse=(_record,),
        protected_by={"deletionPolicy": "PREVENT"},
        says={
            **PREVENTED,
            Reason.TAKEN: Saying(
                "googleapi: Error 409: The resource 'entity.change.additions[0]' named '{id}' already exists, "
                "alreadyExists",
                "delete the record that is there, or import it (`pulumi import {type} <name> {id}`)",
            ),
        },
    ),
)
