"""PUB-001: the public endpoint of the API, and who may reach it."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.check.ranges import DOCUMENTATION
from cluster.document import Where
from cluster.spec import PublicEndpoint

_WHERE: Where = ("control_plane", "public")
_PRIVATE = ("internal", "local", "localhost", "home.arpa", "test", "invalid")
"""Suffixes that no resolver on the internet knows: ICANN reserved "internal" in 2024; RFC 6761, 6762, 8375."""


def name_on_the_internet(subject: Subject) -> Iterator[Finding]:
    """Resolvers on the internet can find the name."""
    if not (public := _asked(subject)):
        return
    labels = public.name.split(".")
    ending = next((each for each in _PRIVATE if public.name == each or public.name.endswith(f".{each}")), None)
    if ending or len(labels) < 2:
        why = f"ends in .{ending}, so" if ending else "has no dot, so"
        message = f"control_plane.public.name {public.name} {why} no resolver on the internet can find it"
        yield Finding((*_WHERE, "name"), message, "write a name in your own domain, for example api.example.org")


def ranges_of_the_internet(subject: Subject) -> Iterator[Finding]:
    """No range is private: packets from the internet never have a private source address."""
    if not (public := _asked(subject)):
        return
    for index, network in enumerate(public.operators):
        where = (*_WHERE, "operators", index)
        if network.is_private and not any(network.subnet_of(block) for block in DOCUMENTATION):
            message = f"control_plane.public.operators has {network}, a private range: no packet from it arrives over the internet"
            yield Finding(
                where, message, "move it to control_plane.operators, which is for networks with a line to the region"
            )


def names_apart(subject: Subject) -> Iterator[Finding]:
    """Each cluster has its own public name."""
    if not (public := _asked(subject)):
        return
    for other in subject.others:
        theirs = other.spec.control_plane.public
        if theirs and theirs.name == public.name:
            message = f"control_plane.public.name {public.name} is also the name of {other.named((*_WHERE, 'name'))}"
            yield Finding((*_WHERE, "name"), message, "give each cluster a different name")


def _asked(subject: Subject) -> PublicEndpoint | None:
    return None if subject.cluster.is_lab else subject.spec.control_plane.public


RULES: tuple[tuple[str, Rule], ...] = (
    ("PUB-001", name_on_the_internet),
    ("PUB-001", ranges_of_the_internet),
    ("PUB-001", names_apart),
)
