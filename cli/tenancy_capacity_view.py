"""What `tenancy sync --hosts` shows, asks and prints, and what `status CLUSTER tenancy` says of hosts."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rich.text import Text

from cli import exits
from cli.asking import confirm, dry_run_of
from cli.output import console, errors, print_json
from cluster.spec import Cluster
from controllers.tenancy.capacity.plan import Move, Verb
from controllers.tenancy.capacity.run import Applied, Found
from controllers.tenancy.directory.names import slug

_SHOWN = 40
_FEW = 3


class View:
    """One round."""

    def __init__(self, cluster: Cluster, *, quiet: bool) -> None:
        self._cluster, self._quiet = cluster, quiet

    def show(self, found: Found, *, evict: bool) -> None:
        """Every change and why, what moves wait for, and what stands against it."""
        if self._quiet:
            return
        for rule in found.rules:
            errors.print(f"  apply {rule.what}: {rule.reason}", markup=False)
        for move in found.plan.moves[:_SHOWN]:
            errors.print(Text(f"  {said_of(move)}", style="yellow" if move.waits else "green"))
        if len(found.plan.moves) > _SHOWN:
            errors.print(f"  and {len(found.plan.moves) - _SHOWN} more; --json lists all", markup=False)
        for text in found.plan.notices:
            errors.print(Text(text, style="yellow"))
        for text in found.plan.conflicts:
            errors.print(Text(text, style="red"))
        for text in found.refused:
            errors.print(Text(f"refused: {text}", style="red"))
        if found.plan.waiting and not evict:
            again = f"./menagerie tenancy sync {self._cluster.name} --hosts --evict"
            errors.print(Text(f"moves that wait go on with the next run; to end what they wait for: {again}"))

    def confirm(self, found: Found, *, evict: bool) -> None:
        again = f"tenancy sync {self._cluster.name} --hosts" + (" --evict" if evict else "")
        pods = sum(len(move.waits) for move in found.plan.waiting)
        ends = f" {pods} pods are evicted." if evict and pods else ""
        confirm(f"Make {found.changes} changes?{ends}", again, see=dry_run_of(again))

    def tell(self, what: str) -> None:
        if not self._quiet:
            errors.print(f"✓ {what}", style="green", markup=False)

    def conclude(self, found: Found, applied: Applied, *, dry_run: bool) -> int:
        """Print the result; the exit code."""
        left = len(found.refused) + len(found.plan.conflicts) + len(applied.failed)
        if self._quiet:
            print_json(self._document(found, applied, dry_run=dry_run))
        else:
            for what, why in applied.failed:
                errors.print(Text(f"✗ {what}: {why}", style="red"))
            for pod in applied.evicted:
                errors.print(f"✓ {pod} is evicted", style="green", markup=False)
            for text in applied.kept:
                errors.print(Text(text, style="yellow"))
            console.print(f"{self._cluster.name}: {_sum(found, applied, dry_run=dry_run)}", markup=False)
        return exits.FAILED if left else exits.DONE

    def _document(self, found: Found, applied: Applied, *, dry_run: bool) -> dict[str, object]:
        refused, made = dict(applied.failed), set(applied.made)
        return {
            "cluster": self._cluster.name,
            "dry_run": dry_run,
            "refused": list(found.refused),
            "rules": [
                {"what": rule.what, "reason": rule.reason, "made": rule.what in made, "failed": refused.get(rule.what)}
                for rule in found.rules
            ],
            "moves": [
                {**move.to_json(), "made": move.host.name in made, "failed": refused.get(move.host.name)}
                for move in found.plan.moves
            ],
            "evicted": list(applied.evicted),
            "kept": list(applied.kept),
            "conflicts": list(found.plan.conflicts),
            "notices": list(found.plan.notices),
            "pools": rows(self._cluster, found),
        }


def said_of(move: Move) -> str:
    """``h3: vision -> robotics: robotics has an allocation of 4 hosts of h100; waits for team-vision/train-0``."""
    waits = f"; waits for {_some(move.waits)}" if move.waits else ""
    closed = " (closed to others)" if move.verb is Verb.CLOSE else ""
    return (
        f"{move.host.name}: {move.before or 'everybody'} -> {move.after or 'everybody'}{closed}: {move.reason}{waits}"
    )


def rows(cluster: Cluster, found: Found) -> list[dict[str, Any]]:
    """For each pool and team: how many hosts it is to have and has, which come, and who borrows there."""
    settings = cluster.spec.tenancy
    wanted = {(each.pool, slug(each.team)): each.hosts for each in (settings.allocations if settings else ())}
    by_owner: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    coming = {move.host.name: move for move in found.plan.moves}
    for host in found.hosts:
        if host.holder or host.pool in {pool for pool, _ in wanted}:
            move = coming.get(host.name)
            borrowers = [pod.name for pod in host.pods if pod.borrowed]
            by_owner[host.pool, host.holder].append(
                {
                    "host": host.name,
                    "whole": host.label == host.taint,
                    "next": move.after if move else host.holder,
                    "waits": list(move.waits) if move else [],
                    "borrowed": borrowers,
                }
            )
    keys = sorted({*wanted, *by_owner})
    return [
        {"pool": pool, "team": team, "allocated": wanted.get((pool, team), 0), "hosts": by_owner.get((pool, team), [])}
        for pool, team in keys
    ]


def listed(cluster: Cluster, found: Found) -> None:
    """Who has which hosts, and who borrows."""
    for row in rows(cluster, found):
        hosts = row["hosts"]
        of = f" of {row['allocated']}" if row["team"] else ""
        names = f": {', '.join(_state(host, row['team']) for host in hosts)}" if hosts else ""
        console.print(f"{row['pool']}  {row['team'] or 'everybody'}  {len(hosts)}{of} hosts{names}", markup=False)


def _state(host: dict[str, Any], team: str) -> str:
    told = []
    if host["next"] != team:
        told.append(f"{host['next'] or 'everybody'}'s with the next run")
    elif host["waits"]:
        told.append(f"waits for {_some(tuple(host['waits']))}")
    if host["borrowed"]:
        told.append(f"borrowed by {_some(tuple(host['borrowed']))}")
    return f"{host['host']} ({'; '.join(told)})" if told else str(host["host"])


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more


def _sum(found: Found, applied: Applied, *, dry_run: bool) -> str:
    if found.refused:
        return "refused, nothing was changed"
    waits = f"; {len(found.plan.waiting)} hosts wait for pods to end" if found.plan.waiting else ""
    if not found.changes:
        return f"hosts are in step with allocations; nothing to change{waits}"
    if dry_run:
        return f"{found.changes} changes; none was made{waits}"
    failed = f", {len(applied.failed)} refused by the API" if applied.failed else ""
    return f"{len(applied.made)} changes made{failed}{waits}"
