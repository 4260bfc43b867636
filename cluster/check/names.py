"""CFG-017, INV-010: names that two clusters, or two racks of a lab, can't share."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where


def own_name(subject: Subject) -> Iterator[Finding]:
    """Clusters have stacks, state and host names by their own name."""
    for other in subject.others:
        if other.spec.name == subject.spec.name:
            file = other.positions.document.file
            message = f"{file} names its cluster {subject.spec.name} too; both would own one Pulumi stack"
            yield Finding(("name",), message, "give each cluster a name of its own")


def racks_of_a_lab(subject: Subject) -> Iterator[Finding]:
    """Racks belong to their site and two sites may both have an r1, but a lab makes one network for each name."""
    if not subject.cluster.is_lab:
        return
    seen: dict[str, str] = {}
    for name, site in subject.spec.sites.items():
        for rack in site.racks:
            if rack in seen:
                message = (
                    f"sites {seen[rack]} and {name} both have a rack {rack}; the lab would make one network of them"
                )
                hint = f"write {name}-{rack}, here and in the hosts file"
                before: Where = ("sites", seen[rack], "racks", rack)
                yield Finding(("sites", name, "racks", rack), message, hint, also=(before,))
            seen.setdefault(rack, name)


RULES: tuple[tuple[str, Rule], ...] = (
    ("CFG-017", own_name),
    ("INV-010", racks_of_a_lab),
)
