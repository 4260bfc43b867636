"""The interface to a cloud or the lab: groups of machines that grow, and that shrink by named machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from cluster.errors import FailedError


@dataclass(frozen=True)
class Machine:
    """One machine of a group. id: the cloud's. node: name of its Node, "" until known. state: according to the cloud.

    zone: the cloud's name for it. since: when it was ordered, None if the cloud doesn't say.
    """

    id: str
    node: str
    state: Literal["booting", "running", "leaving"]
    zone: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class Group:
    """The machines of a pool (in one cloud). size: desired now, booting ones included. least, most: the spec's limits."""

    pool: str
    size: int
    least: int
    most: int
    machines: tuple[Machine, ...]
    trouble: str = ""
    """Why the group does not grow now (no capacity, quota), in the cloud's words; "" if it does."""


class GroupError(FailedError):
    """The cloud refused or did not answer. The text says what happened and what to do."""

    code = "groups"


class Groups(Protocol):
    """The groups of one cluster. Every request is idempotent, so a run that was killed repeats it."""

    def read(self) -> Mapping[str, Group]:
        """Return the groups by pool. Errors: raises GroupError if the answer is incomplete."""
        ...

    def grow(self, pool: str, size: int) -> None:
        """Raise the desired number of machines to `size`; never lowers it. Errors: raises GroupError."""
        ...

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        """Remove exactly these machines, and lower the desired number by as many. An id that is gone changes nothing.

        Errors: raises GroupError.
        """
        ...
