"""Checks a spec together with its file of people, and reports every problem at once. Reads files only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cluster import counts
from cluster.document import Where
from cluster.positions import Positions
from cluster.problems import Problem, SpecError
from cluster.spec import Cluster
from cluster.tenancy import Tenancy
from controllers.tenancy.directory.files import FileDirectory
from controllers.tenancy.directory.model import Roster, TenantKind

_FILE: Where = ("tenancy", "directory", "file")


def problems(path: Path, cluster: Cluster, positions: Positions) -> Iterator[Problem]:
    """Yield the problems of a cluster whose people are listed in a file. path: of cluster.yaml."""
    tenancy = cluster.spec.tenancy
    if tenancy and tenancy.directory.file and not tenancy.directory.ldap:
        yield from _of(path.parent, cluster, positions, tenancy, tenancy.directory.file)


def _of(folder: Path, cluster: Cluster, positions: Positions, tenancy: Tenancy, file: str) -> Iterator[Problem]:
    path, document = folder / file, positions.document
    directory = FileDirectory(path, tenancy)
    if not path.exists():
        message = f"tenancy.directory.file names {file}, but {directory.name} does not exist"
        yield document.problem("CFG-010", _FILE, message, f"create {directory.name}, or correct the name")
        return
    try:
        roster = directory.read()
    except SpecError as error:
        yield from error.problems
        return
    if warning := _together(cluster, tenancy, roster):
        yield replace(document.problem("TEN-016", ("tenancy",), *warning), severity="warning")


def _together(cluster: Cluster, tenancy: Tenancy, roster: Roster) -> tuple[str, str] | None:
    """Return (message, hint) if all namespaces together may hold more than etcd main does."""
    room, tenants = cluster.spec.etcd.main.quota, list(roster.tenants())
    people = sum(each.kind is TenantKind.PERSON for each in tenants)
    number = people * counts.objects(counts.people(tenancy.people)) + sum(
        counts.objects(counts.teams(counts.team(tenancy, name))) for name in roster.teams
    )
    if number * counts.LARGEST <= room * tenancy.overcommit:
        return None
    message = (
        f"{people:,} people and {len(roster.teams):,} teams may have {counts.size_estimate(number)}; "
        f"etcd.main.quota is {counts.gibibytes(room)}, so all of them together could fill it"
    )
    hint = f"lower count/… in tenancy.people.quota and tenancy.teams.quota, or accept it: tenancy.overcommit: {counts.times(number, room)}"
    return message, hint
