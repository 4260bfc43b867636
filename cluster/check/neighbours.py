"""ARP-001 to ARP-003: neighbour table thresholds set in the spec. `network.neighbours` computes those that aren't."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.neighbours import CAP, GATEWAYS, largest_network, needed


def large_enough(subject: Subject) -> Iterator[Finding]:
    """Beyond gc_thresh3 the kernel refuses new neighbours, and connections fail."""
    name, hosts = largest_network(subject.cluster)
    pods = subject.spec.network.max_pods
    need, third = needed(subject.cluster), subject.spec.neighbours.gc_thresh3
    sum_text = (
        f"{hosts} hosts on {name} need about {need:,} neighbours ({hosts:,} peers + {pods} pods + {GATEWAYS} routers)"
    )
    also: tuple[Where, ...] = (("network", "max_pods"), *(("pools", pool, "hosts") for pool in subject.cluster.hosts))
    if third is None and need > CAP:
        where: Where = ("network", "nodes") if name == "network.nodes" else ("sites",)
        message = f"{sum_text}, more than the {CAP:,} known to work"
        yield Finding(where, message, "split that network, or set neighbours.gc_thresh3", also=also)
    elif third is not None and third < need:
        message = f"gc_thresh3 {third} is too small: {sum_text}; new connections would fail"
        yield Finding(
            ("neighbours", "gc_thresh3"), message, "use 80000 / 90000 / 100000, or leave all three out", also=also
        )


def in_order(subject: Subject) -> Iterator[Finding]:
    """Thresholds must rise: gc_thresh1 < gc_thresh2 < gc_thresh3, each given together with the next."""
    thresholds = subject.spec.neighbours
    values = {
        "gc_thresh1": thresholds.gc_thresh1,
        "gc_thresh2": thresholds.gc_thresh2,
        "gc_thresh3": thresholds.gc_thresh3,
    }
    for name, above in pairwise(values):
        value, limit = values[name], values[above]
        where: Where = ("neighbours", name)
        also: tuple[Where, ...] = (("neighbours", above),)
        if not value:
            continue
        if limit is None:
            message = f"{name} {value} is given without {above}; the computed one may be below it"
            yield Finding(where, message, f"give {above} too, or leave all three out", also=also)
        elif value >= limit:
            message = f"{name} {value} must be below {above} {limit}; the kernel would drop neighbours that are in use"
            yield Finding(where, message, "use 80000 / 90000 / 100000, or leave all three out", also=also)


def tested_size(subject: Subject) -> Iterator[Finding]:
    """Warn of a table larger than any known one: its cost in memory and lookup time hasn't been measured."""
    third = subject.spec.neighbours.gc_thresh3
    if third is not None and third > CAP:
        message = (
            f"gc_thresh3 {third:,} is above {CAP:,}, the largest value known to work (OpenAI's nodes, Azure's limit)"
        )
        hint = "use 80000 / 90000 / 100000; if a network needs more, measure"
        yield Finding(("neighbours", "gc_thresh3"), message, hint, severity="warning")


RULES: tuple[tuple[str, Rule], ...] = (
    ("ARP-001", large_enough),
    ("ARP-002", in_order),
    ("ARP-003", tested_size),
)
