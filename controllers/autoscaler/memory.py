"""What the autoscaler remembers between passes: enough that a process killed at any point can continue from it.

It is written before anything is ordered. An order in the memory that never reached the cloud is repeated; this is safe because
`Groups.grow` sets the total number of machines, not an increment.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cluster import shared
from controllers.planner.resources import Resources

PAGE = "memory"
"""Page of the ConfigMap. It is compressed, because the names of ten thousand pods would not fit otherwise."""
_VERSION = 1
"""Version of the packed format. Autoscalers from before ConfigMaps had versions check it."""


@dataclass(frozen=True)
class Order:
    """A machine that was ordered for pods.

    at_s: Unix time. pods: names of those that still wait. machine: the cloud's id, "" until known. ready_s: when its node first
    took work, 0 before.
    """

    pool: str
    at_s: float
    pods: tuple[str, ...]
    machine: str = ""
    ready_s: float = 0.0


@dataclass(frozen=True)
class Backoff:
    """A pool's backoff: why it is not grown, and until when (Unix time). strikes: failures in a row."""

    until_s: float
    why: str
    strikes: int = 1


@dataclass(frozen=True)
class Memory:
    """The memory. orders: oldest first. rests: by pool. idle: node -> since when. rooms: pool -> room of an empty host, as observed.

    machines: pool -> id -> node, for machines seen so far. stuck: uid of a pod -> since when the planner sees room for it and the
    scheduler doesn't. tries: uid -> hosts ordered for the pod without it starting. gone: nodes whose known machine no longer exists.
    """

    orders: tuple[Order, ...] = ()
    rests: Mapping[str, Backoff] = field(default_factory=dict)
    idle: Mapping[str, float] = field(default_factory=dict)
    rooms: Mapping[str, Resources] = field(default_factory=dict)
    machines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stuck: Mapping[str, float] = field(default_factory=dict)
    tries: Mapping[str, int] = field(default_factory=dict)
    gone: tuple[str, ...] = ()

    def resting(self, pool: str, now_s: float) -> Backoff | None:
        rest = self.rests.get(pool)
        return rest if rest and rest.until_s > now_s else None

    def with_strike(self, pool: str, now_s: float, why: str, first_s: float, most_s: float) -> Memory:
        """Return the memory with the pool in backoff, longer each time. A backoff in progress is unchanged."""
        if self.resting(pool, now_s):
            return self
        strikes = self.rests[pool].strikes + 1 if pool in self.rests else 1
        rest_s = min(first_s * 2 ** min(strikes - 1, 20), most_s)
        return replace(self, rests={**self.rests, pool: Backoff(now_s + rest_s, why, strikes)})


def packed(memory: Memory) -> str:
    """Pack as text; equal memories give equal texts."""
    document = asdict(memory)
    document["rooms"] = {pool: dict(room.amounts) for pool, room in memory.rooms.items()}
    text = json.dumps({shared.KEY: _VERSION, **document}, sort_keys=True)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(text: str) -> Memory:
    """Unpack a memory. Fields that only a newer version knows are lost at the next `packed`; what is lost is learnt again.

    Errors: raises NewerDataError for a newer version of the format, and ValueError for anything else that can't be read.
    """
    try:
        document: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
        shared.check("the autoscaler's memory", document.get(shared.KEY), _VERSION)
        document["gone"] = tuple(document["gone"])
        orders = ({**each, "pods": tuple(each["pods"])} for each in document["orders"])
        document["orders"] = tuple(shared.from_known_fields(Order, each) for each in orders)
        document["rests"] = {pool: shared.from_known_fields(Backoff, each) for pool, each in document["rests"].items()}
        document["rooms"] = {pool: Resources.of(room) for pool, room in document["rooms"].items()}
        return shared.from_known_fields(Memory, document)
    except (ValueError, TypeError, LookupError, AttributeError, zlib.error) as error:
        raise ValueError(f"the autoscaler's memory can't be read: {error!r}") from error
