"""`status CLUSTER operations` and `unlock`: who works on a cluster, and how to release an abandoned operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from cli import exits
from cli.asking import confirm, dry_run_of, refuse_unasked
from cli.output import console, print_json
from cli.sections import Look, Options, Report
from clients.access import Access
from cluster.spec import Cluster
from operations import stack
from operations.record import Ledger, read_ledger
from operations.record import unlock as free
from operations.record.model import RESULTS, Record, ago

_COLOURS = {"done": "green", "failed": "red"}
_LAST = 10


def section(cluster: Cluster, folder: Path, options: Options) -> Look:
    """Show the current and past operations. A verb that changes a cluster locks it for all machines."""
    access = stack.access_if_built(cluster)

    def look() -> Report:
        ledger = read_ledger(cluster.name, access, _LAST if options.last is None else options.last)
        return Report(exits.DONE, document(ledger), lambda: _show(ledger))

    return look


def unlock(cluster: Cluster, operation: str, *, take_over: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Ask, then release the cluster from the operation with this ID."""
    access = stack.access_if_built(cluster)
    if not (yes or dry_run):
        _confirm(cluster, access, operation, as_json=as_json)
    freed = free(cluster.name, access, operation, take_over=take_over, dry_run=dry_run)
    if as_json:
        print_json({"would_unlock" if dry_run else "unlocked": freed.model_dump(mode="json")})
        return
    done = ", ".join(step.name for step in freed.steps) or "no step"
    result = f"would release {cluster.name}" if dry_run else f"{cluster.name} is released"
    console.print(f'{result}; "{freed.what}" of {freed.holder.who} had completed: {done}', markup=False)


def _confirm(cluster: Cluster, access: Access | None, operation: str, *, as_json: bool) -> None:
    again = f"unlock {cluster.name} --operation {operation}"
    refuse_unasked(again, see=dry_run_of(again), as_json=as_json)
    ledger = read_ledger(cluster.name, access, 0)
    if ledger.current and ledger.current.id == operation:
        _show(ledger)
    confirm(f"Release {cluster.name} from this operation?", again)


def document(ledger: Ledger) -> dict[str, Any]:
    """Return the ledger as a JSON document. state: idle, running, or `cut short`."""
    current = ledger.current
    return {
        "where": ledger.where,
        "state": "idle" if current is None else "running" if ledger.lives else "cut short",
        "current": current.model_dump(mode="json") if current else None,
        "silent_s": round(ledger.silent_s),
        "past": [record.model_dump(mode="json") for record in ledger.past],
    }


def _show(ledger: Ledger) -> None:
    if ledger.current is None:
        console.print(f"no operation is running ({ledger.where})", markup=False)
    else:
        current = ledger.current
        state = "held by" if ledger.lives else "interrupted run of"
        console.print(
            f"{state} {current.held_by}, last heard of {ago(ledger.silent_s)}; operation {current.id}", markup=False
        )
        for step in current.steps:
            facts = " ".join(f"{name}={value}" for name, value in step.facts.items())
            console.print(f"  {step.at:%H:%M:%S} done: {step.name} {facts}".rstrip(), markup=False)
        if not ledger.lives:
            console.print(f"  to continue it: {current.command}", markup=False)
            console.print(f"  to release the cluster: ./menagerie unlock {current.cluster} --operation {current.id}")
    width = max((len(record.what) for record in ledger.past), default=0)
    for record in ledger.past:
        console.print(_line(record, width))


def _line(record: Record, width: int) -> Text:
    took = f"{(record.ended - record.since).total_seconds():.0f} s" if record.ended else ""
    error = f"  {record.error.splitlines()[0]}" if record.error else ""
    colour = _COLOURS.get(record.result, "yellow")
    return Text.assemble(
        f"{record.since:%Y-%m-%d %H:%M} UTC  {record.what:<{width}}  {record.holder.who}  ",
        (RESULTS.get(record.result, record.result), colour),
        (f"  {took}{error}", "dim"),
    )
