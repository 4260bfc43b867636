"""What a directory says, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, Protocol

from cluster.errors import FailedError


class Kind(StrEnum):
    """Who may have a namespace."""

    PERSON = "person"
    TEAM = "team"


class Tenant(NamedTuple):
    """A person or a team. name: its id in the directory."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class State(StrEnum):
    """Whether somebody may still do anything."""

    ACTIVE = "active"
    LEFT = "left"


@dataclass(frozen=True)
class Person:
    """id: the name by which the API knows the user, as the directory writes it. Another id is another person."""

    id: str
    full_name: str = ""
    state: State = State.ACTIVE


@dataclass(frozen=True)
class Team:
    """members, owners: ids of people, sorted. An owner need not be a member."""

    name: str
    members: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()

    @property
    def everybody(self) -> tuple[str, ...]:
        """Members and owners."""
        return tuple(sorted({*self.members, *self.owners}))


@dataclass(frozen=True)
class Roster:
    """All people and teams at one moment. notices: what was passed over in the directory, for its keepers."""

    people: Mapping[str, Person]
    teams: Mapping[str, Team]
    notices: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def active(self) -> frozenset[str]:
        """Ids of the people who have not left."""
        return frozenset(id for id, person in self.people.items() if person.state is State.ACTIVE)

    def tenants(self) -> Iterator[Tenant]:
        """Whoever has a namespace now: people who have not left, and teams."""
        yield from (Tenant(Kind.PERSON, id) for id in sorted(self.active))
        yield from (Tenant(Kind.TEAM, name) for name in sorted(self.teams))

    def teams_of(self, person: str) -> tuple[str, ...]:
        """The teams that somebody is a member or an owner of."""
        return tuple(name for name, team in sorted(self.teams.items()) if person in team.everybody)

    @property
    def memberships(self) -> int:
        """How many (person, team) there are of people who have not left."""
        return sum(len(self.active & set(team.everybody)) for team in self.teams.values())


def unbelieved(source: str, reasons: list[str]) -> FailedError:
    """A directory that can't be believed: it does not answer, not wholly, or with what can't be. Every reason at once."""
    text = "\n".join(f"  {reason}" for reason in reasons) if len(reasons) > 1 else reasons[0]
    return FailedError(f"{source}:{chr(10) if len(reasons) > 1 else ' '}{text}", code="directory")


class NoPoliciesError(FailedError):
    """The API servers can't add tolerations; the text says what to do."""

    code = "no-policies"


class Directory(Protocol):
    """Where people and teams are written."""

    @property
    def name(self) -> str:
        """What it is, for messages: a file's path or a URL."""

    def read(self) -> Roster:
        """Everybody, now. FailedError or SpecError with all that stands against believing it."""
