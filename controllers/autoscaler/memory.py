"""What the autoscaler remembers from one pass to the next; enough of it that whoever is killed anywhere goes on from here.

Written before anything is ordered: an order in the memory that its cloud never heard of is given again, since `Groups.grow` says
how many machines are wanted and not how many more.
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
"""Of the ConfigMap, packed: names of ten thousand pods would not fit into one as they are."""
_VERSION = 1
"""Of what is packed; autoscalers from before ConfigMaps had versions go by it."""


@dataclass(frozen=True)
class Order:
    """A machine that was ordered for pods.

    at_s: Unix time. pods: names, those that still wait. machine: the cloud's id, "" until it is known. ready_s: when its node took
    work, 0 before.
    """

    pool: str
    at_s: float
    pods: tuple[str, ...]
    machine: str = ""
    ready_s: float = 0.0


@dataclass(frozen=True)
class Rest:
    """Why a pool is not grown, and until when (Unix time). strikes: how often in a row."""

    until_s: float
    why: str
    strikes: int = 1


@dataclass(frozen=True)
class Memory:
    """orders: oldest first. rests: by pool. idle: node -> since when. rooms: pool -> room of an empty host, as learnt.

    machines: pool -> id -> its node, of those that were seen. stuck: uid of a pod -> since when the planner sees room for it that the
    scheduler doesn't. tries: uid -> hosts that were ordered for it without its starting.
    gone: nodes whose machine was known, and is no more.
    """

    orders: tuple[Order, ...] = ()
    rests: Mapping[str, Rest] = field(default_factory=dict)
    idle: Mapping[str, float] = field(default_factory=dict)
    rooms: Mapping[str, Resources] = field(default_factory=dict)
    machines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stuck: Mapping[str, float] = field(default_factory=dict)
    tries: Mapping[str, int] = field(default_factory=dict)
    gone: tuple[str, ...] = ()

    def resting(self, pool: str, now_s: float) -> Rest | None:
        rest = self.rests.get(pool)
        return rest if rest and rest.until_s > now_s else None

    def with_strike(self, pool: str, now_s: float, why: str, first_s: float, most_s: float) -> Memory:
        """The pool rests, longer each time; one that rests already rests on."""
        if self.resting(pool, now_s):
            return self
        strikes = self.rests[pool].strikes + 1 if pool in self.rests else 1
        rest_s = min(first_s * 2 ** min(strikes - 1, 20), most_s)
        return replace(self, rests={**self.rests, pool: Rest(now_s + rest_s, why, strikes)})


def packed(memory: Memory) -> str:
    """As text, the same for the same memory."""
    document = asdict(memory)
    document["rooms"] = {pool: dict(room.amounts) for pool, room in memory.rooms.items()}
    text = json.dumps({shared.KEY: _VERSION, **document}, sort_keys=True)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(text: str) -> Memory:
    """ValueError for what no version of this wrote, NewerDataError for what a newer one did. Fields that only a newer one knows go
    with the next `packed`: what is forgotten here is learnt again."""
    try:
        document: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
        shared.check("the autoscaler's memory", document.get(shared.KEY), _VERSION)
        document["gone"] = tuple(document["gone"])
        orders = ({**each, "pods": tuple(each["pods"])} for each in document["orders"])
        document["orders"] = tuple(shared.known(Order, each) for each in orders)
        document["rests"] = {pool: shared.known(Rest, each) for pool, each in document["rests"].items()}
        document["rooms"] = {pool: Resources.of(room) for pool, room in document["rooms"].items()}
        return shared.known(Memory, document)
    except (ValueError, TypeError, LookupError, AttributeError, zlib.error) as error:
        raise ValueError(f"the autoscaler's memory can't be read: {error!r}") from error
