"""`operations` and `unlock`: who does what to a cluster, what was done, and the way out of what nobody goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from cli.asking import confirm, refuse_unasked
from cli.options import ClusterArg, JsonOpt, SureOpt, examples
from cli.output import console, print_json
from cli.specs import checked

if TYPE_CHECKING:
    from clients.access import Access
    from cluster.spec import Cluster
    from operations.record import Ledger
    from operations.record.model import Record

EXAMPLES = examples(
    ("operations lab", "now, and the last 10"),
    ("operations lab --last 100", "further back"),
    ("operations lab --json", "with every step"),
)
UNLOCK_EXAMPLES = examples(
    ("unlock lab --operation ID", "one that was cut short"),
    ("unlock lab --operation ID --take-over", "one that lives"),
)
_COLOURS = {"done": "green", "failed": "red"}


def operations(
    cluster: ClusterArg,
    last: Annotated[int, typer.Option("--last", metavar="N", min=0, help="How many of the past.")] = 10,
    as_json: JsonOpt = False,
) -> None:
    """Show who works on a cluster now, and who did what to it when. Reads only.

    Verbs that change a cluster keep others out while they run, from any machine.
    docs/how-to/operations.md has more.
    """
    from operations.record import read_ledger

    one = checked(cluster)
    found = read_ledger(one.name, _access(one), last)
    if as_json:
        print_json(document(found))
    else:
        _show(found)


def unlock(
    cluster: ClusterArg,
    operation: Annotated[str, typer.Option("--operation", metavar="ID", help="Which, as `operations` shows it.")],
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Also while it seems to live: it notices, and stops where it is.")
    ] = False,
    yes: SureOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Free a cluster of an operation that nobody will go on with.

    Nothing of what it did is undone: see first what it left half done. To go on
    with it instead, run the same verb again.
    """
    from operations.record import unlock as free

    one = checked(cluster)
    access = _access(one)
    if not yes:
        _confirm(one, access, operation, as_json=as_json)
    freed = free(one.name, access, operation, take_over=take_over)
    if as_json:
        print_json({"unlocked": freed.model_dump(mode="json")})
        return
    done = ", ".join(step.name for step in freed.steps) or "no step"
    console.print(f'{one.name} is free; "{freed.what}" of {freed.holder.who} had done: {done}', markup=False)


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
    refuse_unasked(again, as_json=as_json)
    found = read_ledger(cluster.name, access, 0)
    if found.current and found.current.id == operation:
        _show(found)
    confirm(f"Free {cluster.name} of it?", again)


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
            console.print(f"  or free the cluster of it: ./menagerie unlock {now.cluster} --operation {now.id}")
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
