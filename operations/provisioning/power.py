"""What a machine draws, in watts, as its BMC says: by EnvironmentMetrics of its chassis, or by the older Power.

DMTF's schemas: Chassis has had EnvironmentMetrics since 1.15 (2020.4), with `PowerWatts.Reading`; Power, which it replaces, has
`PowerControl[].PowerConsumedWatts`. Both are of the chassis, so a chassis of several machines says nothing about one of them,
unless an entry of PowerControl names it in RelatedItem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from operations.provisioning.redfish import BmcError, BmcErrorKind, Document, Redfish

MOST_W = 1_000_000
"""No machine draws as much: such a reading is a defect of the BMC."""


def watts(redfish: Redfish, path: str, system: Document) -> int:
    """Return the watts of a machine. path: of its document `system`. Raises BmcError if its BMC does not say."""
    chassis = {link: redfish.get(link) for link in _links(system, "Chassis")}
    # A board's or a drawer's own reading is part of that of the chassis around it.
    outer = [link for link, one in chassis.items() if not chassis.keys() & set(_links(one, "ContainedBy"))]
    if not outer:
        raise _silent(redfish, "names no chassis")
    return sum(_of_chassis(redfish, path, chassis[link]) for link in outer)


def _of_chassis(redfish: Redfish, path: str, chassis: Document) -> int:
    is_shared = bool(set(_links(chassis, "ComputerSystems")) - {path})
    readings = [] if is_shared else list(_environment(redfish, chassis))
    readings = readings or list(_controls(redfish, path, chassis, is_shared=is_shared))
    if not readings:
        shared = "of its chassis, which has several machines" if is_shared else "of its chassis"
        raise _silent(redfish, f"has no reading of the power {shared}")
    return sum(readings)


def _environment(redfish: Redfish, chassis: Document) -> Iterator[int]:
    link = chassis.get("EnvironmentMetrics")
    if isinstance(link, Mapping) and "@odata.id" in link:
        sensor = redfish.get(str(link["@odata.id"])).get("PowerWatts")
        yield from _reading(sensor, "Reading")


def _controls(redfish: Redfish, path: str, chassis: Document, *, is_shared: bool) -> Iterator[int]:
    link = chassis.get("Power")
    if not isinstance(link, Mapping) or "@odata.id" not in link:
        return
    controls = [
        each for each in redfish.get(str(link["@odata.id"])).get("PowerControl") or () if isinstance(each, dict)
    ]
    own = [each for each in controls if path in _paths(each.get("RelatedItem"))]
    # Without a name of the machine, the first entry is the whole chassis; the others are parts of it.
    for control in own[:1] or ([] if is_shared else controls[:1]):
        yield from _reading(control, "PowerConsumedWatts")


def _reading(thing: Any, name: str) -> Iterator[int]:
    """Yield the reading in whole watts, nothing if it is null or no possible power."""
    value = thing.get(name) if isinstance(thing, Mapping) else None
    if (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value <= MOST_W
    ):
        yield round(value)


def _links(document: Document, name: str) -> Iterator[str]:
    links = document.get("Links")
    yield from _paths(links.get(name) if isinstance(links, Mapping) else None)


def _paths(links: Any) -> Iterator[str]:
    """Yield the paths of one link or a list of links."""
    for link in links if isinstance(links, list) else [links]:
        if isinstance(link, Mapping) and "@odata.id" in link:
            yield str(link["@odata.id"])


def _silent(redfish: Redfish, what: str) -> BmcError:
    return BmcError(
        BmcErrorKind.MISSING, f"{redfish} {what}; declare watts_idle and watts_busy of its pool for an estimate"
    )
