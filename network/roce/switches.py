"""Configuration that makes the switches of a fabric match the hosts, in the syntax of each network operating system. Pure.

Commands and tables come from: "RDMA over Converged Ethernet - RoCE" (Cumulus Linux 5 user guide); "RoCE Commands" and
"Traffic Class" (NVIDIA Onyx user manual 3.10), "Lossless RoCE Configuration for MLNX-OS Switches in DSCP-Based QoS Mode"
(Mellanox community); "SONiC Configuration Database Manual" (sonic-net/SONiC); "Quality of Service" and "Priority Flow
Control" (Arista EOS user manual). None was tested on a switch.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cluster.roce import Fabric, Roce

ECN_MIN_BYTES, ECN_MAX_BYTES = 150_000, 1_500_000
"""Queue lengths above which some packets, and above which all packets, are marked: the defaults of Cumulus and Onyx ("RoCE",
default configuration). A starting point, to be tuned by the switches' counters."""
UDP_PORT = 4791
"""IANA: RoCE v2."""


class System(StrEnum):
    """Network operating systems of switches."""

    CUMULUS = "cumulus"
    ONYX = "onyx"
    SONIC = "sonic"
    EOS = "eos"


TITLES = {
    System.CUMULUS: "Cumulus Linux (NVUE)",
    System.ONYX: "NVIDIA Onyx",
    System.SONIC: "SONiC (config_db.json)",
    System.EOS: "Arista EOS",
}
PORTS = {System.CUMULUS: "swp1-32", System.ONYX: "1/1-1/32", System.SONIC: "Ethernet0", System.EOS: "Ethernet1/1-32/1"}
"""Placeholders for the ports to hosts and to other switches of the fabric, which the spec does not have."""

_TEMPLATES = Environment(
    loader=PackageLoader("network.roce"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)


def numbers(roce: Roce) -> dict[str, Any]:
    """Return the settings that hosts use and switches must match. Every snippet is rendered from this table."""
    return {
        "fabric": str(roce.fabric),
        "trust": "dscp",
        "priority": roce.priority,
        "dscp": roce.dscp,
        "tos": roce.tos,
        "cnp_dscp": roce.cnp_dscp,
        "cnp_priority": roce.cnp_priority,
        "pfc": list(roce.pfc),
        "roce_mtu": roce.mtu,
        "link_mtu": roce.link_mtu,
        "least_link_mtu": roce.least_link_mtu,
        "ecn_min_bytes": ECN_MIN_BYTES,
        "ecn_max_bytes": ECN_MAX_BYTES,
        "udp_port": UDP_PORT,
    }


def snippet(roce: Roce, system: System, ports: str = "") -> str:
    """Return the configuration to enter on a switch. ports: in the system's syntax; a placeholder if empty."""
    return _TEMPLATES.get_template(f"{system}.j2").render(
        **numbers(roce),
        lossless=roce.fabric is Fabric.LOSSLESS,
        usual=(roce.priority, roce.dscp, roce.cnp_dscp, roce.cnp_priority) == (3, 26, 48, 6),
        ports=ports or PORTS[system],
    )
