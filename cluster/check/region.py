"""CFG-006: one region and its zones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.spec import Cloud

# AWS also names zones by an id that is the same in every account: use1-az1.
_AWS_ZONE_ID = r"[a-z]+\d-az\d+"


def named_as_in(cloud: Cloud, region: str, zone: int | str) -> bool:
    """Whether a zone's name could be one of a region's, whether or not there is such a zone."""
    if cloud in (Cloud.AWS, Cloud.GCP):
        return not isinstance(zone, int) and bool(zone.startswith(region) or re.fullmatch(_AWS_ZONE_ID, zone))
    return True


def one_region(subject: Subject) -> Iterator[Finding]:
    """Zones of AWS and Google Cloud carry their region's name: us-east-1a, us-east1-b."""
    plane = subject.spec.control_plane
    if plane.cloud not in (Cloud.AWS, Cloud.GCP):
        return
    where: Where = ("control_plane", "zones")
    also: tuple[Where, ...] = (("control_plane", "region"), ("control_plane", "cloud"))
    if numbers := [zone for zone in plane.zones if isinstance(zone, int)]:
        dash = "" if plane.cloud is Cloud.AWS else "-"
        meant = ", ".join(f"{plane.region}{dash}{'abcdef'[number % 6 - 1]}" for number in numbers)
        listed = ", ".join(str(number) for number in numbers)
        message = f"control_plane.zones {listed} can't be found: {plane.cloud} names its zones by region and letter"
        yield Finding(where, message, f"write {meant}", also=also)
    for index, zone in enumerate(plane.zones):
        if isinstance(zone, int) or named_as_in(plane.cloud, plane.region, zone):
            continue
        yield Finding(
            (*where, index),
            f"control_plane.zones {zone} isn't in control_plane.region {plane.region}; "
            "one cluster must stay in one region, or it fails as a whole with the link between two",
            f"write a zone of {plane.region}, or make a cluster of its own in the other region",
            also=also,
        )


def zones_differ(subject: Subject) -> Iterator[Finding]:
    """A zone named twice holds twice as many hosts as it seems."""
    zones = [str(zone) for zone in subject.spec.control_plane.zones]
    for index, zone in enumerate(zones):
        if zone in zones[:index]:
            message = f"control_plane.zones names {zone} twice; it would hold twice the hosts of the others"
            yield Finding(("control_plane", "zones", index), message, f"remove one {zone}")


RULES: tuple[tuple[str, Rule], ...] = (
    ("CFG-006", one_region),
    ("CFG-006", zones_differ),
)
