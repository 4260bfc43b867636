"""Cloud Routers, their NAT, and their BGP sessions."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface, IPv6Interface, IPv6Network, ip_interface

from sandbox.simcloud.gcp.addresses import literal
from sandbox.simcloud.gcp.common import REGIONAL, bare, between, compute, last, network_of
from sandbox.simcloud.gcp.network import IN_NETWORK
from sandbox.simcloud.gcp.tokens import ADDRESS, INTERFACE, ROUTE_POLICY, ROUTER, ROUTER_NAT, SUBNETWORK, TUNNEL
from sandbox.simcloud.gcp.words import conflict, invalid
from sandbox.simcloud.rules import Call, Reference, Rule
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record

_LINK_LOCAL_PREFIX = 30
_METADATA = IPv4Address("169.254.169.254")
# "RouterInterface", Compute Engine API: unique local addresses for IPv6, with this prefix or a shorter one.
_INSIDE_6, _LONGEST_6 = IPv6Network("fdff:1::/64"), 126
_ALL = ("ALL_SUBNETWORKS_ALL_IP_RANGES", "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES")

_OF_ROUTER = Reference("router", (ROUTER,), holds=False, resolve=bare)


def _own_asn(call: Call) -> None:
    for asn in map(int, at(call.inputs, "bgp.asn")):
        if not (64512 <= asn <= 65534 or 4200000000 <= asn <= 4294967294 or asn == 16550):
            raise conflict(
                "bgp.asn",
                'expected "bgp.0.asn" to be a RFC6996-compliant Local ASN: must be either in the private ASN ranges: '
                f"[64512..65534], [4200000000..4294967294]; or be the value of [16550], got {asn}",
                "use a private one",
            )


def _advertises(path: str) -> Rule:
    prefix = f"{path}." if path else ""

    def rule(call: Call) -> None:
        mode = call.text(f"{prefix}advertiseMode") or "DEFAULT"
        for name in ("advertisedGroups", "advertisedIpRanges"):
            if mode == "DEFAULT" and any(at(call.inputs, f"{prefix}{name}[]")):
                raise conflict(
                    f"{prefix}{name}",
                    f"Error in bgp: {name} cannot be specified when using advertise_mode DEFAULT",
                    "set advertiseMode to CUSTOM",
                )

    return rule


def _nat(call: Call) -> None:
    option, scope = call.text("natIpAllocateOption"), call.text("sourceSubnetworkIpRangesToNat")
    if option == "MANUAL_ONLY" and not call.inputs.get("natIps"):
        raise invalid("nats[0].natIps", "", "MANUAL_ONLY needs addresses.", "set natIps, or AUTO_ONLY")
    if option == "AUTO_ONLY" and call.inputs.get("natIps"):
        raise invalid("nats[0].natIps", "", "AUTO_ONLY allocates addresses itself.", "leave out natIps")
    if scope == "LIST_OF_SUBNETWORKS" and not call.inputs.get("subnetworks"):
        raise invalid("nats[0].subnetworks", "", "LIST_OF_SUBNETWORKS needs subnetworks.", "name them")
    if scope in _ALL and call.inputs.get("subnetworks"):
        raise invalid("nats[0].subnetworks", "", f"{scope} takes none.", "use LIST_OF_SUBNETWORKS")
    router = call.target("router")
    for other in call.world.of_type(ROUTER_NAT):
        if other.id == call.id or other.region != call.region or router is None or scope not in _ALL:
            continue
        other_router = call.resolve(_OF_ROUTER, other.inputs["router"])
        # "Cloud NAT overview": a public and a private gateway may serve the same subnetworks.
        is_alike = (other.inputs.get("type") or "PUBLIC") == (call.text("type") or "PUBLIC")
        covers_all = is_alike and other.inputs.get("sourceSubnetworkIpRangesToNat") in _ALL
        if covers_all and other_router and network_of(call, other_router) == network_of(call, router):
            raise invalid(
                "nats[0].sourceSubnetworkIpRangesToNat",
                scope,
                f"NAT '{other.id}' has every subnetwork of the network in this region already.",
                "one such NAT is enough",
            )


def inside(text: str) -> IPv4Interface | None:
    """Return an address with its prefix, None for anything else."""
    try:
        return IPv4Interface(text)
    except ValueError:
        return None


def _inside_6(text: str) -> IPv6Interface:
    """Return an address of IPv6 with its prefix. Raises the refusal of anything else."""
    try:
        address = IPv6Interface(text)
        fits = address.network.subnet_of(_INSIDE_6) and address.network.prefixlen <= _LONGEST_6
    except ValueError:
        fits = False
    if not fits:
        raise invalid(
            "interfaces[0].ipRange", text, f"Must be an address of {_INSIDE_6} with prefix /{_LONGEST_6} or less.",
            "write for example fdff:1::1/126",
        )  # fmt: skip
    return address


def _inside_4(text: str) -> IPv4Interface:
    """Return a host's link-local address with its prefix. Raises the refusal of anything else."""
    address = inside(text)
    if address is None or not address.is_link_local or address.network.prefixlen != _LINK_LOCAL_PREFIX:
        raise invalid(
            "interfaces[0].ipRange", text, "Must be an address of 169.254.0.0/16 with prefix /30.",
            "write for example 169.254.0.1/30",
        )  # fmt: skip
    if address.ip in (address.network[0], address.network[3]) or _METADATA in address.network:
        raise invalid("interfaces[0].ipRange", text, "The address is not a host's.", "use one of the middle two")
    return address


def _interface(call: Call) -> None:
    """Check that a tunnel's inner range is one of Google's, and unique in the network (Compute Engine API, "Router")."""
    for text in map(str, at(call.inputs, "ipRange")):
        network = (_inside_6 if ":" in text else _inside_4)(text).network
        for other in _neighbours(call):
            other_range = ip_interface(str(other.inputs["ipRange"])) if other.inputs.get("ipRange") else None
            if other_range and other_range.network.overlaps(network):
                raise invalid(
                    "interfaces[0].ipRange", text, f"It overlaps {other_range} of interface '{other.id}'.",
                    "use a separate range for each tunnel of a network",
                )  # fmt: skip


def _neighbours(call: Call) -> list[Record]:
    """Return the other interfaces of the same network's routers."""
    router = call.target("router")
    others = [other for other in call.world.of_type(INTERFACE) if other.id != call.id]
    routers = {
        other.key: call.world.get(*target) for other in others for target in other.targets if target[0] == ROUTER
    }
    network = network_of(call, router) if router else ""
    return [
        other
        for other in others
        if (other_router := routers.get(other.key)) and network_of(call, other_router) == network
    ]


def _session(call: Call) -> None:
    """Check that both ends of a session have addresses of the interface's range, and different ones."""
    interface = call.target("interface")
    range_ = inside(str(interface.inputs.get("ipRange", ""))) if interface else None
    for name in ("ipAddress", "peerIpAddress"):
        address = literal(call.text(name))
        if range_ and address and address not in range_.network:
            raise invalid(
                f"bgpPeers[0].{name}",
                str(address),
                f"It is not in the interface's range {range_.network}.",
                "use one of it",
            )
    if call.text("peerIpAddress") and call.text("peerIpAddress") == (
        call.text("ipAddress") or str(range_ and range_.ip)
    ):
        raise invalid(
            "bgpPeers[0].peerIpAddress",
            call.text("peerIpAddress"),
            "It is the router's own.",
            "use the other of the two",
        )


def _two_asns(call: Call) -> None:
    """Refuse a peer with the router's ASN: Cloud Router has only external BGP ("Cloud Router overview")."""
    router = call.target("router")
    asn = next(at(router.inputs, "bgp.asn"), None) if router else None
    if asn is not None and call.text("peerAsn") and int(asn) == int(call.text("peerAsn")):
        raise invalid("bgpPeers[0].peerAsn", str(asn), "It is the router's own.", "give one of the two another")


def _own_address(call: Call) -> str:
    interface = call.target("interface")
    range_ = inside(str(interface.inputs.get("ipRange", ""))) if interface else None
    return str(range_.ip) if range_ else ""


def _peer_address(call: Call) -> str:
    interface = call.target("interface")
    range_ = inside(str(interface.inputs.get("ipRange", ""))) if interface else None
    return next((str(host) for host in range_.network.hosts() if host != range_.ip), "") if range_ else ""


def _of_same_router(call: Call, text: str) -> str:
    return f"{last(call.text('router'))}/{text}"


def _as_of_router(outputs: Properties) -> list[tuple[str, str]]:
    return [(INTERFACE, f"{last(str(outputs['router']))}/{outputs['name']}")]


def _in_router(prefix: str) -> Callable[[Call], str]:
    return lambda call: prefix.format(
        project=call.text("project"), region=call.region, router=last(call.text("router")), name=call.name
    )


_router = compute(
    "Router",
    "router",
    "routers",
    where=REGIONAL,
    replace_on=("encryptedInterconnectRouter", "nccGateway", "network", "params"),
    references=(IN_NETWORK,),
    refuse=(_own_asn, _advertises("bgp")),
)

_router_nat = compute(
    "RouterNat",
    "router_nat",
    "",
    identify=_in_router("{project}/{region}/{router}/{name}"),
    where=REGIONAL,
    computed={
        "minPortsPerVm": lambda call: 32 if call.inputs.get("enableDynamicPortAllocation") else 64,
        "type": lambda _: "PUBLIC",
        "autoNetworkTier": lambda _: "PREMIUM",
    },
    replace_on=("router", "endpointTypes", "initialNatIps", "type"),
    references=(
        _OF_ROUTER,
        Reference("natIps[]", (ADDRESS,), resolve=bare),
        Reference("subnetworks[].name", (SUBNETWORK,), resolve=bare),
    ),
    # "NatService", Compute Engine API.
    refuse=(_nat, between("minPortsPerVm", 2, 65536), between("maxPortsPerVm", 64, 65536)),
)

_router_interface = compute(
    "RouterInterface",
    "router_interface",
    "",
    identify=_in_router("{region}/{router}/{name}"),
    where=REGIONAL,
    replace_on=(
        *("router", "vpnTunnel", "interconnectAttachment", "ipRange", "ipVersion", "privateIpAddress", "subnetwork"),
        "redundantInterface",
    ),
    references=(_OF_ROUTER, Reference("vpnTunnel", (TUNNEL,), resolve=bare)),
    refuse=(_interface,),
    implied=_as_of_router,
)

_router_peer = compute(
    "RouterPeer",
    "router_peer",
    "",
    identify=_in_router("projects/{project}/regions/{region}/routers/{router}/{name}"),
    where=REGIONAL,
    computed={
        "ipAddress": _own_address,
        "peerIpAddress": _peer_address,
        "advertiseMode": lambda _: "DEFAULT",
        "managementType": lambda _: "MANAGED_BY_USER",
    },
    replace_on=("interface", "router"),
    references=(
        _OF_ROUTER,
        Reference("interface", (INTERFACE,), resolve=_of_same_router),
        Reference("importPolicies[]", (ROUTE_POLICY,), resolve=_of_same_router),
        Reference("exportPolicies[]", (ROUTE_POLICY,), resolve=_of_same_router),
    ),
    refuse=(
        _session,
        _two_asns,
        _advertises(""),
        between("peerAsn", 1, 4294967295),
        between("advertisedRoutePriority", 0, 65535),
    ),
)

# "RoutePolicy", Compute Engine API.
_route_policy = compute(
    "RouterRoutePolicy",
    "router_route_policy",
    "",
    identify=_in_router("projects/{project}/regions/{region}/routers/{router}/routePolicies/{name}"),
    where=REGIONAL,
    replace_on=("router",),
    references=(_OF_ROUTER,),
    refuse=(between("terms[].priority", 0, 2**31 - 1),),
    implied=lambda outputs: [(ROUTE_POLICY, f"{last(str(outputs['router']))}/{outputs['name']}")],
)

TYPES = (_router, _router_nat, _router_interface, _router_peer, _route_policy)
