"""What keeps pods in the region from their machine's identity: rules of nftables, and the unit that loads them. Pure.

A metadata service gives its machine's identity to whoever asks from the machine, and with that the store is read. A
host, and a pod in its network, ask by themselves; what the host forwards is a pod's. So the rules are where packets are
forwarded: after any rewriting of addresses, by kube-proxy in whichever mode, and a packet that one table drops no other
brings back (nft(8), "Verdict statements").
"""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

from cluster.files import HostFile
from cluster.spec import Cloud, Cluster

UNIT = "metadata-guard.service"
RULES = "/etc/menagerie/metadata.nft"
METADATA = IPv4Address("169.254.169.254")
"""Of every cloud, and of the lab's store, which knows hosts by where they ask from."""
WIRE_SERVER = IPv4Address("168.63.129.16")
"""Of Azure: hands a machine's settings to its agent, and resolves names ("What is IP address 168.63.129.16?")."""
_RESOLVERS = {Cloud.GCP: METADATA, Cloud.AZURE: WIRE_SERVER}
"""Where a cloud's resolver has such an address; Google Cloud's is the metadata server's ("Internal DNS")."""
_FILES = Path(__file__).resolve().parent / "files"


def addresses(cluster: Cluster) -> tuple[IPv4Address, ...]:
    """What pods in the region must not reach."""
    return (METADATA, WIRE_SERVER) if cluster.spec.control_plane.cloud is Cloud.AZURE else (METADATA,)


def files(cluster: Cluster) -> tuple[HostFile, ...]:
    """The rules, and the unit that loads them before any pod runs."""
    return HostFile(RULES, rules(cluster)), HostFile(f"/etc/systemd/system/{UNIT}", (_FILES / UNIT).read_text())


def rules(cluster: Cluster) -> str:
    """A table of its own, which is replaced whole. Pods ask CoreDNS, and CoreDNS, a pod, the cloud's resolver.

    Azure's load balancers probe nodes from the wire server, and where a pod takes the probe, it answers there.
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
        # Refused, not dropped: programs that look for a cloud's identity go on at once without.
        f"        ip daddr {{ {closed} }} counter reject with icmpx admin-prohibited\n"
        "    }\n"
        "}\n"
    )
