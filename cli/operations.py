"""`status CLUSTER operations` and `unlock`: who does what to a cluster, and the way out of an abandoned operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from cli import exits
from cli.asking import confirm, dry_run_of, refuse_unasked
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples
from cli.output import console, print_json
from cli.specs import checked
from cli.status import Asked, Look, Looked

if TYPE_CHECKING:
    from clients.access import Access
    from cluster.spec import Cluster
    from operations.record import Ledger
    from operations.record.model import Record

_COLOURS = {"done": "green", "failed": "red"}
_LAST = 10


def section(cluster: str, asked: Asked) -> Look:
    """Verbs that change a cluster keep others out while they run, from any machine."""
    one = checked(cluster)
    from operations.record import read_ledger

    access = _access(one)

    def look() -> Looked:
        found = read_ledger(one.name, access, _LAST if asked.last is None else asked.last)
        return Looked(exits.DONE, document(found), lambda: _show(found))

    return look


@examples(
    ("unlock lab --operation ID --dry-run", "what had it done?"),
    ("unlock lab --operation ID", "an interrupted one; asks"),
    ("unlock lab --operation ID --take-over", "one that is alive"),
)
def unlock(
    cluster: ClusterArg,
    operation: Annotated[
        str, typer.Option("--operation", metavar="ID", help="Which, as `status CLUSTER operations` shows it.")
    ],
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Also while it seems to be alive: it notices, and stops where it is.")
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Release a cluster from an abandoned operation.

    Nothing that the operation did is undone: first check what it left unfinished.
    To finish it instead, run the same verb again. With --json, --yes is needed too.
    """
    one = checked(cluster)
    from operations.record import unlock as free

    access = _access(one)
    if not (yes or dry_run):
        _confirm(one, access, operation, as_json=as_json)
    freed = free(one.name, access, operation, take_over=take_over, dry_run=dry_run)
    if as_json:
        print_json({"would_unlock" if dry_run else "unlocked": freed.model_dump(mode="json")})
        return
    done = ", ".join(step.name for step in freed.steps) or "no step"
    told = f"would release {one.name}" if dry_run else f"{one.name} is free"
    console.print(f'{told}; "{freed.what}" of {freed.holder.who} had done: {done}', markup=False)


def _access(cluster: Cluster) -> Access | None:
    """None for a cluster that is not built: what this checkout knows of it is all there is."""
    from clients.access import NotBuiltError
    from operations.stack import access_to

    try:
        return access_to(cluster)
    except NotBuiltError:
        return None


def _confirm(cluster: Cluster, access: Access | None, operation: str, *, as_json: bool) -> None:
    from operations.record import read_ledger

    again = f"unlock {cluster.name} --operation {operation}"
    refuse_unasked(again, see=dry_run_of(again), as_json=as_json)
    found = read_ledger(cluster.name, access, 0)
    if found.current and found.current.id == operation:
        _show(found)
    confirm(f"Release {cluster.name} from it?", again)


def document(found: Ledger) -> dict[str, Any]:
    """The ledger as JSON. state: idle, running, or cut short."""
    now = found.current
    return {
        "where": found.where,
        "state": "idle" if now is None else "running" if found.lives else "cut short",
        "current": now.model_dump(mode="json") if now else None,
        "silent_s": round(found.silent_s),
        "past": [record.model_dump(mode="json") for record in found.past],
    }


def _show(found: Ledger) -> None:
    from operations.record.model import ago

    if found.current is None:
        console.print(f"nobody works on it ({found.where})", markup=False)
    else:
        now = found.current
        state = "held" if found.lives else "cut short"
        console.print(
            f"{state} by {now.held_by}, last heard of {ago(found.silent_s)}; operation {now.id}", markup=False
        )
        for step in now.steps:
            facts = " ".join(f"{name}={value}" for name, value in step.facts.items())
            console.print(f"  {step.at:%H:%M:%S} done: {step.name} {facts}".rstrip(), markup=False)
        if not found.lives:
            console.print(f"  go on with it: {now.command}", markup=False)
            console.print(f"  or release the cluster: ./menagerie unlock {now.cluster} --operation {now.id}")
    width = max((len(record.what) for record in found.past), default=0)
    for record in found.past:
        console.print(_line(record, width))


def _line(record: Record, width: int) -> Text:
    took = f"{(record.ended - record.since).total_seconds():.0f} s" if record.ended else ""
    told = f"  {record.error.splitlines()[0]}" if record.error else ""
    colour = _COLOURS.get(record.result, "yellow")
    return Text.assemble(
        f"{record.since:%Y-%m-%d %H:%M} UTC  {record.what:<{width}}  {record.holder.who}  ",
        (record.result, colour),
        (f"  {took}{told}", "dim"),
    )
