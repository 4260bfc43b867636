"""CFG-017, INV-010: names that two clusters, or two racks of a lab, can't share."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.finding import Checked, Finding, Rule, Subject
from cluster.document import Where
from cluster.spec import Cloud


def own_name(subject: Subject) -> Iterator[Finding]:
    """Clusters have stacks, state and host names by their own name."""
    for other in subject.others:
        if other.spec.name == subject.spec.name:
            file = other.positions.document.file
            message = f"{file} names its cluster {subject.spec.name} too; both would own one Pulumi stack"
            yield Finding(("name",), message, "give each cluster a name of its own")


def in_one_project(subject: Subject) -> Iterator[Finding]:
    """Names in a project of Google Cloud are a letter first (RFC 1035), then joined by hyphens, as names themselves
    may have them: stacks/gcp/tags.py. A spec doesn't say its project, so clusters are taken to share one."""
    spec = subject.spec
    for other in subject.others:
        if not spec.control_plane.cloud == other.spec.control_plane.cloud == Cloud.GCP or other.spec.name == spec.name:
            continue
        own, theirs = begins_with(spec.name), begins_with(other.spec.name)
        if own == theirs:
            message = f"in a project of Google Cloud all that {spec.name} has would be named {own}-…"
            message += f", as all that {other.named(('name',))} has"
            yield Finding(("name",), message, "give one of the two another name")
            continue
        taken = {f"{theirs}-{name}-{zone}": name for name, zone in _groups(other)}
        # One zone of a pool is enough to tell.
        clashes = {name: group for name, zone in _groups(subject) if (group := f"{own}-{name}-{zone}") in taken}
        for pool, group in clashes.items():
            place = other.named(("pools", taken[group]))
            message = f"a group of pools.{pool} would be named {group}, as one of pools.{taken[group]} of {place}"
            yield Finding(("pools", pool), message, "give the pool another name")


def begins_with(name: str) -> str:
    """What the names of all that a cluster has in Google Cloud begin with."""
    return name if name[0].isalpha() else f"m{name}"


def _groups(checked: Checked) -> Iterator[tuple[str, str]]:
    """(pool, zone) of each group of machines in a region."""
    for name, pool in checked.spec.pools.items():
        if pool.site is None:
            yield from ((name, str(zone)) for zone in pool.zones or checked.spec.control_plane.zones)


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
    ("CFG-017", in_one_project),
    ("INV-010", racks_of_a_lab),
)
