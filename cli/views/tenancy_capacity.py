"""The questions and output of `tenancy sync --hosts`, and the hosts of `status CLUSTER tenancy`."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rich.text import Text

from cli import exits
from cli.asking import confirm, dry_run_of
from cli.output import console, errors, print_json
from cluster.spec import Cluster
from controllers.tenancy.capacity.plan import HostMove, MoveVerb
from controllers.tenancy.capacity.run import Applied, CapacityReview
from controllers.tenancy.directory.names import slug

_SHOWN = 40
_FEW = 3


class View:
    """Print one round."""

    def __init__(self, cluster: Cluster, *, quiet: bool) -> None:
        self._cluster, self._quiet = cluster, quiet

    def show(self, result: CapacityReview, *, evict: bool) -> None:
        """Print every change and its reason, what moves wait for, and what prevents changes."""
        if self._quiet:
            return
        for rule in result.rules:
            errors.print(f"  apply {rule.what}: {rule.reason}", markup=False)
        for move in result.plan.moves[:_SHOWN]:
            errors.print(Text(f"  {said_of(move)}", style="yellow" if move.waits else "green"))
        if len(result.plan.moves) > _SHOWN:
            errors.print(f"  and {len(result.plan.moves) - _SHOWN} more; --json lists all", markup=False)
        for text in result.plan.notices:
            errors.print(Text(text, style="yellow"))
        for text in result.plan.conflicts:
            errors.print(Text(text, style="red"))
        for text in result.refused:
            errors.print(Text(f"refused: {text}", style="red"))
        if result.plan.waiting and not evict:
            again = f"./menagerie tenancy sync {self._cluster.name} --hosts --evict"
            errors.print(
                Text(f"waiting moves continue with the next run; to evict the pods that they wait for: {again}")
            )

    def confirm(self, result: CapacityReview, *, evict: bool) -> None:
        again = f"tenancy sync {self._cluster.name} --hosts" + (" --evict" if evict else "")
        pods = sum(len(move.waits) for move in result.plan.waiting)
        ends = f" {pods} pods are evicted." if evict and pods else ""
        confirm(f"Make {result.changes} changes?{ends}", again, see=dry_run_of(again))

    def tell(self, what: str) -> None:
        if not self._quiet:
            errors.print(f"✓ {what}", style="green", markup=False)

    def conclude(self, result: CapacityReview, applied: Applied, *, dry_run: bool) -> int:
        """Print the result and return the exit code."""
        left = len(result.refused) + len(result.plan.conflicts) + len(applied.failed)
        if self._quiet:
            print_json(self._document(result, applied, dry_run=dry_run))
        else:
            for what, why in applied.failed:
                errors.print(Text(f"✗ {what}: {why}", style="red"))
            for pod in applied.evicted:
                errors.print(f"✓ {pod} evicted", style="green", markup=False)
            for text in applied.kept:
                errors.print(Text(text, style="yellow"))
            console.print(f"{self._cluster.name}: {_sum(result, applied, dry_run=dry_run)}", markup=False)
        return exits.FAILED if left else exits.DONE

    def _document(self, result: CapacityReview, applied: Applied, *, dry_run: bool) -> dict[str, object]:
        failures, made = dict(applied.failed), set(applied.changes)
        return {
            "cluster": self._cluster.name,
            "dry_run": dry_run,
            "refused": list(result.refused),
            "rules": [
                {"what": rule.what, "reason": rule.reason, "made": rule.what in made, "failed": failures.get(rule.what)}
                for rule in result.rules
            ],
            "moves": [
                {**move.to_json(), "made": move.host.name in made, "failed": failures.get(move.host.name)}
                for move in result.plan.moves
            ],
            "evicted": list(applied.evicted),
            "kept": list(applied.kept),
            "conflicts": list(result.plan.conflicts),
            "notices": list(result.plan.notices),
            "pools": rows(self._cluster, result),
        }


def said_of(move: HostMove) -> str:
    """Return ``h3: vision -> robotics: robotics has an allocation of 4 hosts of h100; waits for team-vision/train-0``."""
    waits = f"; waits for {_some(move.waits)}" if move.waits else ""
    closed = " (closed to others)" if move.verb is MoveVerb.CLOSE else ""
    return (
        f"{move.host.name}: {move.before or 'everybody'} -> {move.after or 'everybody'}{closed}: {move.reason}{waits}"
    )


def rows(cluster: Cluster, result: CapacityReview) -> list[dict[str, Any]]:
    """Return for each pool and team: its allocation, its hosts, which are coming, and who borrows them."""
    settings = cluster.spec.tenancy
    allocated = {(item.pool, slug(item.team)): item.hosts for item in (settings.allocations if settings else ())}
    by_owner: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    coming = {move.host.name: move for move in result.plan.moves}
    for host in result.hosts:
        if host.holder or host.pool in {pool for pool, _ in allocated}:
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
    keys = sorted({*allocated, *by_owner})
    return [
        {
            "pool": pool,
            "team": team,
            "allocated": allocated.get((pool, team), 0),
            "hosts": by_owner.get((pool, team), []),
        }
        for pool, team in keys
    ]


def listed(cluster: Cluster, result: CapacityReview) -> None:
    """Print each team's hosts, and who borrows them."""
    for row in rows(cluster, result):
        hosts = row["hosts"]
        allocated = f" of {row['allocated']}" if row["team"] else ""
        names = f": {', '.join(_state(host, row['team']) for host in hosts)}" if hosts else ""
        console.print(
            f"{row['pool']}  {row['team'] or 'everybody'}  {len(hosts)}{allocated} hosts{names}", markup=False
        )


def _state(host: dict[str, Any], team: str) -> str:
    notes = []
    if host["next"] != team:
        notes.append(f"moves to {host['next'] or 'everybody'} with the next run")
    elif host["waits"]:
        notes.append(f"waits for {_some(tuple(host['waits']))}")
    if host["borrowed"]:
        notes.append(f"borrowed by {_some(tuple(host['borrowed']))}")
    return f"{host['host']} ({'; '.join(notes)})" if notes else str(host["host"])


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more


def _sum(result: CapacityReview, applied: Applied, *, dry_run: bool) -> str:
    if result.refused:
        return "refused; nothing was changed"
    waits = f"; {len(result.plan.waiting)} hosts wait for pods to end" if result.plan.waiting else ""
    if not result.changes:
        return f"hosts match allocations; nothing to change{waits}"
    if dry_run:
        return f"{result.changes} changes would be made{waits}"
    failed = f", {len(applied.failed)} refused by the API" if applied.failed else ""
    return f"{len(applied.changes)} changes made{failed}{waits}"
