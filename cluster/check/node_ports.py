"""NET-013: who may reach the ports of Services on workers, apart from the cluster itself."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import collapse_addresses

from cluster.check.finding import Finding, Rule, Subject
from cluster.check.ranges import ranges
from cluster.document import Where

_OUTSIDE: Where = ("network", "node_ports", "outside")
_WIDEST = 8
"""Prefix of the largest range with a single owner: RFC 1918, and IANA's own blocks."""


def not_everybody(subject: Subject) -> Iterator[Finding]:
    """Node ports aren't open to everybody: what teams run behind them often has no authentication."""
    node_ports = subject.spec.network.node_ports
    if node_ports.allow_any_client:
        return
    for index, network in enumerate(node_ports.outside):
        if network.prefixlen < _WIDEST:
            yield _too_wide(
                index, str(network), "everybody" if not network.prefixlen else "more than any single owner has"
            )
    joined = next(
        (
            network_block
            for network_block in collapse_addresses(node_ports.outside)
            if network_block.prefixlen < _WIDEST
        ),
        None,
    )
    if joined and all(network_block.prefixlen >= _WIDEST for network_block in node_ports.outside):
        yield _too_wide(0, str(joined), "more than any single owner has")


def _too_wide(index: int, network: str, who: str) -> Finding:
    message = f"network.node_ports.outside opens the ports of all Services on workers to {network}, {who}"
    hint = "name the ranges of your load balancers; to open the ports anyway, add network.node_ports.allow_any_client: true"
    return Finding((*_OUTSIDE, index), message, hint)


def outside_is_outside(subject: Subject) -> Iterator[Finding]:
    """`outside` has none of the cluster's own ranges: network.node_ports.cluster is for those."""
    for index, network in enumerate(subject.spec.network.node_ports.outside):
        if network.prefixlen < _WIDEST:
            continue  # reported by not_everybody, or accepted
        own = next((each for each in ranges(subject) if each.network.overlaps(network)), None)
        if own:
            message = f"network.node_ports.outside has {network}, which overlaps the cluster's own {own}"
            hint = "remove it; network.node_ports.cluster decides whether workers and pods have access"
            yield Finding((*_OUTSIDE, index), message, hint, also=(own.where,))


RULES: tuple[tuple[str, Rule], ...] = (
    ("NET-013", not_everybody),
    ("NET-013", outside_is_outside),
)
