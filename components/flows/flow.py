"""The words of the table of flows, and what can be asked of it.

A role stands for the addresses that packets carry on the wire. What a pod sends beyond the pods'
range carries its worker's address, so a pod's way to the API is a flow of its worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class Role(StrEnum):
    """Who opens connections, and who takes them; a firewall has one set of addresses for each."""

    OPERATOR = "operator"
    """Who runs menagerie and kubectl."""
    LOAD_BALANCER = "load balancer"
    """In front of the API servers; the source of its probes, and of what it passes on."""
    PUBLIC_OPERATOR = "operator on the internet"
    SERVICE_CLIENT = "client of Services outside"
    """Whom the spec lets in at the ports of Services on workers (`network.node_ports.outside`)."""
    PUBLIC_BALANCER = "public load balancer"
    """In front of the API servers too, where the spec asks for a public endpoint."""
    API_SERVER = "API server"
    ETCD_MAIN = "etcd main member"
    ETCD_EVENTS = "etcd events member"
    """A host of its own; where events shares the hosts of main, there are none."""
    WORKER_IN_REGION = "worker in the region"
    WORKER_AT_SITE = "worker at a site"
    POD = "pod"
    """The range of pods, where their packets travel unwrapped."""
    SITE_EDGE = "edge router of a site"
    VPN_GATEWAY = "VPN gateway of the cloud"
    SECRET_STORE = "secret store"
    """And of the payloads that user data refers to."""
    CLOUD_API = "API of the cloud"
    """By which volumes are made and attached, and machines that join are known."""
    FILE_STORE = "shared file system"
    BUCKETS = "object storage"
    """Where etcds have their backups."""
    ARTEFACT_MIRROR = "artefact mirror"
    """Or the upstream download sites."""
    REGISTRY = "image registry"
    RESOLVER = "DNS resolver"
    TIME_SERVER = "time server"
    METADATA = "metadata service"
    """The cloud's, that tells a host its name and gives it its user data and identity."""


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
"""What is part of the cluster; the others are around it, and their firewalls are not ours."""


class Protocol(StrEnum):
    """What a flow is made of."""

    TCP = "tcp"
    UDP = "udp"
    ESP = "esp"
    """IP protocol 50: encrypted packets of IPsec, which have no ports."""
    ALL = "all"
    """Every protocol, with every port."""


@dataclass(frozen=True)
class Flow:
    """`source` may open connections to `ports` of `destination`; answers belong to the connection.

    ports: rising; none with `Protocol.ESP` and `Protocol.ALL`. why: one sentence, which is also the
    comment of the rule: at most 127 characters (nft), of those that AWS takes in a rule's
    description (no apostrophe).
    """

    source: Role
    destination: Role
    protocol: Protocol
    ports: tuple[int, ...]
    why: str


Table = tuple[Flow, ...]


def ranges(ports: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """(first, last) of each range of rising ports; only three and more in a row are one."""
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
    """Rising ports for people, for nft and for clouds, as in "22", "6800-7568"."""
    return tuple(str(first) if first == last else f"{first}-{last}" for first, last in ranges(ports))


def into(table: Table, role: Role) -> Table:
    """The flows that `role` takes."""
    return tuple(flow for flow in table if flow.destination is role)


def out_of(table: Table, role: Role) -> Table:
    """The flows that `role` opens."""
    return tuple(flow for flow in table if flow.source is role)


def roles(table: Table) -> tuple[Role, ...]:
    """Who is in the table, in the order of `Role`."""
    found = {role for flow in table for role in (flow.source, flow.destination)}
    return tuple(role for role in Role if role in found)


def closed(table: Table) -> tuple[tuple[Role, Role], ...]:
    """Every (source, destination) with one of the cluster's own at an end, or at both, and no flow between them.

    To try from inside a pod whether a pair is closed is to try it as the pod's worker.
    """
    used = {(flow.source, flow.destination) for flow in table}
    known = roles(table)
    return tuple(pair for pair in product(known, known) if pair not in used and not OWN.isdisjoint(pair))
