"""Firewall rules of Google Cloud."""

from __future__ import annotations

import re

from sandbox.simcloud.gcp.common import GLOBAL, NAME, compute, one_of, priority
from sandbox.simcloud.gcp.network import IN_NETWORK
from sandbox.simcloud.gcp.words import conflict, invalid
from sandbox.simcloud.refusals import networks
from sandbox.simcloud.rules import Call
from sandbox.simcloud.values import at

_SOURCES = ("sourceTags", "sourceRanges", "sourceServiceAccounts")
_BY_TAG, _BY_ACCOUNT = ("sourceTags", "targetTags"), ("sourceServiceAccounts", "targetServiceAccounts")

# From "Firewall resource", Compute Engine API, IPProtocol; WITH_PORTS are the protocols that have ports.
PROTOCOLS = ("tcp", "udp", "icmp", "esp", "ah", "sctp", "ipip", "all")
WITH_PORTS = ("tcp", "udp", "sctp", "6", "17", "132")
PORTS = re.compile(r"\d{1,5}(-\d{1,5})?")


def _sources(call: Call) -> None:
    egress = call.text("direction") == "EGRESS"
    given = [name for name in _SOURCES if call.inputs.get(name)]
    # "VPC firewall rules": packets that leave are selected by range only.
    selects = [name for name in given if name != "sourceRanges"]
    if egress and selects:
        raise invalid(
            selects[0],
            str(call.inputs[selects[0]]),
            f"Only INGRESS firewalls may have {selects[0]}.",
            "set sourceRanges or destinationRanges, or make the direction INGRESS",
        )
    if not egress and not given:
        raise conflict(
            "sourceRanges",
            "one of source_tags, source_ranges, or source_service_accounts must be defined",
            "set who may connect",
        )
    for account in _BY_ACCOUNT:
        for tag in _BY_TAG:
            if call.inputs.get(account) and call.inputs.get(tag):
                raise conflict(
                    account, f"conflicts with {tag}", "select sources and targets both by tag or both by account"
                )


# "VPC resource quotas": fixed limits per firewall rule.
_MOST = {"sourceServiceAccounts": 10, "targetServiceAccounts": 10, "sourceTags": 30, "targetTags": 70}


def _number(call: Call) -> None:
    for path, most in _MOST.items():
        number = len(list(at(call.inputs, f"{path}[]")))
        if number > most:
            raise invalid(path, str(number), f"At most {most} are allowed in one rule.", "split it into two rules")


def _ranges(call: Call) -> None:
    for path in ("sourceRanges", "destinationRanges"):
        for i, text in enumerate(at(call.inputs, f"{path}[]")):
            if ":" not in str(text) and not list(networks([text])):
                raise invalid(f"{path}[{i}]", str(text), "Must be a valid CIDR address range.", "leave no host bits")


def _protocols(call: Call) -> None:
    for path in ("allows", "denies"):
        for row in at(call.inputs, f"{path}[]"):
            protocol, ports = str(row.get("protocol", "")).lower(), row.get("ports") or []
            if protocol not in PROTOCOLS and not (protocol.isdigit() and int(protocol) < 256):
                raise invalid(
                    f"{path}.protocol", protocol, "Unknown protocol.", f"{', '.join(PROTOCOLS)}, or its number"
                )
            if ports and protocol not in WITH_PORTS:
                raise invalid(
                    f"{path}.ports",
                    str(ports),
                    f"Ports may not be specified with protocol {protocol}.",
                    "leave them out",
                )
            for port in map(str, ports):
                if not PORTS.fullmatch(port) or max(map(int, port.split("-"))) > 65535:
                    raise invalid(f"{path}.ports", port, "Invalid port range.", "give a port, or two with a hyphen")


def _tags(call: Call) -> None:
    for path in _BY_TAG:
        for text in at(call.inputs, f"{path}[]"):
            if not NAME.pattern.fullmatch(str(text)):
                raise invalid(
                    path,
                    str(text),
                    f"Must be a match of regex '{NAME.pattern.pattern}'.",
                    "name tags like machines",
                )


TYPES = (
    compute(
        "Firewall",
        "firewall",
        "firewalls",
        where=GLOBAL,
        computed={"direction": lambda _: "INGRESS", "priority": lambda _: 1000},
        replace_on=("direction", "params"),
        references=(IN_NETWORK,),
        refuse=(one_of("allows", "denies"), _sources, _number, _ranges, _protocols, _tags, priority),
    ),
)
