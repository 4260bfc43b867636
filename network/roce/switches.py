"""What switches of a fabric must be told so that they agree with the hosts, in the words of each network system. Pure.

Commands and tables are those of: "RDMA over Converged Ethernet - RoCE" (Cumulus Linux 5 user guide); "RoCE Commands" and
"Traffic Class" (NVIDIA Onyx user manual 3.10), "Lossless RoCE Configuration for MLNX-OS Switches in DSCP-Based QoS Mode"
(Mellanox community); "SONiC Configuration Database Manual" (sonic-net/SONiC); "Quality of Service" and "Priority Flow
Control" (Arista EOS user manual). None was tried on a switch.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cluster.roce import Fabric, Roce

ECN_MIN_BYTES, ECN_MAX_BYTES = 150_000, 1_500_000
"""Length of a queue from which some packets, and from which all, are marked: what Cumulus and Onyx start from ("RoCE",
default configuration). A start, to be tuned by the switches' own counters."""
UDP_PORT = 4791
"""IANA: RoCE v2."""


class System(StrEnum):
    """Network systems of switches."""

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
"""Stand-ins for the ports to hosts and to other switches of the fabric, which the spec does not know."""

_TEMPLATES = Environment(
    loader=PackageLoader("network.roce"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)


def numbers(roce: Roce) -> dict[str, Any]:
    """What hosts do and switches must: the one table that every snippet is made from."""
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
    """What to enter on a switch of one system. ports: in its words; a stand-in without."""
    return _TEMPLATES.get_template(f"{system}.j2").render(
        **numbers(roce),
        lossless=roce.fabric is Fabric.LOSSLESS,
        usual=(roce.priority, roce.dscp, roce.cnp_dscp, roce.cnp_priority) == (3, 26, 48, 6),
        ports=ports or PORTS[system],
    )
