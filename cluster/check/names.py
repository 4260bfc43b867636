"""CFG-017, INV-010: names that must differ between clusters, or between racks of a lab."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Checked, Finding, Rule, Subject
from cluster.document import Where
from cluster.spec import Cloud


def own_name(subject: Subject) -> Iterator[Finding]:
    """A cluster's name is part of its stack, state and host names."""
    for other in subject.others:
        if other.spec.name == subject.spec.name:
            file = other.positions.document.file
            message = f"{file} also names its cluster {subject.spec.name}; both would own one Pulumi stack"
            yield Finding(("name",), message, "give each cluster a different name")


def in_one_project(subject: Subject) -> Iterator[Finding]:
    """No two clusters would give resources of one Google Cloud project the same name.

    Resource names start with a letter (RFC 1035) and join parts with hyphens, which the parts may contain themselves
    (stacks/gcp/tags.py). A spec doesn't name its project, so clusters are assumed to share one.
    """
    spec = subject.spec
    for other in subject.others:
        if not spec.control_plane.cloud == other.spec.control_plane.cloud == Cloud.GCP or other.spec.name == spec.name:
            continue
        own, theirs = resource_prefix(spec.name), resource_prefix(other.spec.name)
        if own == theirs:
            message = f"in a project of Google Cloud, all resources of {spec.name} would be named {own}-…"
            message += f", like those of {other.named(('name',))}"
            yield Finding(("name",), message, "rename one of the two")
            continue
        taken = {f"{theirs}-{name}-{zone}": name for name, zone in _groups(other)}
        # Reporting one zone of a pool is enough.
        clashes = {name: group for name, zone in _groups(subject) if (group := f"{own}-{name}-{zone}") in taken}
        for pool, group in clashes.items():
            place = other.named(("pools", taken[group]))
            message = f"a group of pools.{pool} would be named {group}, like one of pools.{taken[group]} of {place}"
            yield Finding(("pools", pool), message, "rename the pool")


def resource_prefix(name: str) -> str:
    """Return the prefix of the names of all resources of a cluster in Google Cloud."""
    return name if name[0].isalpha() else f"m{name}"


def _groups(checked: Checked) -> Iterator[tuple[str, str]]:
    """Yield (pool, zone) of each group of machines in a region."""
    for name, pool in checked.spec.pools.items():
        if pool.site is None:
            yield from ((name, str(zone)) for zone in pool.zones or checked.spec.control_plane.zones)


def racks_of_a_lab(subject: Subject) -> Iterator[Finding]:
    """Two sites may both have a rack r1, except in a lab, which makes one network per rack name."""
    if not subject.cluster.is_lab:
        return
    site_of: dict[str, str] = {}
    for name, site in subject.spec.sites.items():
        for rack in site.racks:
            if rack in site_of:
                message = (
                    f"sites {site_of[rack]} and {name} both have a rack {rack}; the lab would make one network of them"
                )
                hint = f"write {name}-{rack}, here and in the hosts file"
                before: Where = ("sites", site_of[rack], "racks", rack)
                yield Finding(("sites", name, "racks", rack), message, hint, also=(before,))
            site_of.setdefault(rack, name)


RULES: tuple[tuple[str, Rule], ...] = (
    ("CFG-017", own_name),
    ("CFG-017", in_one_project),
    ("INV-010", racks_of_a_lab),
)
