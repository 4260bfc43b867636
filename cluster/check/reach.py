"""PUB-002, PUB-003: the API and the members of etcd aren't closed to everybody, nor open to everybody."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, collapse_addresses

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show

_PLANE: Where = ("control_plane",)
_WIDEST = 8
"""Prefix of the largest range with a single owner: RFC 1918, and IANA's own blocks."""


def api_access(subject: Subject) -> Iterator[Finding]:
    """Somebody can reach the API: a region's firewalls admit only ranges named in the spec and routers of joined sites."""
    spec, plane = subject.spec, subject.spec.control_plane
    if subject.cluster.has_private_access or plane.public:
        return
    message = f"nobody could reach {spec.name}: control_plane has neither operators nor public, and there are no sites"
    hint = "add control_plane.operators: the ranges of your VPN or peering, for example [10.250.0.0/24]; or public"
    yield Finding(_PLANE, message, hint, also=((*_PLANE, "operators"), (*_PLANE, "public"), ("sites",)))


def members_access(subject: Subject) -> Iterator[Finding]:
    """Operators reach more than the API: members of etcd answer only over a private route."""
    plane = subject.spec.control_plane
    if subject.cluster.has_private_access or not plane.public:
        return
    message = (
        "control_plane.public alone reaches the API, and no member of etcd: `status` knows of etcds only what API servers say, "
        "and verbs on etcds and `keys rotate` refuse"
    )
    hint = "add control_plane.operators: the ranges of your VPN or peering, for example [10.250.0.0/24]"
    yield Finding((*_PLANE, "public"), message, hint, severity="warning")


def not_everybody(subject: Subject) -> Iterator[Finding]:
    """Not everybody can connect: otherwise certificates alone would protect the API and the members' etcd port."""
    plane = subject.spec.control_plane
    settings = [(_PLANE, plane.operators, plane.allow_any_operator)]
    settings += [((*_PLANE, "public"), plane.public.operators, plane.public.allow_any_operator)] if plane.public else []
    for place, operators, allowed in settings:
        if allowed:
            continue
        listed = (*place, "operators")
        wide = [
            (index, network_block) for index, network_block in enumerate(operators) if network_block.prefixlen < _WIDEST
        ]
        if not wide and any(network_block.prefixlen < _WIDEST for network_block in collapse_addresses(operators)):
            wide = [
                (
                    0,
                    next(
                        network_block
                        for network_block in collapse_addresses(operators)
                        if network_block.prefixlen < _WIDEST
                    ),
                )
            ]
        for index, network in wide:
            yield Finding((*listed, index), f"{show(listed)} admits {_named(network)}", _hint(place))


def _named(network: IPv4Network) -> str:
    return f"{network}, everybody" if network.prefixlen == 0 else f"{network}, more than any single owner has"


def _hint(place: Where) -> str:
    return (
        "name the ranges that operators come from, for example 203.0.113.0/24; to let everybody connect, with "
        f"certificates as the only protection, add {show((*place, 'allow_any_operator'))}: true"
    )


RULES: tuple[tuple[str, Rule], ...] = (
    ("PUB-002", api_access),
    ("PUB-002", members_access),
    ("PUB-003", not_everybody),
)
