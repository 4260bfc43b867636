"""What `tenancy` shows, asks and prints."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from cli import exits
from cli import tenancy_capacity_view as capacity_view
from cli.asking import confirm, dry_run_of
from cli.output import console, errors, print_json
from cluster.spec import Cluster
from controllers.tenancy.capacity.run import Found as HostsFound
from controllers.tenancy.sync.plan import Change, Story
from controllers.tenancy.sync.run import Applied, Found
from controllers.tenancy.sync.seen import Seen

_SHOWN = 40
_MARKS = {Story.JOINED: ("+", "green"), Story.RETURNED: ("+", "green"), Story.LEFT: ("-", "yellow")}
_TOLD = {
    Story.JOINED: "gets the namespace {}",
    Story.RETURNED: "is back: {} is thawed",
    Story.LEFT: "has left: {} is frozen, and nothing in it deleted",
}


class View:
    """One round of `sync`."""

    def __init__(self, cluster: Cluster, directory: str, *, quiet: bool) -> None:
        self._cluster, self._directory, self._quiet = cluster, directory, quiet

    def show(self, found: Found, *, accept_loss: bool) -> None:
        """Who comes and goes, every change and why, and what stands against it."""
        if accept_loss:
            errors.print(Text("--accept-loss: the directory is believed, whatever has gone from it", style="yellow"))
        if self._quiet:
            return
        for story, tenant, namespace in found.plan.stories[:_SHOWN]:
            mark, style = _MARKS[story]
            errors.print(Text(f"{mark} {tenant} {_TOLD[story].format(namespace)}", style=style))
        for change in found.plan.changes[:_SHOWN]:
            errors.print(f"  {change.verb} {change.what}: {change.reason}", markup=False)
        if len(found.plan.changes) > _SHOWN:
            errors.print(f"  and {len(found.plan.changes) - _SHOWN} more; --json lists all", markup=False)
        for text in found.plan.notices:
            errors.print(Text(text, style="yellow"))
        for text in found.plan.conflicts:
            errors.print(Text(text, style="red"))
        for text in found.refused:
            errors.print(Text(f"refused: {text}", style="red"))

    def confirm(self, found: Found) -> None:
        gone = sum(story is Story.LEFT for story, _, _ in found.plan.stories)
        frozen = f" {gone} namespaces are frozen." if gone else ""
        again = f"tenancy sync {self._cluster.name}"
        confirm(f"Make {len(found.plan.changes)} changes?{frozen}", again, see=dry_run_of(again))

    def tell(self, change: Change) -> None:
        if not self._quiet:
            errors.print(f"✓ {change.what}", style="green", markup=False)

    def conclude(self, found: Found, applied: Applied, *, dry_run: bool) -> int:
        """Print the result; the exit code."""
        left = len(found.refused) + len(found.plan.conflicts) + len(applied.failed)
        if self._quiet:
            print_json(self._document(found, applied, dry_run=dry_run))
        else:
            for change, said in applied.failed:
                errors.print(Text(f"✗ {change.what}: {said}", style="red"))
            console.print(f"{self._cluster.name}: {_sum(found, applied, dry_run=dry_run)}", markup=False)
        return exits.FAILED if left else exits.DONE

    def _document(self, found: Found, applied: Applied, *, dry_run: bool) -> dict[str, object]:
        refused = {change.key: said for change, said in applied.failed}
        made = {change.key for change in applied.made}
        return {
            "cluster": self._cluster.name,
            "directory": self._directory,
            "dry_run": dry_run,
            "people": len(found.roster.active),
            "teams": len(found.roster.teams),
            "refused": list(found.refused),
            "stories": [
                {"story": story, "tenant": str(tenant), "namespace": name} for story, tenant, name in found.plan.stories
            ],
            "changes": [
                {**change.to_json(), "made": change.key in made, "failed": refused.get(change.key)}
                for change in found.plan.changes
            ],
            "conflicts": list(found.plan.conflicts),
            "notices": list(found.plan.notices),
        }


def _sum(found: Found, applied: Applied, *, dry_run: bool) -> str:
    who = f"{len(found.roster.active)} people, {len(found.roster.teams)} teams"
    if found.refused:
        return f"refused, nothing was changed; {who} in the directory"
    if not found.plan.changes:
        return f"in step with {who}; nothing to change"
    if dry_run:
        return f"{len(found.plan.changes)} changes for {who}; none was made"
    failed = f", {len(applied.failed)} refused by the API" if applied.failed else ""
    return f"{len(applied.made)} changes made{failed}; {who}"


def document(cluster: Cluster, directory: str, found: Found, hosts: HostsFound | None) -> dict[str, Any]:
    """Every namespace of a person or a team: whose it is, who is in it, since when it is frozen; and whose hosts are whose."""
    last = found.seen.last
    told = {"people": last.people, "teams": last.teams, "since": last.since} if last else None
    pools = capacity_view.rows(cluster, hosts) if hosts else []
    rows = _rows(found.seen, found)
    return {"cluster": cluster.name, "directory": directory, "last": told, "namespaces": rows, "pools": pools}


def listed(cluster: Cluster, directory: str, found: Found, hosts: HostsFound | None) -> None:
    """The same for people."""
    rows = _rows(found.seen, found)
    for row in rows:
        state = f"frozen since {row['frozen']}" if row["frozen"] else row["state"]
        people = f": {', '.join(row['members'])}" if row["members"] else ""
        owners = f" (owners: {', '.join(row['owners'])})" if row["owners"] else ""
        console.print(f"{row['namespace']}  {row['tenant']}  {state}{people}{owners}", markup=False)
    if hosts:
        capacity_view.listed(cluster, hosts)
    of_hosts = (*hosts.refused, *hosts.plan.conflicts, *hosts.plan.notices) if hosts else ()
    for text in (*found.refused, *found.plan.conflicts, *found.plan.notices, *of_hosts):
        errors.print(Text(text, style="yellow"))
    last = found.seen.last
    when = f"; directory as it is since {last.since}" if last else "; never synced"
    console.print(f"{cluster.name}: {len(rows)} namespaces, {directory}{when}", markup=False)


def _rows(seen: Seen, found: Found) -> list[dict[str, Any]]:
    """Those that are there, and those that the next sync makes."""
    teams, coming = found.roster.teams, [each for each in found.plan.stories if each[0] is Story.JOINED]
    there = [(each.name, each.tenant, each.frozen, "in use") for each in seen.spaces.values() if each.tenant]
    there += [(name, tenant, "", "made by the next sync") for _, tenant, name in coming]
    going = {name for story, _, name in found.plan.stories if story is Story.LEFT}
    rows: list[dict[str, Any]] = []
    for name, tenant, frozen, state in sorted(there):
        team = teams.get(tenant.name) if tenant.kind == "team" else None
        rows.append(
            {
                "namespace": name,
                "tenant": str(tenant),
                "frozen": frozen,
                "state": "frozen by the next sync" if name in going else state,
                "members": list(team.members) if team else [],
                "owners": list(team.owners) if team else [],
            }
        )
    return rows
