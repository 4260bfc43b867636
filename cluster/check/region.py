"""CFG-006: one region and its zones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.spec import Cloud

# AWS zones also have an id that is the same in every account: use1-az1.
_AWS_ZONE_ID = r"[a-z]+\d-az\d+"


def named_as_in(cloud: Cloud, region: str, zone: int | str) -> bool:
    """Return whether a zone's name fits its region. The zone need not exist."""
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
        problem = f"{listed} isn't valid" if "zones" in plane.model_fields_set else "is missing"
        message = f"control_plane.zones {problem}: {plane.cloud} names its zones by region and letter"
        yield Finding(where, message, f"write {meant}", also=also)
    for index, zone in enumerate(plane.zones):
        if isinstance(zone, int) or named_as_in(plane.cloud, plane.region, zone):
            continue
        yield Finding(
            (*where, index),
            f"control_plane.zones {zone} isn't in control_plane.region {plane.region}; "
            "a cluster must stay in one region, or it fails as a whole when the link between regions does",
            f"write a zone of {plane.region}, or make a separate cluster in the other region",
            also=also,
        )


def zones_differ(subject: Subject) -> Iterator[Finding]:
    """No zone is listed twice: it would get twice the hosts."""
    zones = [str(zone) for zone in subject.spec.control_plane.zones]
    for index, zone in enumerate(zones):
        if zone in zones[:index]:
            message = f"control_plane.zones names {zone} twice; it would get twice as many hosts as the others"
            yield Finding(("control_plane", "zones", index), message, f"remove one {zone}")


RULES: tuple[tuple[str, Rule], ...] = (
    ("CFG-006", one_region),
    ("CFG-006", zones_differ),
)
