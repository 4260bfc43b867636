"""Network firewall policies of Google Cloud: rules are part of their policy; associations attach it to networks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.simcloud.gcp.common import REGIONAL, bare, compute, last, numbered
from sandbox.simcloud.gcp.firewall import PORTS, PROTOCOLS, WITH_PORTS
from sandbox.simcloud.gcp.iam import known_account, of_account
from sandbox.simcloud.gcp.tokens import FIREWALL_POLICY, NETWORK
from sandbox.simcloud.gcp.words import conflict, invalid
from sandbox.simcloud.refusals import networks
from sandbox.simcloud.rules import Call, Reference
from sandbox.simcloud.values import at

# "FirewallPolicyRule", Compute Engine API: 0 to 2147483647; Google reserves the last four.
_LAST = 2147483643
_ACTIONS = ("allow", "deny", "apply_security_profile_group", "goto_next")
_ENDS = {"INGRESS": "srcIpRanges", "EGRESS": "destIpRanges"}
_BESIDE = re.compile(r"src(SecureTags|AddressGroups|Fqdns|RegionCodes|ThreatIntelligences)|dest(AddressGroups|Fqdns|"
                     r"RegionCodes|ThreatIntelligences)")  # fmt: skip
# "VPC resource quotas" and "Cloud NGFW quotas", per firewall rule; a policy's rule has the same limits.
_MOST_ACCOUNTS, _MOST_RANGES = 10, 5000


def _rules(call: Call) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for i, rule in enumerate(at(call.inputs, "rules[]")):
        yield f"rules[{i}]", rule


def _priorities(call: Call) -> None:
    paths: dict[int, str] = {}
    for path, rule in _rules(call):
        priority = int(rule["priority"])
        if not 0 <= priority <= _LAST:
            raise invalid(f"{path}.priority", str(priority), f"Must be between 0 and {_LAST}.", "choose another")
        if priority in paths:
            raise invalid(
                f"{path}.priority", str(priority), f"Same as that of {paths[priority]}.", "no two rules may share one"
            )
        paths[priority] = path


def _shape(call: Call) -> None:
    for path, rule in _rules(call):
        if rule.get("action") not in _ACTIONS:
            raise conflict(f"{path}.action", f"expected one of {', '.join(_ACTIONS)}", "such as allow")
        direction = str(rule.get("direction") or "INGRESS")
        match: Mapping[str, Any] = rule.get("match") or {}
        end = _ENDS.get(direction)
        if end is None:
            raise conflict(f"{path}.direction", "expected one of INGRESS, EGRESS", "choose one")
        # The provider says "Required for INGRESS rules", and the same for EGRESS; other properties can replace the ranges.
        word = "src" if direction == "INGRESS" else "dest"
        if not match.get(end) and not any(name.startswith(word) and _BESIDE.fullmatch(name) for name in match):
            raise invalid(f"{path}.match.{end}", "", f"{direction} rules need it.", "set the addresses")
        if rule.get("targetSecureTags") and rule.get("targetServiceAccounts"):
            raise conflict(f"{path}.targetSecureTags", "conflicts with targetServiceAccounts", "choose one")


def _matches(call: Call) -> None:
    for path, rule in _rules(call):
        number = len(rule.get("targetServiceAccounts") or ())
        if number > _MOST_ACCOUNTS:
            raise invalid(
                f"{path}.targetServiceAccounts", str(number), f"At most {_MOST_ACCOUNTS} are allowed in one rule.",
                "split it into two rules",
            )  # fmt: skip
        for end in _ENDS.values():
            ranges = len(list(at(rule, f"match.{end}[]")))
            if ranges > _MOST_RANGES:
                raise invalid(
                    f"{path}.match.{end}",
                    str(ranges),
                    f"At most {_MOST_RANGES} are allowed in one rule.",
                    "merge ranges",
                )
            for text in at(rule, f"match.{end}[]"):
                if ":" not in str(text) and not list(networks([text])):
                    way_out = "leave no host bits"
                    raise invalid(f"{path}.match.{end}", str(text), "Must be a valid CIDR address range.", way_out)
        services = list(at(rule, "match.layer4Configs[]"))
        if not services:
            raise conflict(f"{path}.match.layer4Configs", "at least 1 is required", "name a protocol, or all")
        for service in services:
            _service(path, service)


def _service(path: str, service: Mapping[str, Any]) -> None:
    protocol, ports = str(service.get("ipProtocol", "")).lower(), list(map(str, service.get("ports") or ()))
    property_ = f"{path}.match.layer4Configs"
    if protocol not in PROTOCOLS and not (protocol.isdigit() and int(protocol) < 256):
        raise invalid(property_, protocol, "Unknown protocol.", f"{', '.join(PROTOCOLS)}, or its number")
    if ports and protocol not in WITH_PORTS:
        raise invalid(property_, str(ports), f"Ports may not be specified with protocol {protocol}.", "leave them out")
    for port in ports:
        if not PORTS.fullmatch(port) or max(map(int, port.split("-"))) > 65535:
            raise invalid(property_, port, "Invalid port range.", "give a port, or two with a hyphen")


def _association_id(call: Call) -> str:
    policy = call.target("firewallPolicy")
    within = policy.id if policy else call.text("firewallPolicy")
    return f"{within}/associations/{last(call.name)}"


TYPES = (
    compute(
        "RegionNetworkFirewallPolicyWithRules",
        "firewall_policy",
        "firewallPolicies",
        where=REGIONAL,
        computed={"policyType": lambda _: "VPC_POLICY", "networkFirewallPolicyId": numbered},
        replace_on=("policyType",),
        references=(of_account("rules[].targetServiceAccounts[]"),),
        refuse=(_priorities, _shape, _matches, known_account("rules[].targetServiceAccounts[]")),
    ),
    compute(
        "RegionNetworkFirewallPolicyAssociation",
        "firewall_policy_association",
        "associations",
        where=REGIONAL,
        identify=_association_id,
        computed={"shortName": lambda call: call.name},
        replace_on=("attachmentTarget", "firewallPolicy"),
        references=(
            Reference("attachmentTarget", (NETWORK,), resolve=bare),
            Reference("firewallPolicy", (FIREWALL_POLICY,), resolve=bare),
        ),
    ),
)
