"""The questions and output of `tenancy`."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from cli import exits
from cli.asking import confirm, dry_run_of
from cli.output import console, errors, print_json
from cli.views import tenancy_capacity as capacity_view
from cluster.spec import Cluster
from controllers.tenancy.capacity.run import CapacityReview
from controllers.tenancy.sync.plan import Story, TenancyChange
from controllers.tenancy.sync.run import Applied, SyncReview
from controllers.tenancy.sync.state import TenancyState

_SHOWN = 40
_MARKS = {Story.JOINED: ("+", "green"), Story.RETURNED: ("+", "green"), Story.LEFT: ("-", "yellow")}
_PHRASES = {
    Story.JOINED: "gets the namespace {}",
    Story.RETURNED: "is back: {} is unfrozen",
    Story.LEFT: "has left: {} is frozen; nothing in it is deleted",
}


class View:
    """Print one round of `sync`."""

    def __init__(self, cluster: Cluster, directory: str, *, quiet: bool) -> None:
        self._cluster, self._directory, self._quiet = cluster, directory, quiet

    def show(self, result: SyncReview, *, accept_loss: bool) -> None:
        """Print who joins and leaves, every change and its reason, and what prevents changes."""
        if accept_loss:
            errors.print(Text("--accept-loss: the directory is trusted, whatever is missing from it", style="yellow"))
        if self._quiet:
            return
        for story, tenant, namespace in result.plan.stories[:_SHOWN]:
            mark, style = _MARKS[story]
            errors.print(Text(f"{mark} {tenant} {_PHRASES[story].format(namespace)}", style=style))
        for change in result.plan.changes[:_SHOWN]:
            errors.print(f"  {change.verb} {change.what}: {change.reason}", markup=False)
        if len(result.plan.changes) > _SHOWN:
            errors.print(f"  and {len(result.plan.changes) - _SHOWN} more; --json lists all", markup=False)
        for text in result.plan.notices:
            errors.print(Text(text, style="yellow"))
        for text in result.plan.conflicts:
            errors.print(Text(text, style="red"))
        for text in result.refused:
            errors.print(Text(f"refused: {text}", style="red"))

    def confirm(self, result: SyncReview) -> None:
        leavers = sum(story is Story.LEFT for story, _, _ in result.plan.stories)
        frozen = f" {leavers} namespaces are frozen." if leavers else ""
        again = f"tenancy sync {self._cluster.name}"
        confirm(f"Make {len(result.plan.changes)} changes?{frozen}", again, see=dry_run_of(again))

    def tell(self, change: TenancyChange) -> None:
        if not self._quiet:
            errors.print(f"✓ {change.what}", style="green", markup=False)

    def conclude(self, result: SyncReview, applied: Applied, *, dry_run: bool) -> int:
        """Print the result and return the exit code."""
        left = len(result.refused) + len(result.plan.conflicts) + len(applied.failed)
        if self._quiet:
            print_json(self._document(result, applied, dry_run=dry_run))
        else:
            for change, why in applied.failed:
                errors.print(Text(f"✗ {change.what}: {why}", style="red"))
            console.print(f"{self._cluster.name}: {_sum(result, applied, dry_run=dry_run)}", markup=False)
        return exits.FAILED if left else exits.DONE

    def _document(self, result: SyncReview, applied: Applied, *, dry_run: bool) -> dict[str, object]:
        failures = {change.key: why for change, why in applied.failed}
        made = {change.key for change in applied.changes}
        return {
            "cluster": self._cluster.name,
            "directory": self._directory,
            "dry_run": dry_run,
            "people": len(result.roster.active),
            "teams": len(result.roster.teams),
            "refused": list(result.refused),
            "stories": [
                {"story": story, "tenant": str(tenant), "namespace": name}
                for story, tenant, name in result.plan.stories
            ],
            "changes": [
                {**change.to_json(), "made": change.key in made, "failed": failures.get(change.key)}
                for change in result.plan.changes
            ],
            "conflicts": list(result.plan.conflicts),
            "notices": list(result.plan.notices),
        }


def _sum(result: SyncReview, applied: Applied, *, dry_run: bool) -> str:
    who = f"{len(result.roster.active)} people, {len(result.roster.teams)} teams"
    if result.refused:
        return f"refused; nothing was changed; {who} in the directory"
    if not result.plan.changes:
        return f"matches the directory, {who}; nothing to change"
    if dry_run:
        return f"{len(result.plan.changes)} changes would be made for {who}"
    failed = f", {len(applied.failed)} refused by the API" if applied.failed else ""
    return f"{len(applied.changes)} changes made{failed}; {who}"


def document(cluster: Cluster, directory: str, result: SyncReview, hosts: CapacityReview | None) -> dict[str, Any]:
    """Return every namespace of a person or a team, its owner and members, since when it is frozen; and each team's hosts."""
    last = result.state.last
    size = {"people": last.people, "teams": last.teams, "since": last.since} if last else None
    pools = capacity_view.rows(cluster, hosts) if hosts else []
    rows = _rows(result.state, result)
    return {"cluster": cluster.name, "directory": directory, "last": size, "namespaces": rows, "pools": pools}


def listed(cluster: Cluster, directory: str, result: SyncReview, hosts: CapacityReview | None) -> None:
    """Print `document` for people."""
    rows = _rows(result.state, result)
    for row in rows:
        state = f"frozen since {row['frozen']}" if row["frozen"] else row["state"]
        people = f": {', '.join(row['members'])}" if row["members"] else ""
        owners = f" (owners: {', '.join(row['owners'])})" if row["owners"] else ""
        console.print(f"{row['namespace']}  {row['tenant']}  {state}{people}{owners}", markup=False)
    if hosts:
        capacity_view.listed(cluster, hosts)
    of_hosts = (*hosts.refused, *hosts.plan.conflicts, *hosts.plan.notices) if hosts else ()
    for text in (*result.refused, *result.plan.conflicts, *result.plan.notices, *of_hosts):
        errors.print(Text(text, style="yellow"))
    last = result.state.last
    when = f"; directory unchanged since {last.since}" if last else "; never synced"
    console.print(f"{cluster.name}: {len(rows)} namespaces, {directory}{when}", markup=False)


def _rows(current: TenancyState, result: SyncReview) -> list[dict[str, Any]]:
    """Return the existing namespaces, and those that the next sync creates."""
    teams, coming = result.roster.teams, [story for story in result.plan.stories if story[0] is Story.JOINED]
    spaces = [(space.name, space.tenant, space.frozen, "in use") for space in current.spaces.values() if space.tenant]
    spaces += [(name, tenant, "", "created by the next sync") for _, tenant, name in coming]
    leaving = {name for story, _, name in result.plan.stories if story is Story.LEFT}
    rows: list[dict[str, Any]] = []
    for name, tenant, frozen, state in sorted(spaces):
        team = teams.get(tenant.name) if tenant.kind == "team" else None
        rows.append(
            {
                "namespace": name,
                "tenant": str(tenant),
                "frozen": frozen,
                "state": "frozen by the next sync" if name in leaving else state,
                "members": list(team.members) if team else [],
                "owners": list(team.owners) if team else [],
            }
        )
    return rows
