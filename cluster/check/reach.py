"""PUB-002, PUB-003: whether anybody reaches the API, and whether everybody does."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, collapse_addresses

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show

_PLANE: Where = ("control_plane",)
_WIDEST = 8
"""Prefix of the largest range that one owner has: RFC 1918, and IANA's own blocks."""


def somebody(subject: Subject) -> Iterator[Finding]:
    """Firewalls of a region let in those whom the spec names, and routers of joined sites."""
    spec, plane = subject.spec, subject.spec.control_plane
    if subject.cluster.is_lab or plane.operators or plane.public or spec.sites:
        return
    message = f"nobody could reach {spec.name}: control_plane has neither operators nor public, and no site is joined"
    hint = "add control_plane.operators: the ranges of your VPN or peering, for example [10.250.0.0/24]; or public"
    yield Finding(_PLANE, message, hint, also=((*_PLANE, "operators"), (*_PLANE, "public"), ("sites",)))


def not_everybody(subject: Subject) -> Iterator[Finding]:
    """A certificate is then all that stands before the API, and the port of the members' etcd."""
    plane = subject.spec.control_plane
    asked = [(_PLANE, plane.operators, plane.allow_any_operator)]
    asked += [((*_PLANE, "public"), plane.public.operators, plane.public.allow_any_operator)] if plane.public else []
    for place, operators, allowed in asked:
        if allowed:
            continue
        listed = (*place, "operators")
        wide = [(index, each) for index, each in enumerate(operators) if each.prefixlen < _WIDEST]
        if not wide and any(each.prefixlen < _WIDEST for each in collapse_addresses(operators)):
            wide = [(0, next(each for each in collapse_addresses(operators) if each.prefixlen < _WIDEST))]
        for index, network in wide:
            yield Finding((*listed, index), f"{show(listed)} lets in {_named(network)}", _hint(place))


def _named(network: IPv4Network) -> str:
    return f"{network}, everybody" if network.prefixlen == 0 else f"{network}, more than any one owner has"


def _hint(place: Where) -> str:
    return (
        "name the ranges that operators come from: 203.0.113.0/24; to let everybody try, with certificates alone as "
        f"guard, add {show((*place, 'allow_any_operator'))}: true"
    )


RULES: tuple[tuple[str, Rule], ...] = (
    ("PUB-002", somebody),
    ("PUB-003", not_everybody),
)
