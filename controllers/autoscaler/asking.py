"""What people ask for by annotations of pods, read: what it means for the planner, and what is told of a value that is none.

A value that can't be read never makes a pod dearer or less safe than it might have meant: an unreadable preference is no
preference, an unreadable word on spot machines keeps the pod off them, and for a pod with an unreadable ceiling or gang
nothing is bought.
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
"""Of an annotation's value, and of complaints of one kind: a pod may have 256 KiB of them, and is looked at in every pass."""
_MOST_DOLLARS = Decimal(100_000)
PLACE_OF = {CLOUD: CLOUD, REGION: REGION_LABEL, GPU_KIND: GPU_KIND}
"""Annotation -> the label of pools that it is compared with; those of ours are known to the planner alone."""


@dataclass
class Asked:
    """complaints: what is wrong, each a sentence. refused: why nothing is bought for the pod, "" where it may be."""

    preferences: tuple[Preference, ...] = ()
    spot: Spot = Spot.ANY
    ceiling: int | None = None
    complaints: list[str] = field(default_factory=list)
    refused: str = ""


@dataclass(frozen=True)
class Choices:
    """What there is to ask for. labels: of pools, key -> values. data: see `cluster.autoscaler`. worth: dollars an hour."""

    labels: Mapping[str, frozenset[str]]
    data: Mapping[str, Mapping[str, str]]
    worth: float


def asked(notes: Mapping[str, str], choices: Choices) -> Asked:
    """What the annotations of a pod ask for. Never raises."""
    found = Asked()
    ours = {key: value if len(value) <= _LONGEST else "" for key, value in notes.items() if key.startswith(PREFIX)}
    if not ours:
        return found
    strange = sorted(ours.keys() - set(ALL))
    for key in strange[:_MOST]:
        found.complaints.append(f"{key} is no annotation of the autoscaler{did_you_mean(key, ALL)}")
    if len(strange) > _MOST:
        found.complaints.append(f"and {len(strange) - _MOST} more that are no annotations of the autoscaler")
    for key in sorted(each for each in ALL if len(notes.get(each, "")) > _LONGEST):
        found.complaints.append(f"{key} is longer than {_LONGEST} characters, and is taken as empty")
    worth = _dollars(ours, WORTH, found)
    worth = round(choices.worth * MILLION) if worth is None else worth
    found.preferences = (*_places(ours, choices, worth, found), *_near(ours, choices, worth, found))
    if SPOT in ours:
        try:
            found.spot = Spot(ours[SPOT])
        except ValueError:
            found.spot = Spot.NEVER
            found.complaints.append(f"{SPOT} is {ours[SPOT]!r}; write any, never or only. Until then: never")
    if CEILING in ours:
        found.ceiling = _dollars(ours, CEILING, found)
        if found.ceiling is None:
            found.refused = f"its {CEILING} is {ours[CEILING]!r}, which is no price"
    return found


def _dollars(notes: Mapping[str, str], key: str, found: Asked) -> int | None:
    """Millionths of a dollar."""
    if key not in notes:
        return None
    try:
        amount = Decimal(notes[key])
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 <= amount <= _MOST_DOLLARS:
        found.complaints.append(f'{key} is {notes[key]!r}; write dollars an hour: "12.50"')
        return None
    return int(amount * MILLION)


def _places(notes: Mapping[str, str], choices: Choices, worth: int, found: Asked) -> Iterator[Preference]:
    for key, label in PLACE_OF.items():
        if key not in notes:
            continue
        known = choices.labels.get(label, frozenset())
        values = [value.strip().lower() for value in notes[key].split(",") if value.strip()]
        for value in values:
            if value not in known:
                there = ", ".join(sorted(known)) or "none"
                found.complaints.append(f"{key}: no pool has {value!r}{did_you_mean(value, known)}; there is {there}")
        if good := tuple(sorted(known.intersection(values))):
            yield Preference(label, good, worth)
        elif not values:
            found.complaints.append(f"{key} is empty")


def _near(notes: Mapping[str, str], choices: Choices, worth: int, found: Asked) -> Iterator[Preference]:
    for name in (each.strip() for each in notes.get(NEAR, "").split(",")):
        if name in choices.data:
            yield from (Preference(label, (value,), worth) for label, value in sorted(choices.data[name].items()))
        elif NEAR in notes:
            near = did_you_mean(name, choices.data)
            found.complaints.append(f"{NEAR}: autoscaler.data of the spec has no {name!r}{near}")
