"""NET-013: who is let in at the ports of Services on workers, beside the cluster itself."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import collapse_addresses

from cluster.check.finding import Finding, Rule, Subject
from cluster.check.ranges import ranges
from cluster.document import Where

_OUTSIDE: Where = ("network", "node_ports", "outside")
_WIDEST = 8
"""Prefix of the largest range that one owner has: RFC 1918, and IANA's own blocks."""


def not_everybody(subject: Subject) -> Iterator[Finding]:
    """What a team puts behind such a port often asks nobody who they are."""
    opened = subject.spec.network.node_ports
    if opened.allow_any_client:
        return
    for index, network in enumerate(opened.outside):
        if network.prefixlen < _WIDEST:
            yield _too_wide(
                index, str(network), "everybody" if not network.prefixlen else "more than any one owner has"
            )
    joined = next((each for each in collapse_addresses(opened.outside) if each.prefixlen < _WIDEST), None)
    if joined and all(each.prefixlen >= _WIDEST for each in opened.outside):
        yield _too_wide(0, str(joined), "more than any one owner has")


def _too_wide(index: int, network: str, who: str) -> Finding:
    message = f"network.node_ports.outside opens the ports of all Services on workers to {network}, {who}"
    hint = "name the ranges of your load balancers; to open them all the same, add allow_any_client: true there"
    return Finding((*_OUTSIDE, index), message, hint)


def outside_is_outside(subject: Subject) -> Iterator[Finding]:
    """Whether the cluster itself is let in, another key says."""
    for index, network in enumerate(subject.spec.network.node_ports.outside):
        if network.prefixlen < _WIDEST:
            continue  # said above, or accepted
        own = next((each for each in ranges(subject) if each.network.overlaps(network)), None)
        if own:
            message = f"network.node_ports.outside has {network}, but {own} is the cluster's own"
            hint = "leave it out: network.node_ports.cluster says whether workers and pods are let in"
            yield Finding((*_OUTSIDE, index), message, hint, also=(own.where,))


RULES: tuple[tuple[str, Rule], ...] = (
    ("NET-013", not_everybody),
    ("NET-013", outside_is_outside),
)
