"""Which of the offered node groups to grow. Pure.

cluster-autoscaler takes an offer as it is: all pods that it says fit there, on as many nodes as it counted. An offer costs what
its nodes cost; the same pods, on whatever is offered, would cost what the planner finds. The offer that is least above that
is taken: so GPU hosts are not filled with pods that fit elsewhere, for these are in the offer too and make it dear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from controllers.planner import Fate, Operator, Plan, Pod, Policy, Pool, Requirement, Shape, Snapshot, plan
from controllers.planner.resources import Resources

_OFFER = "menagerie/offer"
_ALIKE = Fraction(1001, 1000)
"""Offers so near to the best are as good."""


@dataclass(frozen=True)
class Offer:
    """id: of the node group. count: nodes. price: millionths of a dollar an hour for a node, None where nobody knows it.

    room: allocatable of an empty node. pods: keys. interruptions: see `controllers.planner.Pool`.
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
    """A pod. since_s: when it was made, seconds since 1970."""

    requests: Resources
    since_s: int = 0


@dataclass(frozen=True)
class Choice:
    """ids: of the best offers, all of them where nothing is known. reasons: id -> why, for a log."""

    ids: tuple[str, ...]
    reasons: Mapping[str, str]
    decided: bool


def undecided(offers: Sequence[Offer], why: str) -> Choice:
    """All of them, for the next expander to decide: cluster-autoscaler takes an empty answer for "grow nothing"."""
    ids = tuple(offer.id for offer in offers)
    return Choice(ids, dict.fromkeys(ids, why), decided=False)


def choose(offers: Sequence[Offer], pods: Mapping[str, Waiting], policy: Policy | None = None) -> Choice:
    """The offers that are least above what the planner finds for the same pods."""
    unknown = sorted(offer.id for offer in offers if offer.price is None)
    if unknown:
        return undecided(offers, f"no price is known of {', '.join(unknown)}")
    empty = sorted(offer.id for offer in offers if not offer.pods or offer.count < 1)
    if empty:
        return undecided(offers, f"no pods, or no nodes, are in the offer of {', '.join(empty)}")
    policy = policy or Policy()
    may = {key: tuple(offer.id for offer in offers if key in offer.pods) for key in pods}
    plans: dict[frozenset[str], Plan | None] = {}
    for needed in {*(offer.pods for offer in offers), frozenset(pods)}:
        plans[needed] = _cheapest(offers, {key: pods[key] for key in needed}, may, policy)
    over, reasons = {}, {}
    for offer in offers:
        own, made = _weighed(offer, policy), plans[offer.pods]
        # A packing that is no better than cluster-autoscaler's says nothing.
        known = own if made is None else min(own, made.weighed)
        over[offer.id] = Fraction(own, known) if known else Fraction(0 if own == 0 else 10**9)
        reasons[offer.id] = (
            f"{offer.count} nodes for {len(offer.pods)} pods: {own / 1e6:.2f} $/h, "
            f"{float(over[offer.id]):.3f} times what the cheapest plan for them costs"
        )
    least = min(over.values())
    best = [offer for offer in offers if over[offer.id] <= least * _ALIKE]
    return Choice(tuple(offer.id for offer in _in_plan(best, plans[frozenset(pods)])), reasons, decided=True)


def _in_plan(best: Sequence[Offer], whole: Plan | None) -> Sequence[Offer]:
    """Those that the plan for all pods has a use for, and those just like them; all where there is no such plan.

    A host for one pod that a host for all of them takes along is cheap for what it is, and too much all the same.
    """
    used = {host.pool for host in whole.hosts} if whole else set()
    kinds = {(each.count, each.price, each.room, each.pods) for each in best if each.id in used}
    return [each for each in best if (each.count, each.price, each.room, each.pods) in kinds] or best


def _pool(offer: Offer) -> Pool:
    return Pool(
        offer.id,
        offer.room,
        offer.price or 0,
        # That it can grow so far, cluster-autoscaler says; of more nobody knows.
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
    """A plan for all of the pods; None where the planner does not place all of them."""
    shapes: dict[tuple[Resources, tuple[str, ...]], Shape] = {}
    waiting = []
    for key, pod in pods.items():
        # Where a pod may go cluster-autoscaler has found out with the scheduler's own code.
        kind = (pod.requests, may[key])
        shape = shapes.setdefault(kind, Shape(pod.requests, ((Requirement(_OFFER, Operator.IN, may[key]),),)))
        waiting.append(Pod(key, shape, pod.since_s))
    pools = tuple(_pool(offer) for offer in offers)
    made = plan(Snapshot(max(pod.since_s for pod in waiting), pools, pods=tuple(waiting)), policy)
    return made if all(each.fate is Fate.NEW for each in made.verdicts.values()) else None
