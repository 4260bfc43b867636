"""The part of a day's object about traffic: bytes of teams by direction and class, and what is missing of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from controllers.metering.energy import split
from controllers.metering.facts import WAYS, HostFact, Subject
from controllers.metering.history import History, lives
from controllers.metering.payers import Payer, Payers
from controllers.metering.traffic import HOUR_S, Interval

TOLERANCE = 1000
LATE_S = 3600
"""Of a day that has not ended: nodes may publish so much later."""
_NAMED = 3


class TrafficKey(NamedTuple):
    """What bytes are added up by. hour: its beginning, Unix time. namespace: "" for pods that their node did not know."""

    hour: int
    team: str
    namespace: str
    user: str
    direction: str
    kind: str


COLUMNS = (*TrafficKey._fields[:-1], "class", "bytes")


def document(history: History, start: int, end: int, *, is_running: bool) -> dict[str, Any] | None:
    """Return the part, None if no node has ever published counters."""
    if not history.traffic.covered:
        return None
    missing = list(_missing(history, start, end, late_s=LATE_S if is_running else 0))
    return {
        "complete": not missing,
        "missing": missing,
        "notices": list(_notices(history, start, end)),
        "columns": list(COLUMNS),
        "rows": [[*key, amount] for key, amount in sorted(_rows(history, start, end).items())],
    }


def _rows(history: History, start: int, end: int) -> dict[TrafficKey, int]:
    """Return bytes by team. A namespace that changes its team within an hour is split by time."""
    payers = Payers(history.steps[Subject.SPACE], start, end)
    rows: dict[TrafficKey, int] = {}
    for (hour, namespace), amounts in sorted(history.traffic.amounts.items()):
        first, last = max(hour, start), min(hour + HOUR_S, end)
        if first >= last:
            continue
        own = list(payers.of(namespace, "", first, last)) if namespace else [(first, last, Payer())]
        spans = [until - since for since, until, _ in own]
        for (direction, kind), amount in zip(WAYS, amounts, strict=True):
            for (_, _, payer), part in zip(own, split(amount, spans), strict=True) if amount else ():
                key = TrafficKey(hour, payer.team, payer.namespace, payer.user, direction, kind)
                rows[key] = rows.get(key, 0) + part
    return {key: amount for key, amount in rows.items() if amount}


def _missing(history: History, start: int, end: int, *, late_s: int) -> Iterator[str]:
    """Yield what is missing, nothing if at most one part in `TOLERANCE` of the nodes' time is. late_s: at the end, it may be."""
    up_s, lacking = 0, dict[str, int]()
    for name, steps in sorted(history.steps[Subject.HOST].items()):
        for first, last, fact in lives(steps, start, end):
            if not isinstance(fact, HostFact) or fact.down:
                continue
            up_s += last - first
            covered = history.traffic.covered.get(name)
            late = max(0, last - max(first, covered[-1][1])) if covered and covered[-1][1] >= end - late_s else 0
            lack_s = last - first - history.traffic.covered_s(name, first, last) - late
            if lack_s > 0:
                lacking[name] = lacking.get(name, 0) + lack_s
    if sum(lacking.values()) * TOLERANCE <= up_s:
        return
    names = sorted(lacking, key=lambda name: (-lacking[name], name))
    hours = sum(lacking.values()) / HOUR_S
    yield f"no counters for {hours:.1f} hours of nodes: {', '.join(names[:_NAMED])}{_more(len(names))}"


def _notices(history: History, start: int, end: int) -> Iterator[str]:
    began = [each for each in history.traffic.again if each.start < end and each.end > start]
    for each in began[:_NAMED]:
        yield f"counters of {each.node} began again between {_times(each)}: what they had counted since then is lost"
    if len(began) > _NAMED:
        yield f"counters of others began again {len(began) - _NAMED} times"
    resets = sum(number for _, moment, number in history.traffic.resets if start < moment <= end)
    if resets:
        yield f"nodes' kernels lost their counters {resets} times, for at most some seconds each"


def _more(count: int) -> str:
    return f" and {count - _NAMED} others" if count > _NAMED else ""


def _times(during: Interval) -> str:
    first, last = (f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}" for moment in during[1:])
    return f"{first} and {last}"
