"""What the autoscaler asks of a cloud, or of the lab: groups of machines that grow, and shrink by named machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from cluster.errors import FailedError


@dataclass(frozen=True)
class Machine:
    """One machine of a group. id: the cloud's own. node: the name of its Node, "" until it is known. state: of the cloud's view.

    zone: as the cloud names it. since: when it was ordered, None where the cloud doesn't say.
    """

    id: str
    node: str
    state: Literal["booting", "running", "leaving"]
    zone: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class Group:
    """The machines of a pool (in one cloud). size: what is wanted now, with those that boot. least, most: the spec's limits."""

    pool: str
    size: int
    least: int
    most: int
    machines: tuple[Machine, ...]
    trouble: str = ""
    """Why it does not grow now (no capacity, quota), in the cloud's words; "" for none."""


class GroupError(FailedError):
    """The cloud refused or gave no answer; the text says what and what to do."""

    code = "groups"


class Groups(Protocol):
    """The groups of one cluster. Whatever is asked twice is done once, so a run that was killed asks again."""

    def read(self) -> Mapping[str, Group]:
        """By pool. GroupError where the whole is not known."""
        ...

    def grow(self, pool: str, size: int) -> None:
        """Want so many machines; idempotent; never lowers. GroupError."""
        ...

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        """These machines and no others, and want as many fewer; a repeat with an id that is gone changes nothing. GroupError."""
        ...
