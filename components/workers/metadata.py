"""Keeps pods in the region away from their machine's identity: nftables rules, and the unit that loads them. Pure.

A metadata service gives the machine's identity to any process on the machine, and that identity can read the store. The host,
and pods on its network, send packets directly; packets that the host forwards come from other pods. So the rules are in the
forward hook. It comes after any address rewriting, whatever mode kube-proxy is in, and no table can bring back a packet that
another table dropped (nft(8), "Verdict statements").
"""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

from cluster.files import HostFile
from cluster.spec import Cloud, Cluster

UNIT = "metadata-guard.service"
RULES = "/etc/menagerie/metadata.nft"
METADATA = IPv4Address("169.254.169.254")
"""The metadata service of every cloud, and of the lab's store, which identifies hosts by their source address."""
WIRE_SERVER = IPv4Address("168.63.129.16")
"""Azure's wire server: gives a machine's settings to its agent, and resolves names ("What is IP address 168.63.129.16?")."""
_RESOLVERS = {Cloud.GCP: METADATA, Cloud.AZURE: WIRE_SERVER}
"""Clouds whose DNS resolver has one of these addresses; Google Cloud's is the metadata server ("Internal DNS")."""
_FILES = Path(__file__).resolve().parent / "files"


def addresses(cluster: Cluster) -> tuple[IPv4Address, ...]:
    """Return the addresses that pods in the region must not reach."""
    return (METADATA, WIRE_SERVER) if cluster.spec.control_plane.cloud is Cloud.AZURE else (METADATA,)


def files(cluster: Cluster) -> tuple[HostFile, ...]:
    """Return the rules, and the unit that loads them before any pod runs."""
    return HostFile(RULES, rules(cluster)), HostFile(f"/etc/systemd/system/{UNIT}", (_FILES / UNIT).read_text())


def rules(cluster: Cluster) -> str:
    """Return a separate nftables table, which is replaced as a whole.

    DNS stays open: pods query CoreDNS, and CoreDNS, also a pod, queries the cloud's resolver. Azure's load balancers probe nodes
    from the wire server, so a pod that serves a probe may reply to it.
    """
    cloud = cluster.spec.control_plane.cloud
    resolver = _RESOLVERS.get(cloud)
    opened = f"        ip daddr {WIRE_SERVER} ct direction reply accept\n" if cloud is Cloud.AZURE else ""
    opened += f"        ip daddr {resolver} meta l4proto {{ tcp, udp }} th dport 53 accept\n" if resolver else ""
    closed = ", ".join(map(str, addresses(cluster)))
    return (
        "# Pods do not reach the metadata service; the host, and pods in its network, do.\n"
        "table inet menagerie-metadata\n"
        "delete table inet menagerie-metadata\n"
        "table inet menagerie-metadata {\n"
        "    chain pods {\n"
        "        type filter hook forward priority filter; policy accept;\n"
        f"{opened}"
        # Rejected, not dropped, so that programs that look for a cloud identity continue without one at once.
        f"        ip daddr {{ {closed} }} counter reject with icmpx admin-prohibited\n"
        "    }\n"
        "}\n"
    )
