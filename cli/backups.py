"""`etcd backup`, and `status CLUSTER backups`: the backups in the bucket, and which of them passed a drill."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from cli import exits
from cli.etcd_verbs import EitherRoleArg
from cli.options import ClusterArg, DryOpt, JsonOpt, examples
from cli.output import Steps, console, print_json
from cli.specs import checked
from cli.status import Look, Options, Report

if TYPE_CHECKING:
    from operations.backups import BackupState, KeptBackup

_SHOWN = 10


@examples(
    ("etcd backup jaguar", "both etcds, now"),
    ("etcd backup jaguar main", "before a risky change"),
    ("etcd backup jaguar --dry-run", "show which hosts would make them"),
)
def backup(cluster: ClusterArg, role: EitherRoleArg = None, dry_run: DryOpt = False, as_json: JsonOpt = False) -> None:
    """Back up one or both etcds now, and wait until the backup is in the bucket.

    A member's host makes the backup, as it does automatically once per interval.
    Drills test backups on their own schedule. `status CLUSTER backups` lists all
    backups.
    """
    loaded = checked(cluster)
    from operations.backups import make, makers
    from operations.stack import access_to

    steps = Steps(("cluster",) if dry_run else ("cluster", "backup"), quiet=as_json)
    with steps.step("cluster"):
        access = access_to(loaded, steps.detail)
    if dry_run:
        members = makers(loaded, access, role)
        if as_json:
            print_json({"cluster": loaded.name, "would_make": members})
        for name, member in {} if as_json else members.items():
            console.print(f"etcd {name}: {member} would make the backup", markup=False)
        return
    with steps.step("backup"):
        new = make(loaded, access, role, steps.detail)
    if as_json:
        print_json({"cluster": loaded.name, "made": {etcd: item.to_json() for etcd, item in new.items()}})
        return
    now = time.time()
    for etcd, item in new.items():
        console.print(f"etcd {etcd}  {item.id[:8]}  {_facts(item, now)}", markup=False)


def section(cluster: str, options: Options) -> Look:
    """Read the bucket with the caller's own credentials.

    The newest backup that passed a drill may be as old as twice the interval of backups, plus the time between two drills.
    """
    loaded = checked(cluster)
    from operations.backups import read_states
    from operations.stack import access_to

    roles = options.limit or (None,)
    if unknown := [role for role in options.limit if role not in ("main", "events")]:
        raise typer.BadParameter(f"--limit: there is no etcd {unknown[0]}; write main or events")
    access = access_to(loaded)
    shown = _SHOWN if options.last is None else options.last

    def show(states: list[BackupState], now: float) -> None:
        for state in states:
            _print(state, now, shown)

    def look() -> Report:
        now = time.time()
        states = [state for role in roles for state in read_states(loaded, access, role, now)]
        ok = all(state.ok for state in states)
        document = {"cluster": loaded.name, "ok": ok, "etcds": [state.to_json() for state in states]}
        return Report(exits.DONE if ok else exits.FAILED, document, lambda: show(states, now))

    return look


def _print(state: BackupState, now: float, most: int) -> None:
    mark = ("ok", "green") if state.ok else ("not ok", "red")
    console.print(Text.assemble((f"etcd {state.etcd}  ", "bold"), mark, f"  {state.told}"))
    for backup_ in state.backups[:most]:
        console.print(Text.assemble(f"  {backup_.id[:8]}  ", _facts(backup_, now), "  ", _drilled(backup_, now)))
    if len(state.backups) > most:
        console.print(f"  and {len(state.backups) - most} more; --last {len(state.backups)} shows them", style="dim")


def _facts(backup_: KeptBackup, now: float) -> str:
    from operations.words import duration

    size = f"{backup_.size / 2**20:.1f} MiB"
    return f"{duration(now - backup_.time):>7} old  {size:>11}  revision {backup_.revision}  {backup_.keys} keys  by {backup_.member}"


def _drilled(backup_: KeptBackup, now: float) -> Text:
    from operations.words import duration

    if backup_.tried is None:
        return Text("no drill yet", "dim")
    ago = f"{duration(now - backup_.tried)} ago by drill {(backup_.drill or '')[:8]}"
    return Text(f"good, {ago}", "green") if backup_.good else Text(f"bad, {ago}: {backup_.why}", "red")
