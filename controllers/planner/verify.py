"""Checks a certificate in integers, without trusting the solver that found it."""

from __future__ import annotations

from controllers.planner.certificate import Certificate
from controllers.planner.knapsack import UNIT, Search
from controllers.planner.lp import INFINITY, Program

NODES = 4_000_000


def unproved(certificate: Certificate, nodes: int = NODES) -> list[int]:
    """Return the bins for which it isn't proved that no load is worth more than the certificate says; usually none.

    The solver only provides hints for the search. A wrong hint costs time, but never makes the result wrong.
    """
    return [number for number in range(len(certificate.most)) if not _is_most(certificate, number, nodes)]


def _is_most(certificate: Certificate, number: int, nodes: int) -> bool:
    problem, most = certificate.problem, certificate.most[number]
    room = problem.bins[number].room
    gains = certificate.gains(number)
    kinds = [kind for kind, gain in enumerate(gains) if gain and problem.counts[kind]]
    program = Program([(-INFINITY, float(amount)) for amount in room], maximise=True)
    for kind in kinds:
        entries = [(at, float(amount)) for at, amount in enumerate(problem.sizes[kind]) if amount]
        program.add(gains[kind] / 1e6, entries, float(problem.counts[kind]))
    hints = [max(0, round(dual * 1e6 * UNIT)) for dual in program.solve().duals] if kinds else [0] * len(room)
    items = [(kind, gains[kind], problem.sizes[kind], problem.counts[kind]) for kind in kinds]
    return Search(room, items, hints, nodes=nodes, start=((), most)).run().upper <= most
