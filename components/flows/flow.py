"""Types of the table of flows, and queries on it.

A role stands for the addresses of packets on the wire. Packets from a pod to addresses outside the pod range carry the worker's
address, so a pod's access to the API is a flow of its worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class Role(StrEnum):
    """Who opens or accepts connections. A firewall has one set of addresses for each role."""

    OPERATOR = "operator"
    """A person who runs menagerie and kubectl."""
    LOAD_BALANCER = "load balancer"
    """In front of the API servers. Also the source of its probes and of the connections that it forwards."""
    PUBLIC_OPERATOR = "operator on the internet"
    SERVICE_CLIENT = "client of Services outside"
    """Clients that the spec allows to reach ports of Services on workers (`network.node_ports.outside`)."""
    PUBLIC_BALANCER = "public load balancer"
    """Also in front of the API servers, if the spec has a public endpoint."""
    API_SERVER = "API server"
    ETCD_MAIN = "etcd main member"
    ETCD_EVENTS = "etcd events member"
    """Only with separate hosts. If events shares the hosts of main, the role is not used."""
    WORKER_IN_REGION = "worker in the region"
    WORKER_AT_SITE = "worker at a site"
    POD = "pod"
    """The pod range, where packets of pods travel without encapsulation."""
    SITE_EDGE = "edge router of a site"
    VPN_GATEWAY = "VPN gateway of the cloud"
    SECRET_STORE = "secret store"
    """It also has the payloads that user data refers to."""
    CLOUD_API = "API of the cloud"
    """Creates and attaches volumes, and identifies machines that join."""
    FILE_STORE = "shared file system"
    BMC = "BMC of a machine at a site"
    """Its management controller, which has an address of its own."""
    BUCKETS = "object storage"
    """Has the backups of etcds and the audit logs."""
    ARTEFACT_MIRROR = "artefact mirror"
    """Or the upstream download sites."""
    REGISTRY = "image registry"
    RESOLVER = "DNS resolver"
    TIME_SERVER = "time server"
    METADATA = "metadata service"
    """The cloud's service that gives a host its name, user data and identity."""


CLOUD_SIDE = (Role.API_SERVER, Role.ETCD_MAIN, Role.ETCD_EVENTS, Role.WORKER_IN_REGION)
"""Hosts that boot from user data."""
OWN = frozenset(
    {
        *CLOUD_SIDE,
        Role.LOAD_BALANCER,
        Role.PUBLIC_BALANCER,
        Role.WORKER_AT_SITE,
        Role.POD,
        Role.SITE_EDGE,
        Role.VPN_GATEWAY,
    }
)
"""Roles that are part of the cluster. Menagerie does not manage the firewalls of the others."""


class Protocol(StrEnum):
    """The protocol of a flow."""

    TCP = "tcp"
    UDP = "udp"
    ESP = "esp"
    """IP protocol 50: IPsec's encrypted packets, which have no ports."""
    ALL = "all"
    """Every protocol and every port."""


@dataclass(frozen=True)
class Flow:
    """`source` may open connections to `ports` of `destination`. Replies belong to the connection.

    ports: ascending; none with `Protocol.ESP` and `Protocol.ALL`. why: one sentence, which is also the comment of the firewall
    rule: at most 127 characters (nft), and only characters that AWS allows in a rule's description (no apostrophe).
    """

    source: Role
    destination: Role
    protocol: Protocol
    ports: tuple[int, ...]
    why: str


Table = tuple[Flow, ...]


def ranges(ports: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return (first, last) for each range of ascending ports. Only three or more consecutive ports become one range."""
    runs: list[list[int]] = []
    for port in ports:
        if runs and port == runs[-1][-1] + 1:
            runs[-1].append(port)
        else:
            runs.append([port])
    return tuple(
        pair for run in runs for pair in ([(run[0], run[-1])] if len(run) > 2 else [(port, port) for port in run])
    )


def spans(ports: Iterable[int]) -> tuple[str, ...]:
    """Return ascending ports as text for people, nft and clouds, such as "22" and "6800-7568"."""
    return tuple(str(first) if first == last else f"{first}-{last}" for first, last in ranges(ports))


def into(table: Table, role: Role) -> Table:
    """Return the flows into `role`."""
    return tuple(flow for flow in table if flow.destination is role)


def out_of(table: Table, role: Role) -> Table:
    """Return the flows that `role` opens."""
    return tuple(flow for flow in table if flow.source is role)


def roles(table: Table) -> tuple[Role, ...]:
    """Return the roles in the table, in the order of `Role`."""
    used = {role for flow in table for role in (flow.source, flow.destination)}
    return tuple(role for role in Role if role in used)


def closed(table: Table) -> tuple[tuple[Role, Role], ...]:
    """Return every (source, destination) without a flow where at least one of the two is part of the cluster.

    A test of such a pair from inside a pod has the pod's worker as its source.
    """
    opened = {(flow.source, flow.destination) for flow in table}
    used = roles(table)
    return tuple(pair for pair in product(used, used) if pair not in opened and not OWN.isdisjoint(pair))
