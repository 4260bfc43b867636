"""The members of any etcd of a cluster: names, hosts, ports and URLs.

An etcd is named by its role: `main`, `events`. Nothing below knows what a role is for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address

from cluster.spec import Cluster, EtcdCluster, RoleName
from network.addresses import ROLES, AddressPlan

_DEFAULT_PORTS: dict[RoleName, tuple[int, int]] = {"main": (2379, 2380), "events": (2381, 2382)}
_FIRST_LOCAL_PORT = 2383


@dataclass(frozen=True)
class Member:
    """One member of an etcd. `name` is its own (`etcd-events-1`) and stays with its disk; `host` is
    the machine it runs on, another name where events shares main's hosts."""

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
    """What the spec says about this etcd."""
    return cluster.spec.etcd.main if role == "main" else cluster.spec.etcd.events


def client_port(cluster: Cluster, role: RoleName) -> int:
    """TCP port for clients, on every member: the spec's, or 2379 for main and 2381 for events."""
    return settings(cluster, role).client_port or _DEFAULT_PORTS[role][0]


def peer_port(cluster: Cluster, role: RoleName) -> int:
    """TCP port between members: the spec's, or 2380 for main and 2382 for events."""
    return settings(cluster, role).peer_port or _DEFAULT_PORTS[role][1]


def metrics_port(cluster: Cluster, role: RoleName) -> int:
    """TCP port on 127.0.0.1 with /metrics and /health in clear text: 2383 for main, 2384 for
    events, or the next ones that no etcd of the cluster uses."""
    return _local_ports(cluster)[ROLES.index(role)]


def http_port(cluster: Cluster, role: RoleName) -> int:
    """TCP port on 127.0.0.1 for etcd's HTTP service, over TLS: the next ones after the metrics'."""
    return _local_ports(cluster)[len(ROLES) + ROLES.index(role)]


def _local_ports(cluster: Cluster) -> list[int]:
    taken = {port for each in ROLES for port in (client_port(cluster, each), peer_port(cluster, each))}
    return [port for port in range(_FIRST_LOCAL_PORT, _FIRST_LOCAL_PORT + 4 * len(ROLES)) if port not in taken]


def data_dir(cluster: Cluster, role: RoleName) -> str:
    """Where members keep their data: the spec's, or /var/lib/etcd/<role>.

    Raises ValueError for a path that is not a plain one at least two folders deep: the folder itself
    is given to etcd, and so would be /usr.
    """
    chosen = settings(cluster, role).data_dir or f"/var/lib/etcd/{role}"
    if not re.fullmatch(r"(/[A-Za-z0-9][A-Za-z0-9._-]*){2,}", chosen):
        raise ValueError(
            f"etcd.{role}.data_dir {chosen} is given to etcd whole and can't be that; "
            f"use a folder of its own, at least two deep, without spaces: /var/lib/etcd/{role}"
        )
    return chosen


def members(cluster: Cluster, role: RoleName, plan: AddressPlan) -> tuple[Member, ...]:
    """The members in order: etcd-<role>-1 first."""
    return tuple(
        Member(
            name=f"etcd-{role}-{number}",
            host=host.name,
            zone=host.zone,
            address=host.address,
            client_port=client_port(cluster, role),
            peer_port=peer_port(cluster, role),
        )
        for number, host in enumerate(plan.etcd[role], start=1)
    )


def client_urls(cluster: Cluster, role: RoleName, plan: AddressPlan) -> tuple[str, ...]:
    """Where clients of this etcd connect, one URL a member."""
    return tuple(member.client_url for member in members(cluster, role, plan))


def member(cluster: Cluster, role: RoleName, name: str, plan: AddressPlan) -> Member:
    """The member of that name. Raises ValueError that lists the members when there is none."""
    everyone = members(cluster, role, plan)
    for each in everyone:
        if each.name == name:
            return each
    raise ValueError(f"etcd {role} has no member {name}; its members are {', '.join(each.name for each in everyone)}")
