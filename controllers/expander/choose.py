"""Chooses which of the offered node groups to grow. Pure.

cluster-autoscaler takes an offer as a whole: all pods that fit there, on the number of nodes that it computed. An offer costs what its
nodes cost. For comparison, the planner finds the cheapest way to place the same pods on any of the offered groups. The offer that
exceeds this least is chosen. So GPU hosts are not filled with pods that fit elsewhere: these pods are part of the offer and make it
expensive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from controllers.planner import Fate, Operator, Plan, Pod, Policy, PoolSupply, Requirement, Shape, Snapshot, plan
from controllers.planner.resources import Resources

_OFFER = "menagerie/offer"
_ALIKE = Fraction(1001, 1000)
"""Offers within this factor of the best count as equal."""


@dataclass(frozen=True)
class Offer:
    """An offered node group. id: of the group. count: nodes. price: millionths of a dollar an hour per node, None if unknown.

    room: allocatable of an empty node. pods: keys. interruptions: see `controllers.planner.PoolSupply`.
    """

    id: str
    count: int
    price: int | None
    room: Resources
    pods: frozenset[str]
    spot: bool = False
    interruptions: float = 0.0


@dataclass(frozen=True)
class Waiting:
    """A pod. since_s: Unix time of its creation."""

    requests: Resources
    since_s: int = 0


@dataclass(frozen=True)
class Choice:
    """A choice. ids: of the best offers, or of all offers if undecided. reasons: id -> why, for the log."""

    ids: tuple[str, ...]
    reasons: Mapping[str, str]
    decided: bool


def undecided(offers: Sequence[Offer], why: str) -> Choice:
    """Return all offers, so that the next expander decides: an empty answer would tell cluster-autoscaler to grow nothing."""
    ids = tuple(offer.id for offer in offers)
    return Choice(ids, dict.fromkeys(ids, why), decided=False)


def choose(offers: Sequence[Offer], pods: Mapping[str, Waiting], policy: Policy | None = None) -> Choice:
    """Return the offers that exceed the planner's cost for the same pods least."""
    unknown = sorted(offer.id for offer in offers if offer.price is None)
    if unknown:
        return undecided(offers, f"the price of {', '.join(unknown)} is unknown")
    empty = sorted(offer.id for offer in offers if not offer.pods or offer.count < 1)
    if empty:
        return undecided(offers, f"the offer of {', '.join(empty)} has no pods or no nodes")
    policy = policy or Policy()
    may = {key: tuple(offer.id for offer in offers if key in offer.pods) for key in pods}
    plans: dict[frozenset[str], Plan | None] = {}
    for needed in {*(offer.pods for offer in offers), frozenset(pods)}:
        plans[needed] = _cheapest(offers, {key: pods[key] for key in needed}, may, policy)
    over, reasons = {}, {}
    for offer in offers:
        own, cheapest = _weighed(offer, policy), plans[offer.pods]
        # A plan that is not cheaper than cluster-autoscaler's offer is no use as a reference.
        reference = own if cheapest is None else min(own, cheapest.weighed)
        over[offer.id] = Fraction(own, reference) if reference else Fraction(0 if own == 0 else 10**9)
        reasons[offer.id] = (
            f"{offer.count} nodes for {len(offer.pods)} pods: {own / 1e6:.2f} $/h, "
            f"{float(over[offer.id]):.3f} times the cost of the cheapest plan for them"
        )
    least = min(over.values())
    best = [offer for offer in offers if over[offer.id] <= least * _ALIKE]
    return Choice(tuple(offer.id for offer in _in_plan(best, plans[frozenset(pods)])), reasons, decided=True)


def _in_plan(best: Sequence[Offer], whole: Plan | None) -> Sequence[Offer]:
    """Return the offers that the plan for all pods uses, and those equal to them; all offers if there is no such plan.

    This avoids, for example, a host for one pod that is cheap in itself but unnecessary, because a host for all pods holds that pod too.
    """
    used = {host.pool for host in whole.hosts} if whole else set()
    kinds = {(each.count, each.price, each.room, each.pods) for each in best if each.id in used}
    return [each for each in best if (each.count, each.price, each.room, each.pods) in kinds] or best


def _pool(offer: Offer) -> PoolSupply:
    return PoolSupply(
        offer.id,
        offer.room,
        offer.price or 0,
        # cluster-autoscaler says that the group can grow by this many; whether by more is unknown.
        offer.count,
        labels=((_OFFER, offer.id),),
        spot=offer.spot,
        interruptions=offer.interruptions,
    )


def _weighed(offer: Offer, policy: Policy) -> int:
    return round((offer.price or 0) * offer.count * (1 + offer.interruptions * policy.redo_h))


def _cheapest(
    offers: Sequence[Offer], pods: Mapping[str, Waiting], may: Mapping[str, tuple[str, ...]], policy: Policy
) -> Plan | None:
    """Return a plan for all pods, None if the planner can't place all of them."""
    shapes: dict[tuple[Resources, tuple[str, ...]], Shape] = {}
    waiting = []
    for key, pod in pods.items():
        # cluster-autoscaler has determined where a pod may go, with the scheduler's code.
        kind = (pod.requests, may[key])
        shape = shapes.setdefault(kind, Shape(pod.requests, ((Requirement(_OFFER, Operator.IN, may[key]),),)))
        waiting.append(Pod(key, shape, pod.since_s))
    pools = tuple(_pool(offer) for offer in offers)
    cheapest = plan(Snapshot(max(pod.since_s for pod in waiting), pools, pods=tuple(waiting)), policy)
    return cheapest if all(verdict.fate is Fate.NEW for verdict in cheapest.verdicts.values()) else None
