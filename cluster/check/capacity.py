"""NET-010: addresses in network.nodes for the hosts in the region."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.layout import LARGEST_SECTION, counts, section_size, sections
from cluster.spec import Cloud
from cluster.subnets import MOST_ZONES, NARROWEST, WIDEST, most_api_servers, most_members

_LAB_HOSTS = 253
"""The lab's secret store identifies a host by its number in network.nodes, in a separate /24."""
_KEPT_FOR_ROUTER = 2
"""Addresses of the workers' half that are taken: the network's own and the router's."""
_MOST_IN_LAB = _LAB_HOSTS + 1 - 128 - _KEPT_FOR_ROUTER
_NODES: Where = ("network", "nodes")
_ZONES: Where = ("control_plane", "zones")


def sections_fit(subject: Subject) -> Iterator[Finding]:
    """In a lab, API servers, etcd main and etcd events each have a section of network.nodes."""
    if subject.spec.control_plane.cloud is not Cloud.LAB:
        return
    nodes = subject.spec.network.nodes
    size = section_size(nodes)
    for section in sections(subject.spec).values():
        path = show(section.where)
        if section.count > size:
            message = f"{path} is {section.count}, but network.nodes {nodes} has {size} addresses for them"
            hint = f"use {size} or fewer, or a larger network.nodes (a /16 has {LARGEST_SECTION})"
            yield Finding(section.where, message, hint, also=(_NODES,))
        elif section.first + section.count > nodes.num_addresses - 1:
            message = (
                f"network.nodes {nodes} has no room for {path} {section.count}: "
                f"they start at its address {section.first}"
            )
            yield Finding(_NODES, message, "use a /24 or larger", also=(section.where,))
        elif section.first + section.count > _LAB_HOSTS:
            message = f"in network.nodes {nodes}, {path} start at address {section.first}; a lab can use addresses up to {_LAB_HOSTS}"
            yield Finding(_NODES, message, "use a /24", also=(section.where,))


def subnets_fit(subject: Subject) -> Iterator[Finding]:
    """In a cloud, network.nodes is cut into subnets by role, and on AWS also by zone."""
    spec = subject.spec
    nodes, zones, cloud = spec.network.nodes, spec.control_plane.zones, spec.control_plane.cloud
    if cloud is Cloud.LAB:
        return
    if not WIDEST <= nodes.prefixlen <= NARROWEST:
        message = f"network.nodes {nodes} can't be cut into the subnets of a cloud"
        yield Finding(_NODES, message, f"use a /{WIDEST} to a /{NARROWEST}")
    if cloud is Cloud.AWS and len(zones) > MOST_ZONES:
        message = f"control_plane.zones names {len(zones)} zones; network.nodes is cut for {MOST_ZONES}"
        yield Finding(_ZONES, message, f"name {MOST_ZONES} or fewer")
    for kind, (where, count) in counts(spec).items():
        room = most_api_servers(spec) if kind == "api" else most_members(spec, kind)
        if count > room:
            message = f"{show(where)} is {count}, but the subnets of network.nodes have addresses for {room}"
            more = ", or more control_plane.zones" if cloud is Cloud.AWS else ""
            yield Finding(where, message, f"use {room} or fewer{more}", also=(_ZONES,) if more else ())


def workers_fit(subject: Subject) -> Iterator[Finding]:
    """In a lab, workers in the region have the upper half of network.nodes; sections must end before it."""
    spec = subject.spec
    least = sum(pool.min for pool in spec.pools.values() if pool.site is None)
    if spec.control_plane.cloud is not Cloud.LAB or not spec.cloud_workers:
        return
    nodes = spec.network.nodes
    first = nodes.num_addresses // 2
    ends = max(section.first + section.count for section in sections(spec).values())
    room = min(nodes.num_addresses - 1, _LAB_HOSTS + 1) - first - _KEPT_FOR_ROUTER
    if ends > first or least > room:
        message = (
            f"network.nodes {nodes} has no room for the workers in the region (at least {least}): "
            "a lab reserves its upper half for them"
        )
        also: tuple[Where, ...] = tuple(("pools", name) for name, pool in spec.pools.items() if pool.site is None)
        yield Finding(_NODES, message, f"use a /24, and {_MOST_IN_LAB} workers or fewer", also=also)


RULES: tuple[tuple[str, Rule], ...] = (
    ("NET-010", sections_fit),
    ("NET-010", subnets_fit),
    ("NET-010", workers_fit),
)
