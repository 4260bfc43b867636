"""NET-010: addresses in network.nodes for the hosts of the cloud side."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import show
from cluster.layout import LARGEST_SECTION, section_size, sections
from cluster.spec import Cloud

_LAB_HOSTS = 253
"""The lab's secret store knows a host by its number in network.nodes, on a /24 of its own."""


def enough_node_addresses(subject: Subject) -> Iterator[Finding]:
    """API servers, etcd main and etcd events each have a section of network.nodes."""
    nodes = subject.spec.network.nodes
    size = section_size(nodes)
    lab = subject.spec.control_plane.cloud is Cloud.LAB
    for section in sections(subject.spec).values():
        path = show(section.where)
        if section.count > size:
            message = f"{path} is {section.count}, but network.nodes {nodes} keeps {size} addresses for them"
            hint = f"use {size} or fewer, or a larger network.nodes (a /16 keeps {LARGEST_SECTION})"
            yield Finding(section.where, message, hint, also=(("network", "nodes"),))
        elif section.first + section.count > nodes.num_addresses - 1:
            message = (
                f"network.nodes {nodes} has no room for {path} {section.count}: "
                f"they start at its address {section.first}"
            )
            yield Finding(("network", "nodes"), message, "use a /24 or larger", also=(section.where,))
        elif lab and section.first + section.count > _LAB_HOSTS:
            message = f"in network.nodes {nodes}, {path} begin at address {section.first}; a lab reaches {_LAB_HOSTS}"
            yield Finding(("network", "nodes"), message, "use a /24", also=(section.where,))


RULES: tuple[tuple[str, Rule], ...] = (("NET-010", enough_node_addresses),)
