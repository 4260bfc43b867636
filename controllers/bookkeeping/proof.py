"""The proof that a day of the ledger closes: of a controller that runs, by its own objects and the nodes of the API."""

from __future__ import annotations

from datetime import UTC, date, datetime
from http import HTTPMethod
from typing import NamedTuple

from clients.rest import Listing, Rest
from clients.waiting import wait_until
from cluster.spec import Cluster
from controllers.bookkeeping.bucket import ledger_of
from controllers.bookkeeping.store import LedgerStore
from controllers.confinement import user
from controllers.kinds import METERING
from controllers.manifests import NAMESPACE
from controllers.metering.day import TOLERANCE, Day
from controllers.metering.ledger import CLOSING, HOUR_S, MICRO
from operations.verify.proof import Context, Proof, demand

NODES = "/api/v1/nodes"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_METRICS = "metrics.k8s.io"
_ROUNDS_S = 300.0
"""For a segment of the journal, which is written every minute."""
_SOON_S = 300
"""A running day that is counted at least so often is waited for."""


def the_day_closes(context: Context) -> str:
    """Wait for the journal to go on, then count its newest day again, and compare it with what is kept and with the nodes."""
    store = ledger_of(context.access)
    demand(store is not None, "the cluster has no bucket yet; run `up`")
    assert store is not None
    nodes = Rest(context.api).snapshot(NODES)
    goes_on = _goes_on(context, store, nodes)
    day = _day(context, store, goes_on.since)
    demand(day.complete, f"{day.name} is incomplete: {'; '.join(day.missing)}")
    hours = _closes(day, nodes)
    demand(store.again(day).to_bytes() == day.to_bytes(), f"{day.name} has other bytes when it is counted again")
    _needs_no_metrics(context)
    return (
        f"the journal went on to {_time(goes_on.end)}; {_span(day)}: {hours}; counted again here from "
        f"{day.document['made']['segments']} segments: the same bytes; its account may not read metrics"
    )


class _Progress(NamedTuple):
    """since, end: of the journal, when the proof began and now."""

    since: int
    end: int


def _goes_on(context: Context, store: LedgerStore, nodes: Listing) -> _Progress:
    """Wait until a controller writes a further segment."""
    now = int(nodes.at.timestamp())
    since, end = store.end(now), 0

    def missing() -> str:
        nonlocal end
        end = store.end(now)
        last = f"since {_time(since)}" if since else "at all"
        return "" if end > since else f"the journal has nothing {last}; does the controller metering run?"

    wait_until(missing, _ROUNDS_S, context.report, every_s=2)
    return _Progress(since, end)


def _day(context: Context, store: LedgerStore, since: int) -> Day:
    """Return the newest day. One that has not ended is waited for if it is counted often."""
    counted_s = _running_every_s(context.cluster)
    days: list[Day] = []

    def missing() -> str:
        newest = _newest(store)
        if newest is None or (counted_s <= _SOON_S and newest.until <= since):
            return "no day has been counted since the proof began"
        days.append(newest)
        return ""

    wait_until(missing, counted_s + _ROUNDS_S if counted_s <= _SOON_S else 0, context.report, every_s=2)
    return days[0]


def _newest(store: LedgerStore) -> Day | None:
    """Return the day that was counted last, whether it has ended or not."""
    running = store.newest_running()
    if running:
        return running
    names = sorted({key.rpartition("/")[2].partition(".")[0] for key in store.day_keys()})
    day = date.fromisoformat(names[-1]) if names else None
    return store.days([day]).get(day) if day else None


def _closes(day: Day, nodes: Listing) -> str:
    """Return the hours of hosts that the day has. Raises FailedProofError if its parts are not its capacity times its time."""
    rows = [amounts for _, amounts in day.rows()]
    for name in CLOSING:
        whole, parts = day.document["capacity"][name], sum(amounts[name] for amounts in rows)
        text = f"{day.name}: the parts of {name} are {parts:,} of {whole:,}"
        demand(abs(whole - parts) * TOLERANCE <= whole, f"{text}; {1 / TOLERANCE:.1%} may be missing")
    start, end = day.span
    lived_s = sum(max(0, end - max(start, _created(node))) for node in nodes.items)
    whole_us, parts_us = day.document["capacity"]["host_us"], sum(amounts["host_us"] for amounts in rows)
    hours, least = (amount / MICRO / HOUR_S for amount in (whole_us, lived_s * MICRO))
    # Hosts that are gone were there for a time, too, and machines without a node.
    text = f"the nodes of the API alone lived {least:.3f} hours in it, and the ledger has {hours:.3f} host hours"
    demand(whole_us * TOLERANCE >= lived_s * MICRO * (TOLERANCE - 1), f"{day.name}: {text}")
    return f"{parts_us / MICRO / HOUR_S:.3f} of {hours:.3f} host hours, and {least:.3f} of nodes that the API lists"


def _needs_no_metrics(context: Context) -> None:
    """Ask whether the controller may read metrics: what it can't read, it can't need."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
    for resource in ("nodes", "pods"):
        asked = {"group": _METRICS, "resource": resource, "verb": "list"}
        spec = {"user": user(METERING, NAMESPACE), "groups": groups, "resourceAttributes": asked}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = Rest(context.api).write(HTTPMethod.POST, _REVIEWS, body)
        demand(answer["status"].get("allowed") is False, f"the controller may list {resource} of {_METRICS}")


def _created(node: dict[str, object]) -> int:
    metadata = node["metadata"]
    assert isinstance(metadata, dict)
    return int(datetime.fromisoformat(str(metadata["creationTimestamp"])).timestamp())


def _running_every_s(cluster: Cluster) -> int:
    return cluster.spec.metering.running_every // 1000 if cluster.spec.metering else HOUR_S


def _span(day: Day) -> str:
    if not day.is_running:
        return day.name
    start, end = day.span
    return f"{day.name} so far, {_time(start)} to {_time(end)} UTC"


def _time(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}"


def lacks_a_ledger(context: Context) -> str:
    """Return why there is no day to look at, "" if there is one, or will be soon."""
    if context.cluster.spec.metering is None:
        return "the spec has no metering"
    store = ledger_of(context.access)
    if _running_every_s(context.cluster) > _SOON_S and store and _newest(store) is None:
        return "no day has been counted yet; the first one is metering.running_every after the ledger began"
    return ""


PROOFS = (
    Proof(
        "closes",
        "the ledger's day closes: its parts are capacity times time within 0.1 %, and it is the same bytes again",
        the_day_closes,
        lacks=lacks_a_ledger,
        effect="reads the cluster's bucket",
    ),
)
