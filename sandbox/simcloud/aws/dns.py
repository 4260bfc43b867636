"""Amazon Route 53."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address

from sandbox.simcloud.aws.common import others, refused, tags
from sandbox.simcloud.aws.tokens import BALANCER, ENDPOINT, RECORD, VPC, ZONE
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record

# "DNS domain name format".
_NAME = re.compile(r"(?=.{1,255}$)[!-\-/-~]{1,63}(\.[!-\-/-~]{1,63})*")


def _domain(text: str) -> str:
    return text.lower().rstrip(".")


def _vpcs(record: Record | Call) -> set[str]:
    return {str(text) for text in at(record.inputs, "vpcs[].vpcId")}


def _domain_name(call: Call) -> None:
    if not _NAME.fullmatch(_domain(call.text("name"))):
        raise refused(
            "InvalidDomainName",
            f"{call.text('name')} is not a valid domain name",
            "use printable ASCII without spaces, at most 63 characters between dots",
        )


def _one_of_the_name(call: Call) -> None:
    for other in others(call):
        shared = _vpcs(call) & _vpcs(other)
        if shared and _domain(str(other.inputs.get("name"))) == _domain(call.text("name")):
            raise refused(
                "ConflictingDomainExists",
                f"The VPC {min(shared)} has already been associated with the hosted zone {other.id} with the same "
                "domain name.",
                "a VPC sees one private zone of a name; a replacement needs delete_before_replace",
            )


def _in_named_region(call: Call) -> None:
    """Refuse a VPC that is not in the region that goes with it ("VPC", Amazon Route 53 API Reference)."""
    for given in at(call.inputs, "vpcs[]"):
        region = given.get("vpcRegion")
        for vpc in call.world.find((VPC,), str(given.get("vpcId"))) if region else ():
            if vpc.region != region:
                raise refused(
                    "InvalidVPCId",
                    f"The VPC ID is invalid: {vpc.id} is not in {region}",
                    f"it is in {vpc.region}; set vpcRegion to it or leave it out",
                )


def _still_private(call: Call) -> None:
    """Refuse to remove the last VPC: a zone created with a VPC is private and stays private."""
    before = _vpcs(call.old) if call.old else set()
    if before and not _vpcs(call):
        raise refused(
            "LastVPCAssociation",
            "The VPC that you're trying to disassociate from the private hosted zone is the last VPC that is associated "
            "with the hosted zone. Amazon Route 53 doesn't support disassociating the last VPC from a hosted zone.",
            f"{call.id} keeps at least one VPC of {', '.join(sorted(before))}; to make it public, replace the zone",
        )


def _empty(call: Call) -> None:
    records = [record for record in call.world.of_type(RECORD) if call.old and call.old.key in record.targets]
    if records and not call.inputs.get("forceDestroy"):
        raise refused(
            "HostedZoneNotEmpty",
            "The specified hosted zone contains non-required resource record sets and so cannot be deleted.",
            f"delete first: {', '.join(map(str, records))}",
        )
    for record in records:
        call.world.remove(*record.key)


def _zone_outputs(call: Call) -> Properties:
    number = int(digest(call.id)[:3], 16)
    servers = [f"ns-{number + i}.awsdns-{i:02}.{top}" for i, top in enumerate(("com", "net", "org", "co.uk"))]
    return {
        "arn": f"arn:aws:route53:::hostedzone/{call.id}",
        "zoneId": call.id,
        "nameServers": servers,
        "primaryNameServer": servers[0],
        **tags(call),
    }


_zone = ResourceType(
    token=ZONE,
    noun="hosted zone",
    code="NoSuchHostedZone",
    identify=lambda call: call.fresh(lambda digits: f"Z0{digits[:18].upper()}"),
    outputs=_zone_outputs,
    replace_on=("name", "delegationSetId"),
    references=(Reference("vpcs[].vpcId", (VPC,), holds=False, local=False),),
    refuse=(_domain_name, _one_of_the_name, _in_named_region, _still_private),
    refuse_deletion=(_empty,),
    says={
        Reason.MISSING: Saying(
            "api error NoSuchHostedZone: No hosted zone found with ID: {value}",
            "{path} must name something that exists",
        )
    },
)


def _full_name(call: Call) -> str:
    """Return the record's full name; the provider appends the zone's name to names that do not end with it."""
    zone = call.target("zoneId") or next(iter(call.world.find((ZONE,), call.text("zoneId"))), None)
    name, domain = _domain(call.text("name")), _domain(str(zone.inputs["name"])) if zone else ""
    if name == domain or name.endswith(f".{domain}") or not domain:
        return name
    return f"{name}.{domain}" if name else domain


def _id(call: Call) -> str:
    parts = [call.text("zoneId"), _domain(call.text("name")), call.text("type"), call.text("setIdentifier")]
    return "_".join(filter(None, parts))


def _alias(_: Call, text: str) -> str:
    return _domain(text).removeprefix("dualstack.")


def _content(call: Call) -> None:
    aliases, records = call.inputs.get("aliases"), call.inputs.get("records")
    if bool(aliases) == bool(records):
        raise refused("", '"records": one of `alias,records` must be specified', "give exactly one of them")
    if records and call.inputs.get("ttl") is None:
        raise refused("", '"records": all of `records,ttl` must be specified', "set ttl", "ttl")
    if aliases and call.inputs.get("ttl") is not None:
        raise refused("", '"ttl": conflicts with alias', "leave it out: an alias uses its target's ttl", "ttl")
    for text in records or ():
        if call.text("type") == "A" and not _is_address(str(text)):
            raise refused(
                "InvalidChangeBatch",
                "[Invalid Resource Record: 'FATAL problem: ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address) "
                f"encountered with '{text}'']",
                "records of type A are IPv4 addresses",
            )


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def _alias_zone(call: Call) -> None:
    """Refuse an alias whose zone is not its target's."""
    for alias in at(call.inputs, "aliases[]"):
        targets = call.world.find((BALANCER, ENDPOINT, RECORD), _alias(call, str(alias.get("name"))))
        zones = {str(record.outputs.get("zoneId")) for record in targets}
        zones |= {str(zone) for record in targets for zone in at(record.outputs, "dnsEntries[].hostedZoneId")}
        if targets and alias.get("zoneId") not in zones:
            raise refused(
                "InvalidChangeBatch",
                f"[Tried to create an alias that targets {alias.get('name')}., type {call.text('type')} in zone "
                f"{alias.get('zoneId')}, but the alias target name does not lie within the target zone]",
                f"its zoneId is {', '.join(sorted(zones))}",
            )


_TARGET_MISSING = Saying(
    "api error InvalidChangeBatch: [Tried to create an alias that targets {value}., but that target was not found]",
    "{path} must be the dnsName of something that exists",
)

_record = ResourceType(
    token=RECORD,
    noun="record",
    code="InvalidChangeBatch",
    identify=_id,
    outputs=lambda call: {"fqdn": _full_name(call)},
    # Route 53 changes type or set identifier in one transaction, without replacing the record.
    replace_on=("name", "zoneId"),
    references=(
        Reference("zoneId", (ZONE,), holds=False),
        Reference("aliases[].name", (RECORD, BALANCER, ENDPOINT), holds=False, local=False, resolve=_alias),
    ),
    refuse=(_content, _alias_zone),
    implied=lambda outputs: [(RECORD, str(outputs["fqdn"]))],
    says={
        Reason.TAKEN: Saying(
            "api error InvalidChangeBatch: [Tried to create resource record set {id} but it already exists]",
            "choose another name, import the existing one, or delete it",
        ),
        Reason.MISSING: _TARGET_MISSING,
    },
)

TYPES = (_zone, _record)
