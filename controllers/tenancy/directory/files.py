"""People and teams in a YAML file. Reports every problem at once, each with its line and a way out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from cluster.document import Document, Where, read
from cluster.fields import did_you_mean, near
from cluster.model import Model
from cluster.problems import Problem, SpecError
from cluster.reading import real
from cluster.tenancy import Tenancy
from cluster.validate import validate
from cluster.words import PersonId, Title
from controllers.tenancy.directory.model import Person, PersonState, Roster, Team, Tenant, TenantKind
from controllers.tenancy.directory.names import assign


class PersonEntry(Model):
    """A person."""

    name: Title | None = None
    """Display name. Default: none."""
    state: PersonState = Field(default=PersonState.ACTIVE, strict=False)
    """active, or left. left has the same effect as removing the entry, but is explicit."""


class TeamEntry(Model):
    """A team."""

    members: tuple[PersonId, ...] = Field(default=(), strict=False)
    """Ids of people."""
    owners: tuple[PersonId, ...] = Field(default=(), strict=False)
    """Ids of people who may grant rights in the team's namespace. They also have a member's rights."""


class PeopleFile(Model):
    """People and teams."""

    people: dict[PersonId, PersonEntry]
    """Id -> person. The id is the user's name in the API; another id means another person."""
    teams: dict[Title, TeamEntry] = Field(default={})
    """Name -> team."""


class FileDirectory:
    """A directory in a file."""

    def __init__(self, path: Path, settings: Tenancy) -> None:
        self._path, self._settings = path, settings

    @property
    def name(self) -> str:
        """Return the file's path, relative to the current folder if it is below."""
        path = real(self._path)
        return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)

    def read(self) -> Roster:
        """Read all people and teams. Errors: raises SpecError with every problem in the file."""
        document = read(self._path, self.name, PeopleFile.model_fields)
        if document.data is None:
            raise SpecError(document.problems)
        valid = validate(PeopleFile, document)
        problems = [*document.problems, *valid.problems]
        roster = Roster({}, {})
        if valid.value:
            roster = _roster(valid.value)
            problems += _strangers(document, valid.value)
            problems += _names(document, roster, self._settings)
        if problems:
            raise SpecError(problems)
        return roster


def _roster(file: PeopleFile) -> Roster:
    people = {id: Person(id, entry.name or "", entry.state) for id, entry in file.people.items()}
    teams = {
        name: Team(name, tuple(sorted(set(entry.members))), tuple(sorted(set(entry.owners))))
        for name, entry in file.teams.items()
    }
    return Roster(people, teams)


def _strangers(document: Document, file: PeopleFile) -> Iterator[Problem]:
    """Yield members and owners who are not in people: a misspelt one would silently get no rights."""
    for team in file.teams:
        for key in ("members", "owners"):
            listed = (document.data["teams"][team] or {}).get(key) or ()
            for index, id in enumerate(listed):
                if isinstance(id, str) and id not in file.people:
                    where: Where = ("teams", team, key, index)
                    message = f"{id} of team {team} is not in people{did_you_mean(id, file.people)}"
                    best = near(id, file.people)
                    hint = f"write {best[0]}" if best else f"add {id} to people, or remove it here"
                    yield document.problem("TEN-009", where, message, hint)


def _names(document: Document, roster: Roster, settings: Tenancy) -> Iterator[Problem]:
    tenants = [
        *(Tenant(TenantKind.PERSON, id) for id in roster.people),
        *(Tenant(TenantKind.TEAM, name) for name in roster.teams),
    ]
    for trouble in assign(tenants, settings)[1]:
        last = trouble.tenants[-1]
        where: Where = ("people" if last.kind is TenantKind.PERSON else "teams", last.name)
        yield document.problem(trouble.code, where, trouble.message, trouble.hint, key=True)
