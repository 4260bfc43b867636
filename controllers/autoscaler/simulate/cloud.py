"""A cluster and its cloud in memory: machines that take time to boot, spot interruptions, a scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random

from controllers.autoscaler.decision import Act, Decision
from controllers.autoscaler.groups import Group, Machine
from controllers.autoscaler.pod_requests import Choices
from controllers.autoscaler.pods import resident, waiting
from controllers.autoscaler.simulate.trace import Arrival
from controllers.autoscaler.world import BY, Node, Resident, Supply, Waiting, World
from controllers.planner.feasibility import Ground, obstacles
from controllers.planner.resources import Resources
from operations.breaker import ClusterHealth, NodeHealth, Removal

START_S = 1_795_000_000.0
LEAVES_S = 60.0
"""Seconds from giving a machine back until it is gone."""


@dataclass
class SimulatedHost:
    """A machine and its node. ready_s: when it takes work. taken_s: when its cloud reclaims it, None for never. pods: name -> end."""

    id: str
    pool: str
    ordered_s: float
    ready_s: float
    taken_s: float | None = None
    cordoned: bool = False
    leaving_s: float | None = None
    pods: dict[str, float] = field(default_factory=dict)


@dataclass
class Story:
    """The history of a pod. waited_s: total wait until its last start. lost: how often it lost its host."""

    arrival: Arrival
    waiting: Waiting
    resident: Resident
    since_s: float
    started_s: float | None = None
    ended_s: float | None = None
    waited_s: float = 0.0
    lost: int = 0


class Cloud:
    """See the module. elsewhere: permanent nodes -> their pools, which the brake counts. barren: pools whose machines never arrive, for
    tests."""

    def __init__(
        self,
        supplies: Mapping[str, Supply],
        least: Mapping[str, int],
        choices: Choices,
        seed: int,
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self._supplies, self._least, self._choices = supplies, least, choices
        self._elsewhere = elsewhere or {}
        self._random = Random(seed)
        self.now_s = START_S
        self.hosts: dict[str, SimulatedHost] = {}
        self.sizes = {pool: 0 for pool, supply in supplies.items() if supply.grows}
        self.pods: dict[str, Story] = {}
        self.dead: dict[str, str] = {}
        self.removals: list[Removal] = []
        self.cost = 0.0
        self.host_s = 0.0
        self.barren: set[str] = set()
        self.peak = 0
        self._number = 0
        for pool, count in least.items():
            if pool in self.sizes:
                self._want(pool, count)
        for host in self.hosts.values():
            host.ready_s = self.now_s

    def arrive(self, arrival: Arrival) -> None:
        stamp = datetime.fromtimestamp(self.now_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata = {**arrival.pod["metadata"], "creationTimestamp": stamp}
        pod = {**arrival.pod, "metadata": metadata}
        pending = waiting(pod, self._choices, arrival.gangs)
        self.pods[pending.name] = Story(arrival, pending, replace(resident(pod), shape=pending.shape), self.now_s)

    def until(self, then_s: float) -> None:
        """Let time pass: machines cost money, arrive and are reclaimed; pods end."""
        passed = then_s - self.now_s
        self.peak = max(self.peak, len(self.hosts))
        for host in self.hosts.values():
            self.cost += self._supplies[host.pool].pool.price * passed / 3600 / 1e6
            self.host_s += passed
        self.now_s = then_s
        for name, host in list(self.hosts.items()):
            for pod, end_s in list(host.pods.items()):
                if end_s <= then_s:
                    self.pods[pod].ended_s = end_s
                    del host.pods[pod]
            if host.taken_s is not None and host.taken_s <= then_s:
                self._reclaim(name)
            elif host.leaving_s is not None and host.leaving_s <= then_s:
                self.dead[name] = host.pool
                del self.hosts[name]
        # A cloud's group replaces a machine that it lost.
        for pool, size in self.sizes.items():
            self._want(pool, size)

    def _reclaim(self, name: str) -> None:
        host = self.hosts.pop(name)
        self.dead[name] = host.pool
        for pod in host.pods:
            self._restart(pod)

    def _restart(self, pod: str) -> None:
        story = self.pods[pod]
        story.lost += 1
        story.started_s, story.since_s = None, self.now_s
        gang = story.waiting.gang
        if gang is None:
            return
        # Losing one member stops the whole gang.
        for host in self.hosts.values():
            for other in [
                name for name in host.pods if (own := self.pods[name].waiting.gang) and own.name == gang.name
            ]:
                del host.pods[other]
                self.pods[other].started_s, self.pods[other].since_s = None, self.now_s

    def schedule(self) -> None:
        """Place pods as a scheduler does: oldest first, on the fullest host that takes them; gangs as a whole."""
        gangs: dict[str, list[Story]] = {}
        for story in self.pending():
            if story.waiting.gang:
                gangs.setdefault(story.waiting.gang.name, []).append(story)
            else:
                self._bind([story])
        for members in gangs.values():
            gang = members[0].waiting.gang
            if gang and len(members) >= gang.size:
                self._bind(members)

    def pending(self) -> Iterator[Story]:
        return (story for story in self.pods.values() if story.started_s is None and story.ended_s is None)

    def _bind(self, stories: list[Story]) -> None:
        free = {name: self._free(host) for name, host in self._open()}
        chosen: list[tuple[Story, str]] = []
        for story in stories:
            size = story.waiting.shape.size.amounts
            able = [
                name
                for name, left in free.items()
                if all(left.get(resource, 0) >= amount for resource, amount in size)
                and not obstacles(story.waiting.shape, self._ground(name))
            ]
            if not able:
                return
            name = min(able, key=lambda each: (sum(free[each].values()), each))
            for resource, amount in size:
                free[name][resource] -= amount
            chosen.append((story, name))
        for story, name in chosen:
            self.hosts[name].pods[story.waiting.name] = self.now_s + story.arrival.runs_s
            story.started_s = self.now_s
            story.waited_s += self.now_s - story.since_s

    def _open(self) -> Iterator[tuple[str, SimulatedHost]]:
        for name, host in self.hosts.items():
            if host.ready_s <= self.now_s and not host.cordoned and host.leaving_s is None:
                yield name, host

    def _ground(self, name: str) -> Ground:
        pool = self._supplies[self.hosts[name].pool].pool
        return Ground(pool, pool.labels, pool.taints)

    def _free(self, host: SimulatedHost) -> dict[str, int]:
        left = dict(self._supplies[host.pool].pool.room.amounts)
        for pod in host.pods:
            for name, amount in self.pods[pod].waiting.shape.size.amounts:
                left[name] = left.get(name, 0) - amount
        return left

    def world(self) -> World:
        """Return what a look would see now."""
        nodes = tuple(self._nodes())
        members = tuple(
            NodeHealth(
                node.name, node.pool, ready=node.ready, healthy=node.ready, out=bool(node.mark), lease_at=self.now_s
            )
            for node in nodes
        ) + tuple(NodeHealth(name, pool, lease_at=self.now_s) for name, pool in self._elsewhere.items())
        fleet = ClusterHealth(members, self.now_s, tuple(self.removals))
        pods = tuple(story.waiting for story in self.pending())
        return World(self.now_s, self._supplies, dict(self._groups()), nodes, pods, fleet)

    def _nodes(self) -> Iterator[Node]:
        for name, host in self.hosts.items():
            if host.ready_s <= self.now_s:
                room = self._supplies[host.pool].pool.room
                pods = tuple(self.pods[pod].resident for pod in host.pods)
                mark = BY if host.cordoned else ""
                yield Node(name, host.pool, room, {}, (), pods, cordoned=host.cordoned, mark=mark, since_s=host.ready_s)
        for name, pool in self.dead.items():
            yield Node(name, pool, Resources(), ready=False, since_s=self.now_s)

    def _groups(self) -> Iterator[tuple[str, Group]]:
        for pool, size in self.sizes.items():
            machines = tuple(
                Machine(
                    host.id,
                    name if host.ready_s <= self.now_s else "",
                    "leaving" if host.leaving_s is not None else "running" if host.ready_s <= self.now_s else "booting",
                    since=datetime.fromtimestamp(host.ordered_s, UTC),
                )
                for name, host in self.hosts.items()
                if host.pool == pool
            )
            most = self._supplies[pool].pool.most
            yield pool, Group(pool, size, self._least.get(pool, 0), most, machines)

    def carry_out(self, decision: Decision) -> None:
        """Carry out a decision, as `hands` does in a cluster."""
        host = self.hosts.get(decision.node)
        match decision.act:
            case Act.GROW:
                self._want(decision.pool, decision.size)
            case Act.GIVE_BACK if host:
                host.cordoned = False
            case Act.CORDON if host:
                host.cordoned = True
                self.removals.append(Removal(decision.node, self.now_s, BY))
            case Act.DRAIN if host:
                for pod in list(host.pods):
                    del host.pods[pod]
                    self._restart(pod)
            case Act.REMOVE:
                self._remove(decision)
            case Act.FORGET:
                self.dead.pop(decision.node, None)

    def _remove(self, decision: Decision) -> None:
        for host in self.hosts.values():
            if host.id == decision.machine and host.leaving_s is None:
                host.leaving_s = self.now_s + LEAVES_S
                self.sizes[decision.pool] -= 1

    def _want(self, pool: str, size: int) -> None:
        self.sizes[pool] = max(self.sizes[pool], size)
        if pool in self.barren:
            return
        supply = self._supplies[pool].pool
        live = sum(host.pool == pool and host.leaving_s is None for host in self.hosts.values())
        for _ in range(self.sizes[pool] - live):
            self._number += 1
            name, ready_s = f"{pool}-{self._number}", self.now_s + supply.boot_s
            taken_s = None
            if supply.spot and supply.interruptions:
                taken_s = self.now_s + self._random.expovariate(supply.interruptions) * 3600
            self.hosts[name] = SimulatedHost(f"i-{self._number}", pool, self.now_s, ready_s, taken_s)

    def next_event_s(self) -> float:
        """Return the time of the next event, infinity for none."""
        times = [each for host in self.hosts.values() for each in self._times(host) if each > self.now_s]
        return min(times, default=float("inf"))

    @staticmethod
    def _times(host: SimulatedHost) -> Iterator[float]:
        yield host.ready_s
        yield from host.pods.values()
        yield from (each for each in (host.taken_s, host.leaving_s) if each is not None)
