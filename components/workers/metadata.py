"""Keeps pods in the region away from their machine's identity: rules of iptables, and the unit that loads them. Pure.

A metadata service gives the machine's identity to any process on the machine, and that identity can read the store. The host,
and pods on its network, send packets directly; packets that the host forwards come from other pods. So the rules are in the
forward hook. It comes after any address rewriting, whatever mode kube-proxy is in.

The guard is in the table `security`, which nothing else on a worker uses and which comes after all other filters: they may
accept a packet, and it is dropped all the same (iptables(8), "security"). Only the table `filter` may answer with a refusal,
so the same addresses are refused there first, and programs that look for a cloud identity continue without one at once.

iptables, not nft: Debian's images for clouds have no nft (docs/decisions/0108).
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

from cluster.files import HostFile
from cluster.spec import Cloud, Cluster

UNIT = "metadata-guard.service"
GUARD = "/etc/menagerie/metadata-guard.rules"
REFUSAL = "/etc/menagerie/metadata-refusal.rules"
CHAIN = "MENAGERIE-METADATA"
"""Has the refusals."""
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
    return (
        HostFile(GUARD, guard(cluster)),
        HostFile(REFUSAL, refusal(cluster)),
        HostFile(f"/etc/systemd/system/{UNIT}", (_FILES / UNIT).read_text()),
    )


def guard(cluster: Cluster) -> str:
    """Return the table `security` for iptables-restore, which replaces it as a whole."""
    rules = "".join(f"-A FORWARD {rule}\n" for rule in _rules(cluster, "DROP"))
    return (
        "# Pods do not reach the metadata service; the host, and pods in its network, do.\n"
        f"*security\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n"
    )


def refusal(cluster: Cluster) -> str:
    """Return a chain of the table `filter` for iptables-restore, which must leave the table's other chains as they are."""
    rules = "".join(f"-A {CHAIN} {rule}\n" for rule in _rules(cluster, "REJECT --reject-with icmp-admin-prohibited"))
    return (
        "# Answers what metadata-guard.rules would drop in silence.\n"
        f"*filter\n:{CHAIN} - [0:0]\n{rules}-I FORWARD -j {CHAIN}\nCOMMIT\n"
    )


def _rules(cluster: Cluster, target: str) -> Iterator[str]:
    """Yield rules without their chain. target: what happens to packets that pods must not send.

    DNS stays open: pods query CoreDNS, and CoreDNS, also a pod, queries the cloud's resolver. Azure's load balancers probe nodes
    from the wire server, so a pod that serves a probe may reply to it.
    """
    cloud = cluster.spec.control_plane.cloud
    if cloud is Cloud.AZURE:
        yield f"-d {WIRE_SERVER}/32 -m conntrack --ctdir REPLY -j RETURN"
    if resolver := _RESOLVERS.get(cloud):
        for protocol in ("tcp", "udp"):
            yield f"-d {resolver}/32 -p {protocol} -m {protocol} --dport 53 -j RETURN"
    for address in addresses(cluster):
        yield f"-d {address}/32 -j {target}"
