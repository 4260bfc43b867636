"""`etcd backup`, and `status CLUSTER backups`: what backups there are, and which of them a drill found good."""

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
from cli.status import Asked, Look, Looked

if TYPE_CHECKING:
    from operations.backups import Kept, State

_SHOWN = 10


@examples(
    ("etcd backup jaguar", "of both, now"),
    ("etcd backup jaguar main", "before something risky"),
    ("etcd backup jaguar --dry-run", "which hosts would make them?"),
)
def backup(cluster: ClusterArg, role: EitherRoleArg = None, dry_run: DryOpt = False, as_json: JsonOpt = False) -> None:
    """Make a backup of both etcds or one now, and wait until the bucket has it.

    A member's host makes it, as it does automatically once per interval. A drill
    tests it on its own schedule. `status CLUSTER backups` lists what there is.
    """
    one = checked(cluster)
    from operations.backups import make, makers
    from operations.stack import access_to

    steps = Steps(("cluster",) if dry_run else ("cluster", "backup"), quiet=as_json)
    with steps.step("cluster"):
        access = access_to(one, steps.detail)
    if dry_run:
        would = makers(one, access, role)
        if as_json:
            print_json({"cluster": one.name, "would_make": would})
        for name, member in {} if as_json else would.items():
            console.print(f"etcd {name}: {member} would make a backup", markup=False)
        return
    with steps.step("backup"):
        made = make(one, access, role, steps.detail)
    if as_json:
        print_json({"cluster": one.name, "made": {etcd: kept.to_json() for etcd, kept in made.items()}})
        return
    now = time.time()
    for etcd, kept in made.items():
        console.print(f"etcd {etcd}  {kept.id[:8]}  {_facts(kept, now)}", markup=False)


def section(cluster: str, asked: Asked) -> Look:
    """Reads the bucket with your own right to it.

    The newest backup that a drill found good must be young enough: twice the interval of backups, plus the time
    between two drills.
    """
    one = checked(cluster)
    from operations.backups import read_states
    from operations.stack import access_to

    roles = asked.limit or (None,)
    if wrong := [role for role in asked.limit if role not in ("main", "events")]:
        raise typer.BadParameter(f"--limit: there is no etcd {wrong[0]}; write main or events")
    access = access_to(one)
    most = _SHOWN if asked.last is None else asked.last

    def show(states: list[State], now: float) -> None:
        for state in states:
            _print(state, now, most)

    def look() -> Looked:
        now = time.time()
        states = [state for role in roles for state in read_states(one, access, role, now)]
        ok = all(state.ok for state in states)
        document = {"cluster": one.name, "ok": ok, "etcds": [state.to_json() for state in states]}
        return Looked(exits.DONE if ok else exits.FAILED, document, lambda: show(states, now))

    return look


def _print(state: State, now: float, most: int) -> None:
    mark = ("ok", "green") if state.ok else ("not ok", "red")
    console.print(Text.assemble((f"etcd {state.etcd}  ", "bold"), mark, f"  {state.told}"))
    for kept in state.backups[:most]:
        console.print(Text.assemble(f"  {kept.id[:8]}  ", _facts(kept, now), "  ", _drilled(kept, now)))
    if len(state.backups) > most:
        console.print(f"  and {len(state.backups) - most} more; --last {len(state.backups)} shows them", style="dim")


def _facts(kept: Kept, now: float) -> str:
    from operations.words import duration

    size = f"{kept.size / 2**20:.1f} MiB"
    return (
        f"{duration(now - kept.time):>7} old  {size:>11}  revision {kept.revision}  {kept.keys} keys  by {kept.member}"
    )


def _drilled(kept: Kept, now: float) -> Text:
    from operations.words import duration

    if kept.tried is None:
        return Text("not tried", "dim")
    ago = f"{duration(now - kept.tried)} ago by drill {(kept.drill or '')[:8]}"
    return Text(f"found good {ago}", "green") if kept.good else Text(f"found bad {ago}: {kept.why}", "red")
