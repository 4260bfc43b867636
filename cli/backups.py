"""`etcd backups`: what backups there are, and which of them a drill found good."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli import exits
from cli.options import ClusterArg, JsonOpt, examples
from cli.output import Steps, console, print_json
from cli.specs import checked

if TYPE_CHECKING:
    from operations.backups import Kept, State

EXAMPLES = examples(
    ("etcd backups jaguar", "the newest of both etcds"),
    ("etcd backups jaguar main --all", "every one of main"),
    ("etcd backups jaguar --json", "for a machine, every one"),
)
MAKE_EXAMPLES = examples(("etcd backup jaguar", "of both, now"), ("etcd backup jaguar main", "before something risky"))
RoleArg = Annotated[str | None, typer.Argument(metavar="[ROLE]", help="main or events; both without one.")]
_SHOWN = 10


def backups(
    cluster: ClusterArg,
    role: RoleArg = None,
    all_: Annotated[bool, typer.Option("--all", help=f"Every backup, not only the newest {_SHOWN}.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """List backups of the etcds: age, size, revision, keys, and what a drill of each found.

    Reads the bucket with your own right to it. Exit 1 unless the newest backup that
    a drill found good is young enough: twice the interval of backups, and the time
    between two drills. docs/how-to/backups.md explains it.
    """
    from operations.backups import read_states
    from operations.stack import access_to

    one = checked(cluster)
    now = time.time()
    states = read_states(one, access_to(one), role, now)
    ok = all(state.ok for state in states)
    if as_json:
        print_json({"cluster": one.name, "ok": ok, "etcds": [state.to_json() for state in states]})
    else:
        for state in states:
            _print(state, now, None if all_ else _SHOWN)
    raise typer.Exit(exits.DONE if ok else exits.FAILED)


def backup(cluster: ClusterArg, role: RoleArg = None, as_json: JsonOpt = False) -> None:
    """Have a backup made now, of both etcds or one, and wait until the bucket has it.

    A member's host makes it, as it does by itself once an interval. A drill tries it at
    its own time.
    """
    from operations.backups import make
    from operations.stack import access_to

    one = checked(cluster)
    steps = Steps(("cluster", "backup"), quiet=as_json)
    with steps.step("cluster"):
        access = access_to(one, steps.detail)
    with steps.step("backup"):
        made = make(one, access, role, steps.detail)
    if as_json:
        print_json({"cluster": one.name, "made": {etcd: kept.to_json() for etcd, kept in made.items()}})
        return
    now = time.time()
    for etcd, kept in made.items():
        console.print(f"etcd {etcd}  {kept.id[:8]}  {_facts(kept, now)}", markup=False)


def _print(state: State, now: float, most: int | None) -> None:
    mark = ("ok", "green") if state.ok else ("not ok", "red")
    console.print(Text.assemble((f"etcd {state.etcd}  ", "bold"), mark, f"  {state.told}"))
    for kept in state.backups[:most]:
        console.print(Text.assemble(f"  {kept.id[:8]}  ", _facts(kept, now), "  ", _drilled(kept, now)))
    if most and len(state.backups) > most:
        console.print(f"  and {len(state.backups) - most} more; --all shows them", style="dim")


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
