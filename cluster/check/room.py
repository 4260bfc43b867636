"""NET-010: room in network.nodes for the hosts of the cloud side.

`network.addresses` cuts the range into sections by its size alone; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.spec import EtcdHosts

_SMALLEST_SECTION, _LARGEST_SECTION = 10, 100


def enough_node_addresses(subject: Subject) -> Iterator[Finding]:
    """API servers, etcd main and etcd events each have a section of network.nodes."""
    spec = subject.spec
    nodes = spec.network.nodes
    size = min(_LARGEST_SECTION, max(_SMALLEST_SECTION, _SMALLEST_SECTION * nodes.num_addresses // 256))
    counts: list[tuple[int, Where, int]] = [
        (1, ("control_plane", "api_servers"), spec.control_plane.api_servers),
        (2, ("etcd", "main", "members"), spec.etcd.main.members),
    ]
    if spec.etcd.events.hosts is EtcdHosts.DEDICATED:
        counts.append((3, ("etcd", "events", "members"), spec.etcd.events.members))
    for number, where, count in counts:
        path = ".".join(str(part) for part in where)
        first = number * size + 1
        if count > size:
            message = f"{path} is {count}, but network.nodes {nodes} keeps {size} addresses for them"
            hint = f"use {size} or fewer, or a larger network.nodes (a /16 keeps {_LARGEST_SECTION})"
            yield Finding(where, message, hint, also=(("network", "nodes"),))
        elif first + count > nodes.num_addresses - 1:
            message = f"network.nodes {nodes} has no room for {path} {count}: they start at its address {first}"
            yield Finding(("network", "nodes"), message, "use a /24 or larger", also=(where,))


RULES: tuple[tuple[str, Rule], ...] = (("NET-010", enough_node_addresses),)
