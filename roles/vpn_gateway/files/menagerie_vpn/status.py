"""What tunnels are like, for people and as JSON."""

import json
import re

from . import host


def tunnels():
    """Keys, BGP and routes of each."""
    listed = host.run("swanctl", "--list-sas", "--raw")
    sas = dict(re.findall(r"^list-sa event \{(\S+) \{.*?\bstate=(\w+)", listed, re.MULTILINE))
    told = json.loads(host.run("vtysh", "-c", "show bgp ipv4 unicast summary json") or "{}")
    peers = told.get("ipv4Unicast", told).get("peers", {})
    found = []
    for name, link in host.settings()["links"].items():
        peer = peers.get(link["peer"], {})
        found.append(
            {
                "interface": name,
                "connection": link["connection"],
                "ike": sas.get(link["connection"], "NONE"),
                "bgp": peer.get("state", "NONE"),
                "since": peer.get("peerUptime", "never"),
                "routes": peer.get("pfxRcd", 0),
            }
        )
    return found


def shown(found):
    lines = [("TUNNEL", "INTERFACE", "IKE", "BGP", "SINCE", "ROUTES")]
    lines += [(s["connection"], s["interface"], s["ike"], s["bgp"], s["since"], str(s["routes"])) for s in found]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
