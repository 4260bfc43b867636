"""Load balancers. Codes from "Troubleshoot common Azure Load Balancer deployment errors"."""

from __future__ import annotations

from collections import Counter

from sandbox.simcloud.azure.addresses import PUBLIC_ADDRESS, SUBNET, addressed, static_addresses
from sandbox.simcloud.azure.common import folded, network_name, outputs, parts, sole_user, under_group, with_parts
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Place, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, at

LOAD_BALANCER = "azure-native:network:LoadBalancer"

_FRONTENDS, _POOLS, _RULES, _PROBES = (
    "frontendIPConfigurations",
    "backendAddressPools",
    "loadBalancingRules",
    "probes",
)
_PARTS = (_FRONTENDS, _POOLS, _RULES, _PROBES, "outboundRules")
_OWN = (
    *((_RULES, "frontendIPConfiguration.id", _FRONTENDS), (_RULES, "backendAddressPool.id", _POOLS)),
    *((_RULES, "backendAddressPools[].id", _POOLS), (_RULES, "probe.id", _PROBES)),
    *(
        ("outboundRules", "frontendIPConfigurations[].id", _FRONTENDS),
        ("outboundRules", "backendAddressPool.id", _POOLS),
    ),
)


def _is_standard(call: Call) -> None:
    """Refuse Basic, which was retired on 30 September 2025 ("Upgrade from a basic load balancer to standard")."""
    if call.text("sku.name") not in ("Standard", "Gateway"):
        raise refused(
            BAD_REQUEST,
            f"Load balancer {call.id} has the SKU Basic, which is retired.",
            "set sku.name to Standard; the default is Basic",
        )


def _names_are_unique(call: Call) -> None:
    for property_ in _PARTS:
        names = Counter(str(part.get("name")).lower() for part in call.inputs.get(property_) or ())
        twice = [name for name, number in names.items() if number > 1]
        if twice:
            raise refused(BAD_REQUEST, f"{call.id}: {property_} has {twice[0]} twice.", "give each a unique name")


def _frontends_have_one_address(call: Call) -> None:
    for part in call.inputs.get(_FRONTENDS) or ():
        given = [name for name in ("subnet", "publicIPAddress", "publicIPPrefix") if part.get(name)]
        if len(given) != 1:
            raise refused(
                "LoadBalancerFrontendIPConfigurationMustHaveOneAddress",
                f"Frontend {part.get('name')} of {call.id} has {' and '.join(given) or 'no subnet and no public address'}.",
                "give it either a subnet or a public address",
            )


def _parts_exist(call: Call) -> None:
    """Check that rules refer to frontends, pools and probes of the same load balancer."""
    for owner, path, property_ in _OWN:
        own = {folded(part["id"]) for part in parts(call, property_)}
        for part in call.inputs.get(owner) or ():
            for text in at(part, path):
                if folded(text) not in own:
                    raise call.refusal(Reason.MISSING, path=f"{owner}[].{path}", value=str(text), by=call.id)


def _probes_are_whole(call: Call) -> None:
    for probe in call.inputs.get(_PROBES) or ():
        name, protocol, path = probe.get("name"), probe.get("protocol"), probe.get("requestPath")
        if (protocol in ("Http", "Https")) != bool(path):
            raise refused(
                BAD_REQUEST,
                f"Probe {name}: requestPath is required if the protocol is Http or Https, and not allowed if it is Tcp.",
                f"the protocol is {protocol}",
            )
        if int(probe.get("intervalInSeconds") or 15) < 5:
            raise refused(
                BAD_REQUEST,
                f"Probe {name}: intervalInSeconds must be at least 5.",
                f"it is {probe['intervalInSeconds']}",
            )


def _rules_are_apart(call: Call) -> None:
    fronts: dict[tuple[object, ...], str] = {}
    backs: dict[tuple[object, ...], str] = {}
    for rule in call.inputs.get(_RULES) or ():
        name, protocol = str(rule.get("name")), rule.get("protocol")
        front = (*at(rule, "frontendIPConfiguration.id"), protocol, rule.get("frontendPort"))
        pools = (*at(rule, "backendAddressPool.id"), *at(rule, "backendAddressPools[].id"))
        back = (*pools, protocol, rule.get("backendPort"))
        if front in fronts:
            raise refused(
                "RulesUseSameFrontendPortProtocolAndIPConfig",
                f"Load balancing rules {fronts[front]} and {name} use the same frontend, protocol and port.",
                f"both have {protocol} {rule.get('frontendPort')}",
            )
        if back in backs and not rule.get("enableFloatingIP"):
            raise refused(
                "RulesUseSameBackendPortProtocolAndPool",
                f"Load balancing rules {backs[back]} and {name} use the same backend pool, protocol and port.",
                "use other ports or enableFloatingIP",
            )
        _is_whole(rule, name)
        fronts[front] = backs[back] = name


def _is_whole(rule: Properties, name: str) -> None:
    all_ports = rule.get("protocol") == "All"
    if all_ports != (rule.get("frontendPort") == 0 and rule.get("backendPort") == 0):
        raise refused(
            BAD_REQUEST,
            f"Rule {name}: the protocol All goes with the ports 0 and 0, and only with them.",
            "set all three",
        )


def _zones(call: Call) -> list[Place]:
    return [Place("azure", call.region, str(zone)) for zone in at(call.inputs, f"{_FRONTENDS}[].zones[]")]


_load_balancer = ResourceType(
    token=LOAD_BALANCER,
    noun="Load balancer",
    identify=under_group("Microsoft.Network/loadBalancers"),
    outputs=outputs(
        "Microsoft.Network/loadBalancers",
        frontendIPConfigurations=lambda call: addressed(call, _FRONTENDS),
        backendAddressPools=lambda call: parts(call, _POOLS),
        loadBalancingRules=lambda call: parts(call, _RULES),
        probes=lambda call: parts(call, _PROBES),
        outboundRules=lambda call: parts(call, "outboundRules"),
    ),
    naming=network_name("loadBalancerName"),
    where=("location",),
    replace_on=("resourceGroupName", "loadBalancerName"),
    fixed=("sku", f"{_FRONTENDS}[].zones"),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference(f"{_FRONTENDS}[].subnet.id", (SUBNET,)),
        Reference(f"{_FRONTENDS}[].publicIPAddress.id", (PUBLIC_ADDRESS,)),
    ),
    refuse=(
        _is_standard,
        _names_are_unique,
        _frontends_have_one_address,
        sole_user(
            f"{_FRONTENDS}[].publicIPAddress.id",
            "PublicIPAddressInUse",
            "Resource {id} is referencing public IP address {value} that is already allocated to resource {user}.",
        ),
        offered(_zones),
        static_addresses(_FRONTENDS),
        _parts_exist,
        _probes_are_whole,
        _rules_are_apart,
    ),
    implied=with_parts(LOAD_BALANCER, *_PARTS),
    says={
        Reason.IN_USE: Saying(
            'Status=400 Code="LoadBalancerInUseByVirtualMachineScaleSet" Message="Cannot delete load balancer {value} '
            'since its child resources are in use by {user}."',
            "delete first: {users}",
        )
    },
)

TYPES = (_load_balancer,)
