"""Turns a snapshot into a plan. Nothing here reads a clock or the cluster; the caller provides both."""

from __future__ import annotations

from collections.abc import Iterator

from controllers.planner import reasons
from controllers.planner.admission import Admission, admit
from controllers.planner.expected import settle
from controllers.planner.packing import Packer, PackingState, cost
from controllers.planner.plan import Budget, Fate, NewHost, Plan, Verdict
from controllers.planner.policy import Policy
from controllers.planner.supply import Snapshot
from controllers.planner.tables import Room, Tables
from controllers.planner.wishes import Pod


def plan(snapshot: Snapshot, policy: Policy | None = None, budget: Budget | None = None) -> Plan:
    """Plan for a snapshot. Without a budget only the heuristic is used, and equal snapshots give equal plans."""
    if snapshot.missing:
        verdict = reasons.undecided(snapshot.missing)
        return Plan((), {pod.name: verdict for pod in snapshot.pods})
    tables = Tables(snapshot, policy or Policy())
    state = PackingState.of(tables)
    settled = settle(tables, state)
    verdicts = _as_before(snapshot, settled)
    waiting = _sorted_out(tables, settled, verdicts)
    admission = admit(tables, state, waiting)
    solved = None
    if budget:
        from controllers.planner import exact  # noqa: PLC0415 - extra: planner

        solved = exact.improve(tables, state, admission, budget)
        admission = solved.admission
    for left in admission.left:
        verdict = reasons.of_left(tables, Packer(tables), admission.state, left)
        for kind, count in left.counts.items():
            verdicts |= dict.fromkeys((pod.name for pod in left.unit.pods[kind][-count:]), verdict)
    hosts = _hand_out(tables, admission.state, waiting, verdicts)
    bill = sum(tables.snapshot.pools[tables.offers[room.offer].pool].price * room.count for room in _new(admission))
    weighed = cost(tables, admission.state)
    if solved is None:
        return Plan(tuple(hosts), verdicts, bill, weighed)
    return Plan(tuple(hosts), verdicts, bill, weighed, solved.bound, solved.certificate, solved.exact, solved.cut_short)


def _new(admission: Admission) -> Iterator[Room]:
    return (room for room in admission.state.rooms if room.offer >= 0)


def _as_before(snapshot: Snapshot, settled: dict[str, str]) -> dict[str, Verdict]:
    texts = {host.name: f"on {host.name} of pool {host.pool}, as planned earlier" for host in snapshot.hosts}
    return {pod: Verdict(Fate.ROOM, texts[host], host) for pod, host in settled.items()}


def _sorted_out(tables: Tables, settled: dict[str, str], verdicts: dict[str, Verdict]) -> list[list[Pod]]:
    """Return the pods to place, by kind. Pods that can't start however much room there is get a verdict."""
    for kind, pods in enumerate(tables.pods):
        if not any(tables.may[kind]):
            verdicts |= dict.fromkeys((pod.name for pod in pods), reasons.unfit(tables, kind))
    lacking = _lacking(tables, verdicts)
    waiting: list[list[Pod]] = []
    for pods in tables.pods:
        waiting.append([])
        for pod in pods:
            if pod.gang in lacking:
                verdicts.setdefault(pod.name, lacking[pod.gang])
            elif pod.name not in verdicts and pod.name not in settled:
                waiting[-1].append(pod)
    return waiting


def _lacking(tables: Tables, verdicts: dict[str, Verdict]) -> dict[str, Verdict]:
    """Return gangs that can't start however much room there is: some of their pods don't exist yet, or can never start."""
    members: dict[str, list[Pod]] = {}
    for pods in tables.pods:
        for pod in pods:
            if pod.gang:
                members.setdefault(pod.gang, []).append(pod)
    lacking = {}
    for name, pods in members.items():
        never = next((verdicts[pod.name] for pod in pods if _never(verdicts, pod)), None)
        if never:
            lacking[name] = reasons.with_gang(name, never)
        elif len(pods) != tables.gangs[name].members:
            lacking[name] = reasons.incomplete(tables.gangs[name], len(pods))
    return lacking


def _never(verdicts: dict[str, Verdict], pod: Pod) -> bool:
    return pod.name in verdicts and verdicts[pod.name].fate is Fate.NEVER


def _hand_out(
    tables: Tables, state: PackingState, waiting: list[list[Pod]], verdicts: dict[str, Verdict]
) -> list[NewHost]:
    """Give every placed pod its host; the oldest pods get existing hosts. Return the hosts to add."""
    queues = [
        iter(sorted((pod for pod in pods if pod.name not in verdicts), key=lambda pod: (pod.since_s, pod.name)))
        for pods in waiting
    ]
    added: list[NewHost] = []
    numbers: dict[str, int] = {}
    for room in sorted((room for room in state.rooms if room.load), key=lambda room: _position(tables, room)):
        pool = tables.grounds[room.ground].pool
        for at in range(room.count):
            pods = [next(queues[kind]).name for kind, count in room.load for _ in range(count)]
            if room.offer < 0:
                verdict = Verdict(Fate.ROOM, f"on {room.hosts[at]} of pool {pool.name}", room.hosts[at])
            else:
                numbers[pool.name] = number = numbers.get(pool.name, 0) + 1
                place = tables.offers[room.offer].place.name
                host = NewHost(f"new-{pool.name}-{number}", pool.name, place, tuple(pods))
                added.append(host)
                verdict = Verdict(Fate.NEW, _new_text(pool.name, place, pool.price, pool.boot_s), host.name)
            verdicts.update(dict.fromkeys(pods, verdict))
    return added


def _new_text(pool: str, place: str, price: int, boot_s: int) -> str:
    where = f"{pool} at {place}" if place else pool
    ready = f", Ready after about {max(1, round(boot_s / 60))} min" if boot_s else ""
    return f"on a new host of pool {where}: {price / 1e6:.2f} $/h{ready}"


def _position(tables: Tables, room: Room) -> tuple[object, ...]:
    place = tables.offers[room.offer].place.name if room.offer >= 0 else ""
    return (room.offer >= 0, tables.grounds[room.ground].pool.name, place, room.hosts, room.load)
