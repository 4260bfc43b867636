"""The addresses of a subnetwork and the resources that have them."""

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
    """Return the subnetwork that a text refers to."""
    return call.resolve(_NAMED, text) if text else None


def literal(text: str) -> IPv4Address | None:
    """Return an address, None for anything else."""
    try:
        return IPv4Address(text)
    except ValueError:
        return None


def reserved(call: Call, subnetwork: Record) -> dict[str, Record]:
    """Return address -> the Address that reserves it."""
    addresses = call.world.of_type(ADDRESS)
    return {record.outputs["address"]: record for record in addresses if subnetwork.key in record.targets}


def used(call: Call, subnetwork: Record) -> Iterator[tuple[str, Record]]:
    """Yield addresses in use, and by what; an address of SHARED_LOADBALANCER_VIP may be used more than once."""
    for record in (*call.world.of_type(INSTANCE), *call.world.of_type(FORWARDING_RULE)):
        if subnetwork.key in record.targets and record.id != call.id:
            shown = plain(record.outputs)
            for interface in shown.get("networkInterfaces", [shown]):
                if subnetwork_of(call, str(interface.get("subnetwork", ""))) == subnetwork:
                    address = interface.get("networkIp") or interface.get("ipAddress")
                    yield str(address), record


def fits(call: Call, path: str, address: IPv4Address, subnetwork: Record) -> None:
    """Check that an address is in the subnetwork and is not one of the four that Google reserves ("Subnets", VPC)."""
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
            f"Google reserves the first two and the last two of {network}; use {network[2]} to {network[-3]}",
        )


def busy(address: IPv4Address, by: Record) -> RefusalError:
    """Return the refusal of an address in use."""
    return RefusalError(
        f"googleapi: Error 400: IP '{address}' is already being used by another resource., "
        f"IP_IN_USE_BY_ANOTHER_RESOURCE; {by.id} has it: choose another, or delete that first"
    )


def first_free(call: Call, subnetwork: Record, also: Collection[str] = ()) -> str:
    """Return the address that Google would choose. Google does not document which; here it is the lowest."""
    network = IPv4Network(subnetwork.inputs["ipCidrRange"])
    unavailable = {*reserved(call, subnetwork), *(address for address, _ in used(call, subnetwork)), *also}
    free = (str(network[i]) for i in range(2, network.num_addresses - 2) if str(network[i]) not in unavailable)
    lowest = next(free, None)
    if lowest is None:
        raise RefusalError(
            f"googleapi: Error 400: IP_SPACE_EXHAUSTED: IP space of '{subnetwork.id}' is exhausted., "
            f"ipSpaceExhausted; {network} has no address left: widen it"
        )
    return lowest


def reserved_as(path: str) -> Reference:
    """Return a reference for a property with an address: of an Address in the call's subnetwork, or a name of one."""

    def resolve(call: Call, text: str) -> str:
        if literal(text) is None:
            return bare(call, text)
        for name in (*at(call.inputs, "subnetwork"), *at(call.inputs, "networkInterfaces[].subnetwork")):
            subnetwork = subnetwork_of(call, str(name))
            record = reserved(call, subnetwork).get(text) if subnetwork else None
            if record:
                return record.id
        return text

    return Reference(path, (ADDRESS,), resolve=resolve, optional=True)
