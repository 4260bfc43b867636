"""`etcd backup`, and `status CLUSTER backups`: the backups in the bucket, and which of them passed a drill."""

from __future__ import annotations

import time
from pathlib import Path

import typer
from rich.text import Text

from cli import exits
from cli.output import Steps, console, print_json
from cli.sections import Look, Options, Report
from cluster.spec import Cluster, RoleName
from operations import backups, stack
from operations.backups import BackupState, KeptBackup
from operations.words import duration

_SHOWN = 10


def backup(cluster: Cluster, role: RoleName | None, *, dry_run: bool, as_json: bool) -> None:
    """Back up one etcd, or both, and wait until the backup is in the bucket."""
    steps = Steps(("cluster",) if dry_run else ("cluster", "backup"), quiet=as_json)
    with steps.step("cluster"):
        access = stack.access_to(cluster, steps.detail)
    if dry_run:
        members = backups.makers(cluster, access, role)
        if as_json:
            print_json({"cluster": cluster.name, "would_make": members})
        for name, member in {} if as_json else members.items():
            console.print(f"etcd {name}: {member} would make the backup", markup=False)
        return
    with steps.step("backup"):
        new = backups.make(cluster, access, role, steps.detail)
    if as_json:
        print_json({"cluster": cluster.name, "made": {etcd: item.to_json() for etcd, item in new.items()}})
        return
    now = time.time()
    for etcd, item in new.items():
        console.print(f"etcd {etcd}  {item.id[:8]}  {_facts(item, now)}", markup=False)


def section(cluster: Cluster, folder: Path, options: Options) -> Look:
    """Read the bucket with the caller's own credentials.

    The newest backup that passed a drill may be as old as twice the interval of backups, plus the time between two drills.
    """
    roles = options.limit or (None,)
    if unknown := [role for role in options.limit if role not in ("main", "events")]:
        raise typer.BadParameter(f"--limit: there is no etcd {unknown[0]}; write main or events")
    access = stack.access_to(cluster)
    shown = _SHOWN if options.last is None else options.last

    def show(states: list[BackupState], now: float) -> None:
        for state in states:
            _print(state, now, shown)

    def look() -> Report:
        now = time.time()
        states = [state for role in roles for state in backups.read_states(cluster, access, role, now)]
        ok = all(state.ok for state in states)
        document = {"cluster": cluster.name, "ok": ok, "etcds": [state.to_json() for state in states]}
        return Report(exits.DONE if ok else exits.FAILED, document, lambda: show(states, now))

    return look


def _print(state: BackupState, now: float, most: int) -> None:
    mark = ("ok", "green") if state.ok else ("not ok", "red")
    console.print(Text.assemble((f"etcd {state.etcd}  ", "bold"), mark, f"  {state.summary}"))
    for backup_ in state.backups[:most]:
        console.print(Text.assemble(f"  {backup_.id[:8]}  ", _facts(backup_, now), "  ", _drilled(backup_, now)))
    if len(state.backups) > most:
        console.print(f"  and {len(state.backups) - most} more; --last {len(state.backups)} shows them", style="dim")


def _facts(backup_: KeptBackup, now: float) -> str:
    size = f"{backup_.size / 2**20:.1f} MiB"
    return f"{duration(now - backup_.time):>7} old  {size:>11}  revision {backup_.revision}  {backup_.keys} keys  by {backup_.member}"


def _drilled(backup_: KeptBackup, now: float) -> Text:
    if backup_.tried is None:
        return Text("no drill yet", "dim")
    ago = f"{duration(now - backup_.tried)} ago by drill {(backup_.drill or '')[:8]}"
    return Text(f"good, {ago}", "green") if backup_.good else Text(f"bad, {ago}: {backup_.why}", "red")
