"""Reads what people request by annotations on pods: its meaning for the planner, and complaints about invalid values.

An invalid value never makes a pod more expensive or less safe than its author may have intended: an invalid preference is ignored,
an invalid spot setting keeps the pod off spot machines, and no machine is ordered for a pod with an invalid ceiling or gang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from cluster.fields import did_you_mean
from controllers.autoscaler.keys import ALL, CEILING, CLOUD, GPU_KIND, NEAR, PREFIX, REGION, REGION_LABEL, SPOT, WORTH
from controllers.planner import Preference, Spot

MILLION = 1_000_000
_LONGEST, _MOST = 500, 5
"""Length of an annotation's value, and number of complaints of one kind. A pod may have 256 KiB of annotations, read in every pass."""
_MOST_DOLLARS = Decimal(100_000)
PLACE_OF = {CLOUD: CLOUD, REGION: REGION_LABEL, GPU_KIND: GPU_KIND}
"""Annotation -> the label of pools that it is compared with. Labels with our prefix exist only in the planner."""


@dataclass
class PodRequest:
    """What a pod requests. complaints: problems, one sentence each. refused: why no machine is ordered for it, "" if one may be."""

    preferences: tuple[Preference, ...] = ()
    spot: Spot = Spot.ANY
    ceiling: int | None = None
    complaints: list[str] = field(default_factory=list)
    refused: str = ""


@dataclass(frozen=True)
class Choices:
    """What pods can request. labels: of pools, key -> values. data: see `cluster.autoscaler`. worth: dollars an hour."""

    labels: Mapping[str, frozenset[str]]
    data: Mapping[str, Mapping[str, str]]
    worth: float


def pod_request(notes: Mapping[str, str], choices: Choices) -> PodRequest:
    """Read what the annotations of a pod request. Never raises."""
    request = PodRequest()
    ours = {key: value if len(value) <= _LONGEST else "" for key, value in notes.items() if key.startswith(PREFIX)}
    if not ours:
        return request
    unknown = sorted(ours.keys() - set(ALL))
    for key in unknown[:_MOST]:
        request.complaints.append(f"{key} is not an annotation of the autoscaler{did_you_mean(key, ALL)}")
    if len(unknown) > _MOST:
        request.complaints.append(f"and {len(unknown) - _MOST} more that are not annotations of the autoscaler")
    for key in sorted(each for each in ALL if len(notes.get(each, "")) > _LONGEST):
        request.complaints.append(f"{key} is longer than {_LONGEST} characters, and is treated as empty")
    worth = _dollars(ours, WORTH, request)
    worth = round(choices.worth * MILLION) if worth is None else worth
    request.preferences = (*_places(ours, choices, worth, request), *_near(ours, choices, worth, request))
    if SPOT in ours:
        try:
            request.spot = Spot(ours[SPOT])
        except ValueError:
            request.spot = Spot.NEVER
            request.complaints.append(
                f"{SPOT} is {ours[SPOT]!r}; write any, never or only. Until then, never is assumed"
            )
    if CEILING in ours:
        request.ceiling = _dollars(ours, CEILING, request)
        if request.ceiling is None:
            request.refused = f"its {CEILING} is {ours[CEILING]!r}, which is not a price"
    return request


def _dollars(notes: Mapping[str, str], key: str, request: PodRequest) -> int | None:
    """Read an amount in millionths of a dollar, None if missing or invalid."""
    if key not in notes:
        return None
    try:
        amount = Decimal(notes[key])
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 <= amount <= _MOST_DOLLARS:
        request.complaints.append(f'{key} is {notes[key]!r}; write dollars an hour: "12.50"')
        return None
    return int(amount * MILLION)


def _places(notes: Mapping[str, str], choices: Choices, worth: int, request: PodRequest) -> Iterator[Preference]:
    for key, label in PLACE_OF.items():
        if key not in notes:
            continue
        offered = choices.labels.get(label, frozenset())
        values = [value.strip().lower() for value in notes[key].split(",") if value.strip()]
        for value in values:
            if value not in offered:
                available = ", ".join(sorted(offered)) or "none"
                request.complaints.append(
                    f"{key}: no pool has {value!r}{did_you_mean(value, offered)}; available: {available}"
                )
        if good := tuple(sorted(offered.intersection(values))):
            yield Preference(label, good, worth)
        elif not values:
            request.complaints.append(f"{key} is empty")


def _near(notes: Mapping[str, str], choices: Choices, worth: int, request: PodRequest) -> Iterator[Preference]:
    for name in (each.strip() for each in notes.get(NEAR, "").split(",")):
        if name in choices.data:
            yield from (Preference(label, (value,), worth) for label, value in sorted(choices.data[name].items()))
        elif NEAR in notes:
            near = did_you_mean(name, choices.data)
            request.complaints.append(f"{NEAR}: autoscaler.data of the spec has no {name!r}{near}")
