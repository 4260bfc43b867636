"""Who has which address of a subnetwork."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from ipaddress import IPv4Address, IPv4Network

from sandbox.simcloud.gcp.common import bare
from sandbox.simcloud.gcp.tokens import ADDRESS, FORWARDING_RULE, INSTANCE, SUBNETWORK
from sandbox.simcloud.gcp.words import invalid
from sandbox.simcloud.rules import Call, Reference, RefusalError
from sandbox.simcloud.values import at, plain
from sandbox.simcloud.world import Record

_NAMED = Reference("", (SUBNETWORK,), resolve=bare)


def subnetwork_of(call: Call, text: str) -> Record | None:
    """The subnetwork that a text names."""
    return call.resolve(_NAMED, text) if text else None


def literal(text: str) -> IPv4Address | None:
    """An address, None for anything else."""
    try:
        return IPv4Address(text)
    except ValueError:
        return None


def reserved(call: Call, subnetwork: Record) -> dict[str, Record]:
    """Address -> the Address that reserves it."""
    found = call.world.of_type(ADDRESS)
    return {record.outputs["address"]: record for record in found if subnetwork.key in record.targets}


def used(call: Call, subnetwork: Record) -> Iterator[tuple[str, Record]]:
    """Addresses in use, and by what; an address of SHARED_LOADBALANCER_VIP may be used more than once."""
    for record in (*call.world.of_type(INSTANCE), *call.world.of_type(FORWARDING_RULE)):
        if subnetwork.key in record.targets and record.id != call.id:
            shown = plain(record.outputs)
            for interface in shown.get("networkInterfaces", [shown]):
                if subnetwork_of(call, str(interface.get("subnetwork", ""))) == subnetwork:
                    address = interface.get("networkIp") or interface.get("ipAddress")
                    yield str(address), record


def fits(call: Call, path: str, address: IPv4Address, subnetwork: Record) -> None:
    """An address lies in the subnetwork and is none of the four that Google keeps ("Subnets", Virtual Private Cloud)."""
    network = IPv4Network(subnetwork.inputs["ipCidrRange"])
    if address not in network:
        raise invalid(
            path, str(address), "Requested internal IP is outside the subnetwork CIDR range.", f"use one of {network}"
        )
    if address in (network[0], network[1], network[-2], network[-1]):
        raise invalid(
            path,
            str(address),
            "The IP address is reserved.",
            f"the first two and the last two of {network} are Google's; use {network[2]} to {network[-3]}",
        )


def busy(address: IPv4Address, by: Record) -> RefusalError:
    """The refusal of an address that something has."""
    return RefusalError(
        f"googleapi: Error 400: IP '{address}' is already being used by another resource., "
        f"IP_IN_USE_BY_ANOTHER_RESOURCE; {by.id} has it: choose another, or delete that first"
    )


def first_free(call: Call, subnetwork: Record, also: Collection[str] = ()) -> str:
    """The address that Google would choose; which one it is, is not told, and here it is the lowest."""
    network = IPv4Network(subnetwork.inputs["ipCidrRange"])
    gone = {*reserved(call, subnetwork), *(address for address, _ in used(call, subnetwork)), *also}
    free = (str(network[i]) for i in range(2, network.num_addresses - 2) if str(network[i]) not in gone)
    found = next(free, None)
    if found is None:
        raise RefusalError(
            f"googleapi: Error 400: IP_SPACE_EXHAUSTED: IP space of '{subnetwork.id}' is exhausted., "
            f"ipSpaceExhausted; {network} has no address left: widen it"
        )
    return found


def reserved_as(path: str) -> Reference:
    """A property that is an address, which may be that of an Address in the call's subnetwork, or names one."""

    def resolve(call: Call, text: str) -> str:
        if literal(text) is None:
            return bare(call, text)
        for name in (*at(call.inputs, "subnetwork"), *at(call.inputs, "networkInterfaces[].subnetwork")):
            found = subnetwork_of(call, str(name))
            record = reserved(call, found).get(text) if found else None
            if record:
                return record.id
        return text

    return Reference(path, (ADDRESS,), resolve=resolve, optional=True)
