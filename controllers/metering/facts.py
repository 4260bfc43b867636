"""Facts about hosts, pods, namespaces, volumes, prices and power, each true from a moment until the next one about the same thing.

Moments are Unix time in whole seconds. A fact holds in the half-open interval from its `since` to that of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple


class Subject(StrEnum):
    """What a fact is about, and what its id is."""

    HOST = "host"
    """A node, or a machine at a site: its name."""
    POD = "pod"
    """A pod on a host: its UID."""
    SPACE = "space"
    """A namespace: its name."""
    VOLUME = "volume"
    """A persistent volume: its name."""
    PRICE = "price"
    """A pool of the spec: its name."""
    ENERGY = "energy"
    """What the spec declares of a pool's energy: the pool's name."""
    POWER = "power"
    """A reading of a machine's power: the name of its host."""
    COUNTERS = "counters"
    """A reading of a node's counters of bytes: its name."""


class Use(StrEnum):
    """What a host's time is used for. Every part of a host has exactly one use at any moment."""

    USED = "used"
    """Requested by a pod that is bound to the host."""
    HELD = "held idle"
    """Nobody uses it, and it is kept for the team that the host is allocated to."""
    FREE = "free"
    DRAINED = "drained"
    """Somebody cordoned the host."""
    BROKEN = "broken"
    """The host is not Ready, or its checks failed; or the GPU is unhealthy."""
    BOOTING = "booting"
    """The host has not been Ready yet."""


class Room(NamedTuple):
    """Parts of a host. cpu: in thousandths of a CPU. memory: in MiB."""

    gpus: int = 0
    cpu: int = 0
    memory: int = 0


class HostFact(NamedTuple):
    """A host. idle: the use of what no pod requests; `Use.HELD` and `Use.FREE` follow from the team.

    down: whether its kubelet is silent, so that nothing on it counts as used. team: that it is allocated to, "" for none.
    room: its GPUs, and the CPU and memory that pods may request. bad_gpus: those that its device plugin reports as unhealthy.
    """

    pool: str
    idle: Use
    down: bool
    team: str
    room: Room
    bad_gpus: int = 0


class PodFact(NamedTuple):
    """A pod that is bound to a host and has not ended. need: what it requests."""

    namespace: str
    node: str
    need: Room


class SpaceFact(NamedTuple):
    """A namespace. team: whose it is, as labels have it, "" for none. user: the person whose it is, "" for none. teams: those of the person."""

    team: str = ""
    user: str = ""
    teams: tuple[str, ...] = ()


class VolumeFact(NamedTuple):
    """A volume. namespace: of its claim, "" if none has it. size: in MiB."""

    namespace: str
    size: int


class PriceFact(NamedTuple):
    """Of a machine of a pool, an hour, in millionths of a dollar; None if unknown. source: spec or list, "" without a price."""

    micro: int | None
    source: str = ""


class EnergySource(StrEnum):
    """Where a pool's energy is known from."""

    BMC = "bmc"
    """Readings of its machines' BMCs, and the estimate where they lack, if watts are declared."""
    DECLARED = "declared"
    """An estimate from the watts that the spec declares."""
    NONE = "none"
    """The pool is at a site, and has neither."""
    CLOUD = "cloud"
    """The pool is in the region: no cloud says what its machines draw."""


class EnergyFact(NamedTuple):
    """Of a pool. idle, busy: declared watts of a machine, 0 for none. micro: price of a kWh in millionths of a dollar, None if unknown."""

    source: EnergySource
    idle: int = 0
    busy: int = 0
    micro: int | None = None


class PowerFact(NamedTuple):
    """What a machine drew when its BMC was read."""

    watts: int


DIRECTIONS = ("out", "in")
"""Of bytes, as the pod sees it."""
CLASSES = ("pod", "ceph", "region", "site", "internet")
"""Of bytes: where the other end is."""
WAYS = tuple((direction, kind) for direction in DIRECTIONS for kind in CLASSES)
"""The order of a namespace's counters in the journal: new ones come last."""


class CountersFact(NamedTuple):
    """What a node's counters had reached. life: another one means that they began again at zero. resets: losses that it noticed.

    counts: (namespace, bytes in the order of `WAYS`), sorted; "" for pods that the node did not know.
    """

    life: str
    resets: int
    counts: tuple[tuple[str, tuple[int, ...]], ...]


Fact = HostFact | PodFact | SpaceFact | VolumeFact | PriceFact | EnergyFact | PowerFact | CountersFact


class Entry(NamedTuple):
    """A fact that holds from `since` on. fact: None if the thing ended then, or is gone."""

    since: int
    subject: Subject
    id: str
    fact: Fact | None


def to_json(entry: Entry) -> list[Any]:
    """Return the entry as JSON arrays, the fields of the fact in their order."""
    return [entry.since, entry.subject.value, entry.id, entry.fact]


def from_json(array: list[Any]) -> Entry:
    """Read what `to_json` returned. Errors: raises ValueError or TypeError for anything else."""
    since, what, id, fields = array
    subject = Subject(what)
    return Entry(int(since), subject, str(id), None if fields is None else _READ[subject](fields))


def _host(fields: list[Any]) -> HostFact:
    pool, idle, down, team, room, bad = fields
    return HostFact(pool, Use(idle), bool(down), team, Room(*room), bad)


def _pod(fields: list[Any]) -> PodFact:
    namespace, node, need = fields
    return PodFact(namespace, node, Room(*need))


def _space(fields: list[Any]) -> SpaceFact:
    team, user, teams = fields
    return SpaceFact(team, user, tuple(teams))


def _energy(fields: list[Any]) -> EnergyFact:
    source, idle, busy, micro = fields
    return EnergyFact(EnergySource(source), int(idle), int(busy), micro)


@lru_cache(maxsize=65_536)
def _power(watts: int) -> PowerFact:
    """Return the same fact for the same watts: a day has a million of them."""
    return PowerFact(watts)


def _counters(fields: list[Any]) -> CountersFact:
    life, resets, counts = fields
    return CountersFact(str(life), int(resets), tuple([(name, tuple(reached)) for name, reached in counts]))


_READ: Mapping[Subject, Callable[[list[Any]], Fact]] = {
    Subject.HOST: _host,
    Subject.POD: _pod,
    Subject.SPACE: _space,
    Subject.VOLUME: lambda fields: VolumeFact(*fields),
    Subject.PRICE: lambda fields: PriceFact(*fields),
    Subject.ENERGY: _energy,
    Subject.POWER: lambda fields: _power(int(*fields)),
    Subject.COUNTERS: _counters,
}
