"""Status of the tunnels, as a table and as JSON."""

import json
import re
import time

from . import certificates, host

MONTH_S = 30 * 86400


def tunnels():
    """Return keys, BGP, routes and the certificate's end for each tunnel."""
    listed = host.run("swanctl", "--list-sas", "--raw")
    sas = dict(re.findall(r"^list-sa event \{(\S+) \{.*?\bstate=(\w+)", listed, re.MULTILINE))
    summary = json.loads(host.run("vtysh", "-c", "show bgp ipv4 unicast summary json") or "{}")
    peers = summary.get("ipv4Unicast", summary).get("peers", {})
    statuses = []
    for name, link in host.settings()["links"].items():
        peer = peers.get(link["peer"], {})
        statuses.append(
            {
                "interface": name,
                "connection": link["connection"],
                "ike": sas.get(link["connection"], "NONE"),
                "bgp": peer.get("state", "NONE"),
                "since": peer.get("peerUptime", "never"),
                "routes": peer.get("pfxRcd", 0),
                "expires": certificates.expires(link["certificate"]) if "certificate" in link else None,
            }
        )
    return statuses


def shown(statuses):
    lines = [("TUNNEL", "INTERFACE", "IKE", "BGP", "SINCE", "ROUTES", "CERTIFICATE")]
    names = ("connection", "interface", "ike", "bgp", "since", "routes")
    lines += [(*(str(s[name]) for name in names), until(s["expires"])) for s in statuses]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def until(expiry):
    if expiry is None:
        return "-"
    days = int((expiry - time.time()) // 86400)
    return time.strftime("%Y-%m-%d", time.gmtime(expiry)) + (f", {days} d" if days >= 0 else ", expired")


def sound(tunnel):
    """Return whether a tunnel is up, with a certificate that lasts for a month."""
    lasting = tunnel["expires"] is None or tunnel["expires"] > time.time() + MONTH_S
    return tunnel["ike"] == "ESTABLISHED" and tunnel["bgp"] == "Established" and lasting
