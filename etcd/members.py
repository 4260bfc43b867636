"""The members of the etcds of a cluster: names, hosts, ports and URLs.

An etcd is named by its role: `main` or `events`. The code here does not depend on the purpose of a role.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from cluster.spec import Cluster, EtcdCluster, RoleName
from network.addresses import ROLES, AddressPlan

_FIRST_LOCAL_PORT = 2383
_FIRST_AGENT_PORT = _FIRST_LOCAL_PORT + 4 * len(ROLES)
_FIRST_RELAY_PORT = _FIRST_AGENT_PORT + 2 * len(ROLES) + 1


@dataclass(frozen=True)
class Member:
    """A member of an etcd.

    name: of the member (`etcd-events-1`); it stays with the member's disk. host: the machine that it runs on, whose name differs
    if events shares main's hosts.
    """

    name: str
    host: str
    zone: str
    address: IPv4Address
    client_port: int
    peer_port: int

    @property
    def client_url(self) -> str:
        return f"https://{self.address}:{self.client_port}"

    @property
    def peer_url(self) -> str:
        return f"https://{self.address}:{self.peer_port}"


def settings(cluster: Cluster, role: RoleName) -> EtcdCluster:
    """Return this etcd's part of the spec."""
    return cluster.spec.etcd.main if role == "main" else cluster.spec.etcd.events


def metrics_port(cluster: Cluster, role: RoleName) -> int:
    """Return the TCP port on 127.0.0.1 for /metrics and /health without TLS: 2383 for main, 2384 for events, or the next ports
    that no etcd of the cluster uses."""
    return _local_ports(cluster)[ROLES.index(role)]


def http_port(cluster: Cluster, role: RoleName) -> int:
    """Return the TCP port on 127.0.0.1 for etcd's HTTP service, with TLS: the next ones after the metrics ports."""
    return _local_ports(cluster)[len(ROLES) + ROLES.index(role)]


def agent_port(cluster: Cluster) -> int:
    """Return the TCP port of the agent on every member's host: 2391, or the next one that no etcd of the cluster uses."""
    return next(port for port in range(_FIRST_AGENT_PORT, 65536) if port not in _taken(cluster))


def relay_port(cluster: Cluster) -> int:
    """Return the TCP port of metrics-relay on members' hosts and API servers: 2396, or the next one that no etcd of the cluster uses.

    The agent never gets it: four ports of etcds can be in the agent's way at most.
    """
    return next(port for port in range(_FIRST_RELAY_PORT, 65536) if port not in _taken(cluster))


def _taken(cluster: Cluster) -> set[int]:
    etcds = [settings(cluster, role) for role in ROLES]
    return {port for etcd in etcds for port in (etcd.client_port, etcd.peer_port)}


def _local_ports(cluster: Cluster) -> list[int]:
    taken = _taken(cluster)
    return [port for port in range(_FIRST_LOCAL_PORT, _FIRST_LOCAL_PORT + 4 * len(ROLES)) if port not in taken]


def data_dir(cluster: Cluster, role: RoleName) -> str:
    """Return the members' data folder, the same on every host."""
    return settings(cluster, role).data_dir


def members(cluster: Cluster, role: RoleName, plan: AddressPlan) -> tuple[Member, ...]:
    """Return the members in order: etcd-<role>-1 first."""
    spec = settings(cluster, role)
    return tuple(
        Member(
            name=f"etcd-{role}-{number}",
            host=host.name,
            zone=host.zone,
            address=host.address,
            client_port=spec.client_port,
            peer_port=spec.peer_port,
        )
        for number, host in enumerate(plan.etcd[role], start=1)
    )


def members_by_host(cluster: Cluster, plan: AddressPlan) -> dict[str, dict[RoleName, Member]]:
    """Return host -> the members that run on it, by role: two if events shares main's hosts."""
    by_host: dict[str, dict[RoleName, Member]] = {}
    for role in ROLES:
        for member in members(cluster, role, plan):
            by_host.setdefault(member.host, {})[role] = member
    return by_host


def client_urls(cluster: Cluster, role: RoleName, plan: AddressPlan) -> tuple[str, ...]:
    """Return the client URLs of this etcd, one per member."""
    return tuple(member.client_url for member in members(cluster, role, plan))


def member(cluster: Cluster, role: RoleName, name: str, plan: AddressPlan) -> Member:
    """Return the member with that name. Raises ValueError that lists the members if there is none."""
    existing = members(cluster, role, plan)
    for candidate in existing:
        if candidate.name == name:
            return candidate
    names = ", ".join(candidate.name for candidate in existing)
    raise ValueError(f"etcd {role} has no member {name}; its members are {names}")
