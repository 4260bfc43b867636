"""A group of machines that are Nodes of a real API, and a process that dies at chosen steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.spec import Cluster
from cluster.subnets import worker_ranges
from controllers.autoscaler.actuator import Actuator
from controllers.autoscaler.decision import Act, Decision
from controllers.autoscaler.groups import Group, GroupError, Machine
from controllers.autoscaler.look import read_world
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.run import Loop, Round
from controllers.autoscaler.settings import settings_of
from controllers.autoscaler.world import World
from operations.repair.look import CheckInputs, limits_of
from tests import waiting
from tests.operations.real_cluster import World as Real
from tests.operations.repairs import renew

POOL = "region"


@dataclass
class Machines:
    """Machines whose nodes appear when `boot` is called. there: id -> node. refuses: error of `grow`, "" for none. silent: error of `read`."""

    real: Real
    cluster: Cluster
    most: int = 4
    least: int = 1
    size: int = 0
    there: dict[str, str] = field(default_factory=dict)
    trouble: str = ""
    refuses: str = ""
    silent: str = ""
    removed: list[str] = field(default_factory=list)

    def read(self) -> Mapping[str, Group]:
        if self.silent:
            raise GroupError(self.silent)
        machines = tuple(Machine(id, node, "running" if node else "booting") for id, node in sorted(self.there.items()))
        return {POOL: Group(POOL, self.size, self.least, self.most, machines, self.trouble)}

    def grow(self, pool: str, size: int) -> None:
        if self.refuses:
            raise GroupError(self.refuses)
        assert (pool, size <= self.most) == (POOL, True)
        self.size = max(self.size, size)
        while len(self.there) < self.size:
            self.there[f"i-{len(self.there) + len(self.removed) + 1}"] = ""

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        for id in ids:
            if id in self.there:
                node = self.there.pop(id)
                self.size -= 1
                self.removed.append(id)
                if node:
                    self.die(node)

    def die(self, node: str) -> None:
        """Silence a node's kubelet, and mark the node as the node lifecycle controller would."""
        self.real.say(self.real.hosts[node], ready=False)
        with self.real.lock:
            del self.real.hosts[node]

    def boot(self) -> None:
        """Turn every booting machine into a Ready node."""
        network = list(worker_ranges(self.cluster.spec)[0])
        for id, node in self.there.items():
            if not node:
                name = self.there[id] = f"lab-region-{id}"
                self.real.add(name)
                labels = {"menagerie/pool": POOL, "openai.org/location": "lab-local"}
                self.real.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}})
                address = str(network[10 + int(id.removeprefix("i-"))])
                addresses = [{"type": "InternalIP", "address": address}]
                self.real.merge(f"/api/v1/nodes/{name}/status", {"status": {"addresses": addresses}})
                renew(self.real, name)


class Killed(BaseException):
    """Stands for the death of the process."""


@dataclass
class Mortal:
    """Hands whose process dies at the given (act, after) points, once each."""

    hands: Actuator
    deaths: list[tuple[str, bool]]

    def _or_die(self, what: str, after: bool) -> None:
        if (what, after) in self.deaths:
            self.deaths.remove((what, after))
            raise Killed

    def carry_out(self, decision: Decision, world: World) -> str:
        self._or_die(str(decision.act), after=False)
        message = self.hands.carry_out(decision, world)
        self._or_die(str(decision.act), after=True)
        return message

    def recall(self) -> Memory:
        return self.hands.recall()

    def remember(self, memory: Memory) -> None:
        self._or_die("remember", after=False)
        self.hands.remember(memory)
        self._or_die("remember", after=True)

    def pause(self, paused: bool) -> None:
        self.hands.pause(paused)


def every_death(*acts: Act) -> list[tuple[str, bool]]:
    return [(what, after) for what in ("remember", *map(str, acts)) for after in (False, True)]


def around(cluster: Cluster, real: Real, control_plane: str = "") -> CheckInputs:
    return CheckInputs(cluster, real.api, lambda: control_plane, limits_of(cluster))


def loop(
    cluster: Cluster, real: Real, machines: Machines, deaths: list[tuple[str, bool]] | None = None, **more: str
) -> Loop:
    settings, here = settings_of(cluster), around(cluster, real, **more)
    hands = Actuator(real.api, machines, here.limits)
    return Loop(
        lambda memory: read_world(here, machines, settings, memory),
        Mortal(hands, deaths) if deaths else hands,
        settings,
        here.limits,
    )


def passes(make: Callable[[], Loop], real: Real, until: Callable[[], bool]) -> list[Round]:
    """Run passes until a condition holds. A process that dies is replaced by another."""
    rounds: list[Round] = []

    def one_pass() -> bool:
        try:
            rounds.append(make().once())
        except Killed:
            return False
        return until()

    waiting.until(one_pass, seconds=120)
    return rounds
