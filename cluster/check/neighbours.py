"""ARP-001 to ARP-003: neighbour table thresholds that the spec sets itself; `network.neighbours` computes the others."""

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
        message = f"{sum_text}, more than the {CAP:,} that are known to work"
        yield Finding(where, message, "split that network, or set neighbours.gc_thresh3", also=also)
    elif third is not None and third < need:
        message = f"gc_thresh3 {third} is too small: {sum_text}; new connections would fail"
        yield Finding(
            ("neighbours", "gc_thresh3"), message, "use 80000 / 90000 / 100000, or leave the three out", also=also
        )


def in_order(subject: Subject) -> Iterator[Finding]:
    """gc_thresh1 below 2 below 3; one given without the next can't be compared with it."""
    given = subject.spec.neighbours
    values = {"gc_thresh1": given.gc_thresh1, "gc_thresh2": given.gc_thresh2, "gc_thresh3": given.gc_thresh3}
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
            yield Finding(where, message, "use 80000 / 90000 / 100000, or leave the three out", also=also)


def known_to_work(subject: Subject) -> Iterator[Finding]:
    """A table larger than any that is known takes memory, and time of every lookup, that nobody has measured."""
    third = subject.spec.neighbours.gc_thresh3
    if third is not None and third > CAP:
        message = (
            f"gc_thresh3 {third:,} is above {CAP:,}, the most that is known to work (OpenAI's nodes, Azure's limit)"
        )
        hint = "use 80000 / 90000 / 100000 unless a network needs more, and then measure"
        yield Finding(("neighbours", "gc_thresh3"), message, hint, severity="warning")


RULES: tuple[tuple[str, Rule], ...] = (
    ("ARP-001", large_enough),
    ("ARP-002", in_order),
    ("ARP-003", known_to_work),
)
