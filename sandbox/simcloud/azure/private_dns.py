"""Private DNS."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address

from sandbox.simcloud.azure.common import find, folded, group_id, plain_outputs, under_group
from sandbox.simcloud.azure.network import NETWORK
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.rules import Call, Naming, Reference, ResourceType
from sandbox.simcloud.values import at

ZONE = "azure-native:privatedns:PrivateZone"
LINK = "azure-native:privatedns:VirtualNetworkLink"
RECORDS = "azure-native:privatedns:PrivateRecordSet"

_KINDS = {
    "A": "aRecords",
    "AAAA": "aaaaRecords",
    "CNAME": "cnameRecord",
    "MX": "mxRecords",
    "PTR": "ptrRecords",
    "SOA": "soaRecord",
    "SRV": "srvRecords",
    "TXT": "txtRecords",
}


def zone_id(call: Call, name: str) -> str:
    """Return the ID of a private zone in the call's resource group."""
    return f"{group_id(call, call.text('resourceGroupName'))}/providers/Microsoft.Network/privateDnsZones/{name}"


_IN_ZONE = Reference("privateZoneName", (ZONE,), holds=False, local=False, resolve=zone_id)


def _is_global(call: Call) -> None:
    """Check the location: the provider fills in its own, which Azure refuses here."""
    if call.region != "global":
        raise refused(
            "LocationNotAvailableForResourceType",
            f"The provided location '{call.text('location')}' is not available for resource type of {call.id}. List of "
            "available regions for the resource type is 'global'.",
            "set location to global",
        )


def _is_unlinked(call: Call) -> None:
    links = [link for link in call.world.of_type(LINK) if folded(link.id).startswith(f"{folded(call.id)}/")]
    if links:
        raise refused(
            "CannotDeleteResource",
            "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: "
            f"'{links[0].id}'. Please delete all nested resources before deleting this resource.",
            f"delete first: {', '.join(map(str, links))}",
            409,
        )


def _links_are_apart(call: Call) -> None:
    zone = call.text("privateZoneName")
    for other in call.world.of_type(LINK):
        same = folded(next(at(other.inputs, "virtualNetwork.id"), "")) == folded(call.text("virtualNetwork.id"))
        if not same or other.id == call.id:
            continue
        if folded(other.inputs["privateZoneName"]) == folded(zone):
            raise refused(
                BAD_REQUEST,
                "A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link "
                f"virtual network with '{zone}' and '{other.inputs['privateZoneName']}' zones.",
                f"{other} links it already",
            )
        if call.inputs.get("registrationEnabled") and other.inputs.get("registrationEnabled"):
            raise refused(
                BAD_REQUEST,
                f"Virtual network {call.text('virtualNetwork.id')} has a zone for registration already.",
                f"{other} is it; set registrationEnabled to false",
            )


def _records_are_whole(call: Call) -> None:
    kind = call.text("recordType")
    property_ = _KINDS.get(kind)
    given = [name for name in _KINDS.values() if call.inputs.get(name)]
    if property_ is None or given != [property_]:
        raise refused(
            BAD_REQUEST,
            f"The record set {call.name} of type {kind} has {', '.join(given) or 'no records'}.",
            f"set {property_}",
        )
    for text in at(call.inputs, "aRecords[].ipv4Address"):
        try:
            IPv4Address(text)
        except AddressValueError:
            raise refused(BAD_REQUEST, f"The value '{text}' is not a valid IPv4 address.", "see aRecords") from None
    excluded = [name for name in _KINDS if name != kind] if kind == "CNAME" else ["CNAME"]
    zone = zone_id(call, call.text("privateZoneName"))
    for other in excluded:
        record = find(call, (RECORDS,), f"{zone}/{other}/{call.name}")
        if record is not None:
            raise refused(
                BAD_REQUEST,
                f"The record could not be created: a CNAME and another record of the name {call.name} exclude each other.",
                f"{record} has the name",
            )


def _fqdn(call: Call) -> str:
    name = "" if call.name == "@" else f"{call.name}."
    return f"{name}{call.text('privateZoneName')}."


_zone = ResourceType(
    token=ZONE,
    noun="Private DNS zone",
    identify=under_group("Microsoft.Network/privateDnsZones"),
    outputs=plain_outputs("Microsoft.Network/privateDnsZones", provisioningState=lambda _: "Succeeded"),
    naming=Naming(
        "privateZoneName",
        re.compile(r"\w([\w-]{0,61}\w)?(\.\w([\w-]{0,61}\w)?){1,33}"),
        253,
        "It has 2 to 34 labels with dots between them, each of up to 63 letters, digits, '_' and '-'.",
    ),
    where=("location",),
    replace_on=("resourceGroupName", "privateZoneName"),
    recomputed=("etag",),
    references=(IN_GROUP,),
    refuse=(_is_global,),
    refuse_deletion=(_is_unlinked,),
)

_link = ResourceType(
    token=LINK,
    noun="Virtual network link",
    identify=lambda call: f"{zone_id(call, call.text('privateZoneName'))}/virtualNetworkLinks/{call.name}",
    outputs=plain_outputs(
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
        provisioningState=lambda _: "Succeeded",
        virtualNetworkLinkState=lambda _: "Completed",
    ),
    naming=Naming(
        "virtualNetworkLinkName", re.compile(r"[a-zA-Z0-9]([\w.-]*\w)?"), 80, "It starts with a letter or digit."
    ),
    where=("location",),
    replace_on=("resourceGroupName", "privateZoneName", "virtualNetworkLinkName"),
    fixed=("virtualNetwork",),
    recomputed=("etag",),
    references=(_IN_ZONE, Reference("virtualNetwork.id", (NETWORK,), local=False)),
    refuse=(_is_global, _links_are_apart),
)

_records = ResourceType(
    token=RECORDS,
    noun="Record set",
    identify=lambda call: f"{zone_id(call, call.text('privateZoneName'))}/{call.text('recordType')}/{call.name}",
    outputs=plain_outputs("Microsoft.Network/privateDnsZones/A", fqdn=_fqdn, isAutoRegistered=lambda _: False),
    naming=Naming("relativeRecordSetName", re.compile(r"@|[\w*-]+(\.[\w-]+)*"), 253, "It is @, or labels with dots."),
    replace_on=("resourceGroupName", "privateZoneName", "recordType", "relativeRecordSetName"),
    recomputed=("etag",),
    references=(_IN_ZONE,),
    refuse=(_records_are_whole,),
)

TYPES = (_zone, _link, _records)
