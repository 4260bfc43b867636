"""Networks of Google Cloud. What replaces is as in terraform-provider-google, on which the provider rests."""

from __future__ import annotations

from ipaddress import ip_network

from simcloud.gcp.common import NAME, bare, numbered, outputs, path
from simcloud.refusals import apart, apart_within, networks, size_of_range
from simcloud.rules import Call, Reason, Reference, ResourceType, Saying
from simcloud.values import Value

NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"

_PREVENTED = {
    Reason.PROTECTED: Saying(
        'cannot destroy {noun} without setting deletion_policy="DELETE"',
        "set {path} to DELETE and update before deleting",
    )
}


def _shrinks(old: Value, new: Value) -> bool:
    """A range can be widened in place, and only widened."""
    wider = list(networks([new]))
    return bool(wider) and not all(network.subnet_of(wider[0]) for network in networks([old]))


def _first_address(call: Call) -> str:
    return str(ip_network(call.text("ipCidrRange"))[1])


_network = ResourceType(
    token=NETWORK,
    noun="network",
    identify=path("networks"),
    outputs=outputs(numericId=numbered, networkId=numbered, routingMode=lambda _: "REGIONAL", mtu=lambda _: 1460),
    naming=NAME,
    where=("project",),
    replace_on=("name", "autoCreateSubnetworks", "description", "internalIpv6Range", "networkProfile", "params"),
    protected_by={"deletionPolicy": "PREVENT"},
    says=_PREVENTED,
)

_subnetwork = ResourceType(
    token=SUBNETWORK,
    noun="subnetwork",
    identify=path("subnetworks"),
    outputs=outputs(
        gatewayAddress=_first_address,
        subnetworkId=numbered,
        purpose=lambda _: "PRIVATE",
        stackType=lambda _: "IPV4_ONLY",
    ),
    naming=NAME,
    where=("project", "region"),
    replace_on=(
        *("name", "network", "description", "externalIpv6Prefix", "internalIpv6Prefix", "params"),
        *("reservedInternalRange", "resolveSubnetMask"),
    ),
    replace_if={"ipCidrRange": _shrinks},
    references=(Reference("network", (NETWORK,), resolve=bare),),
    refuse=(
        size_of_range("ipCidrRange", 4, 29),
        size_of_range("secondaryIpRanges[].ipCidrRange", 4, 29),
        apart_within("ipCidrRange", "secondaryIpRanges[].ipCidrRange"),
        apart("network", "ipCidrRange", "secondaryIpRanges[].ipCidrRange"),
    ),
    protected_by={"deletionPolicy": "PREVENT"},
    says=_PREVENTED,
)

_firewall = ResourceType(
    token="gcp:compute/firewall:Firewall",
    noun="firewall",
    identify=path("firewalls"),
    outputs=outputs(direction=lambda _: "INGRESS", priority=lambda _: 1000),
    naming=NAME,
    where=("project",),
    replace_on=("name", "direction", "params"),
    references=(Reference("network", (NETWORK,), resolve=bare),),
    protected_by={"deletionPolicy": "PREVENT"},
    says=_PREVENTED,
)

_address = ResourceType(
    token="gcp:compute/address:Address",
    noun="address",
    identify=path("addresses"),
    outputs=outputs(addressType=lambda _: "EXTERNAL"),
    naming=NAME,
    where=("project", "region"),
    replace_on=(
        *("name", "address", "addressType", "description", "ipCollection", "ipVersion", "ipv6EndpointType"),
        *("network", "networkTier", "prefixLength", "purpose", "subnetwork"),
    ),
    references=(
        Reference("network", (NETWORK,), resolve=bare),
        Reference("subnetwork", (SUBNETWORK,), resolve=bare),
    ),
    protected_by={"deletionPolicy": "PREVENT"},
    says=_PREVENTED,
)

TYPES = (_network, _subnetwork, _firewall, _address)
