"""The contents of a directory, independent of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, Protocol

from cluster.errors import FailedError


class TenantKind(StrEnum):
    """The kind of a tenant."""

    PERSON = "person"
    TEAM = "team"


class Tenant(NamedTuple):
    """A person or a team. name: its id in the directory."""

    kind: TenantKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class PersonState(StrEnum):
    """Whether a person still has rights."""

    ACTIVE = "active"
    LEFT = "left"


@dataclass(frozen=True)
class Person:
    """A person. id: the user's name in the API, as the directory writes it. Another id is another person."""

    id: str
    full_name: str = ""
    state: PersonState = PersonState.ACTIVE


@dataclass(frozen=True)
class Team:
    """A team. members, owners: ids of people, sorted. An owner need not be a member."""

    name: str
    members: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()

    @property
    def everybody(self) -> tuple[str, ...]:
        """Return members and owners, sorted."""
        return tuple(sorted({*self.members, *self.owners}))


@dataclass(frozen=True)
class Roster:
    """All people and teams at one moment. notices: entries of the directory that were skipped, for its administrators."""

    people: Mapping[str, Person]
    teams: Mapping[str, Team]
    notices: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def active(self) -> frozenset[str]:
        """Return the ids of the people who have not left."""
        return frozenset(id for id, person in self.people.items() if person.state is PersonState.ACTIVE)

    def tenants(self) -> Iterator[Tenant]:
        """Yield everybody who should have a namespace: people who have not left, and teams."""
        yield from (Tenant(TenantKind.PERSON, id) for id in sorted(self.active))
        yield from (Tenant(TenantKind.TEAM, name) for name in sorted(self.teams))

    def teams_of(self, person: str) -> tuple[str, ...]:
        """Return the teams that a person is a member or an owner of."""
        return tuple(name for name, team in sorted(self.teams.items()) if person in team.everybody)

    @property
    def memberships(self) -> int:
        """Return the number of pairs (person, team), without people who have left."""
        return sum(len(self.active & set(team.everybody)) for team in self.teams.values())


def directory_error(source: str, reasons: list[str]) -> FailedError:
    """Return the error for a directory that can't be used: no answer, a partial one, or an invalid one. Lists every reason."""
    text = "\n".join(f"  {reason}" for reason in reasons) if len(reasons) > 1 else reasons[0]
    return FailedError(f"{source}:{chr(10) if len(reasons) > 1 else ' '}{text}", code="directory")


class NoPoliciesError(FailedError):
    """The API servers can't add tolerations. The text says what to do."""

    code = "no-policies"


class Directory(Protocol):
    """A source of people and teams."""

    @property
    def name(self) -> str:
        """Its name in messages: a file's path or a URL."""

    def read(self) -> Roster:
        """Read all people and teams. Errors: raises FailedError or SpecError with every reason not to use the answer."""
