"""NET-010: addresses in network.nodes for the hosts of the cloud side."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import show
from cluster.layout import LARGEST_SECTION, section_size, sections


def enough_node_addresses(subject: Subject) -> Iterator[Finding]:
    """API servers, etcd main and etcd events each have a section of network.nodes."""
    nodes = subject.spec.network.nodes
    size = section_size(nodes)
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


RULES: tuple[tuple[str, Rule], ...] = (("NET-010", enough_node_addresses),)
