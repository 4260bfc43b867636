"""Random snapshots, a checker of plans, and the snapshot after a plan was carried out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from controllers.planner import (
    Fate,
    Gang,
    HostSupply,
    Operator,
    Place,
    Plan,
    Pod,
    PoolSupply,
    Preference,
    Requirement,
    Shape,
    Snapshot,
    Spot,
    Taint,
    Toleration,
)
from controllers.planner.resources import CPU, GPU, MEMORY, PODS, Resources
from controllers.planner.supply import labels

NOW_S = 1_000_000
GPU_KIND, RACK, REGION = "openai.org/gpu", "openai.org/rack", "topology.kubernetes.io/region"


def room(cpu: int = 0, memory: int = 0, gpus: int = 0, pods: int = 110) -> Resources:
    """cpu in whole CPUs, memory in GiB."""
    return Resources.of({CPU: cpu * 1000, MEMORY: memory * 1024, GPU: gpus, PODS: pods})


def ask(cpu: int = 0, memory: int = 0, gpus: int = 0) -> Resources:
    return Resources.of({CPU: cpu * 1000, MEMORY: memory * 1024, GPU: gpus})


def pool(
    name: str = "cpu", price: float = 1.0, most: int = 4, size: Resources | None = None, **more: object
) -> PoolSupply:
    """price in dollars."""
    return PoolSupply(name, size or room(8, 32), round(price * 1e6), most, **more)  # type: ignore[arg-type]


def pods(count: int, shape: Shape, name: str = "pod", since_s: int = NOW_S - 60, **more: object) -> tuple[Pod, ...]:
    return tuple(Pod(f"{name}-{at}", shape, since_s, **more) for at in range(count))  # type: ignore[arg-type]


_TAINT = Taint("openai.com/team", "vision")


def random_snapshot(seed: int) -> Snapshot:
    """Return a small random snapshot with all kinds of obstacles, in which about half of the pods find room."""
    random = Random(seed)
    pools_ = tuple(_pool(random, at) for at in range(random.randint(1, 4)))
    shapes = [_shape(random) for _ in range(random.randint(1, 4))]
    waiting: list[Pod] = []
    gangs = []
    for at in range(random.randint(1, 6)):
        count, gang = random.randint(1, 8), None
        if random.random() < 0.35:
            gang = f"job-{at}"
            count = random.randint(1, 4)
            gangs.append(Gang(gang, count + (random.random() < 0.1), random.choice((None, RACK))))
        since, priority = NOW_S - random.randint(0, 40) * 600, random.choice((0, 0, 100))
        waiting += pods(count, random.choice(shapes), f"pod-{at}", since, priority=priority, gang=gang)
    return Snapshot(NOW_S, pools_, tuple(_hosts(random, pools_)), tuple(waiting), tuple(gangs))


def _pool(random: Random, at: int) -> PoolSupply:
    places = [Place(f"r{n}", labels({RACK: f"{at}-r{n}"}), random.randint(0, 4)) for n in range(random.randint(0, 2))]
    return PoolSupply(
        f"pool-{at}",
        room(random.randint(6, 16), random.randint(24, 64), random.choice((0, 4, 8)), random.randint(3, 9)),
        random.randint(0, 5) * 700_000,
        random.randint(0, 8),
        labels({REGION: random.choice(("east", "west"))}),
        (_TAINT,) if random.random() < 0.2 else (),
        spot=random.random() < 0.4,
        interruptions=0.1,
        places=tuple(places),
    )


def _shape(random: Random) -> Shape:
    some = random.random
    return Shape(
        ask(random.randint(1, 7), random.randint(0, 24), random.choice((0, 0, 0, 1, 2, 9))),
        needs=((Requirement(REGION, Operator.IN, ("east",)),),) if some() < 0.2 else (),
        tolerations=random.choice(((), (Toleration(),), (Toleration(_TAINT.key, "vision"),))),
        preferences=(Preference(REGION, ("west",), 300_000),) if some() < 0.4 else (),
        spot=Spot.NEVER if some() < 0.2 else Spot.ANY,
        ceiling=900_000 if some() < 0.2 else None,
        apart="dns" if some() < 0.2 else None,
    )


def _hosts(random: Random, pools_: tuple[PoolSupply, ...]) -> Iterator[HostSupply]:
    for each in pools_:
        for at in range(random.randint(0, 3)):
            part = random.choice((0.0, 0.5, 1.0))
            free = Resources.of({name: int(amount * part) for name, amount in each.room.amounts})
            apart = frozenset({"dns"} if random.random() < 0.2 else ())
            place = random.choice(each.grounds).name
            yield HostSupply(f"{each.name}-{at}", each.name, free, place, apart=apart, open=random.random() < 0.9)


# Drawn by seed, not part by part: most snapshots drawn by parts have no room for anything.
SNAPSHOTS = st.integers(0, 2**40).map(random_snapshot)


def violations(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Return the rules that a plan breaks."""
    if set(plan.verdicts) != {pod.name for pod in snapshot.pods}:
        return ["a pod has no verdict, or an unknown pod has one"]
    return [*_host_violations(snapshot, plan), *_gang_violations(snapshot, plan), *_quota_violations(snapshot, plan)]


def _host_violations(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    pools, existing = {pool.name: pool for pool in snapshot.pools}, {host.name: host for host in snapshot.hosts}
    added = {host.name: host for host in plan.hosts}
    on: dict[str, list[Pod]] = defaultdict(list)
    for pod in snapshot.pods:
        verdict = plan.verdicts[pod.name]
        if bool(verdict.host) != (verdict.fate in (Fate.ROOM, Fate.NEW)):
            yield f"{pod.name}: {verdict}"
        if verdict.host:
            on[verdict.host].append(pod)
    for name, several in on.items():
        host = existing.get(name) or added[name]
        its = pools[host.pool]
        free = dict(host.free.amounts if isinstance(host, HostSupply) else its.room.amounts)
        if isinstance(host, HostSupply) and not host.open:
            yield f"{name} isn't open"
        groups = Counter(pod.shape.apart for pod in several if pod.shape.apart)
        groups.update(host.apart if isinstance(host, HostSupply) else ())
        yield from (f"{name} has {count} pods of {group}" for group, count in groups.items() if count > 1 and group)
        for pod in several:
            for resource, amount in (*pod.shape.requests.amounts, (PODS, 1)):
                free[resource] = free.get(resource, 0) - amount
            yield from _may_not(pod, its, where(its, host.place))
        yield from (f"{name} has {amount} of {resource} left" for resource, amount in free.items() if amount < 0)
    yield from (f"{host.name} has no pods" for host in plan.hosts if not on[host.name])


def where(pool: PoolSupply, place: str) -> dict[str, str]:
    """Return the labels of the pool's hosts at a place."""
    return dict(pool.labels) | dict(next(each.labels for each in pool.grounds if each.name == place))


def _may_not(pod: Pod, pool: PoolSupply, known: dict[str, str]) -> Iterator[str]:
    shape = pod.shape
    if shape.needs and not any(all(known.get(need.key) in need.values for need in term) for term in shape.needs):
        yield f"{pod.name} is on {pool.name} against its selector"
    for taint in pool.taints:
        if not any(each.key in (None, taint.key) for each in shape.tolerations):
            yield f"{pod.name} doesn't tolerate {taint}"
    if shape.spot is Spot.NEVER and pool.spot:
        yield f"{pod.name} is on spot hosts"
    fits = min(pool.room[name] // amount for name, amount in shape.size.amounts if not name.startswith("apart:"))
    fits = 1 if shape.apart else fits
    if shape.ceiling is not None and pool.price > shape.ceiling * fits:
        yield f"{pod.name} costs more than its ceiling"


def _gang_violations(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    at = {host.name: (host.pool, host.place) for host in (*snapshot.hosts, *plan.hosts)}
    pools = {pool.name: pool for pool in snapshot.pools}
    for gang in snapshot.gangs:
        hosts = [plan.verdicts[pod.name].host for pod in snapshot.pods if pod.gang == gang.name]
        if any(hosts) and (not all(hosts) or len(hosts) != gang.members):
            yield f"{gang.name} is split"
        elif any(hosts) and gang.within:
            values = {where(pools[at[host][0]], at[host][1]).get(gang.within) for host in hosts}
            if len(values) != 1 or None in values:
                yield f"{gang.name} is in {values}"


def _quota_violations(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    there = Counter((host.pool, host.place) for host in snapshot.hosts)
    more = Counter((host.pool, host.place) for host in plan.hosts)
    for each in snapshot.pools:
        count = sum(number for (name, _), number in more.items() if name == each.name)
        if count and count + sum(number for (name, _), number in there.items() if name == each.name) > each.most:
            yield f"{each.name} has more than {each.most} hosts"
        for place in each.grounds:
            if (now := more[each.name, place.name]) and now + there[each.name, place.name] > place.most:
                yield f"{each.name} has more than {place.most} hosts at {place.name}"


def carried_out(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot after the hosts were ordered, each expecting its pods. No pod runs yet, and nothing else has changed."""
    pools = {pool.name: pool for pool in snapshot.pools}
    on: dict[str, list[str]] = defaultdict(list)
    for pod, verdict in plan.verdicts.items():
        on[verdict.host].append(pod)
    hosts = [replace(host, expects=tuple(on[host.name])) for host in snapshot.hosts]
    hosts += [
        HostSupply(f"made-{new.name}", new.pool, pools[new.pool].room, new.place, expects=new.pods)
        for new in plan.hosts
    ]
    return replace(snapshot, hosts=tuple(hosts))
