"""`state move`: where a stack's state is kept."""

from __future__ import annotations

from dataclasses import asdict

from cli.actions.holding import hold
from cli.asking import confirm, dry_run_of, refuse_unasked
from cli.output import console, note, print_json
from cluster.spec import Cluster
from operations import state_move


def move(cluster: Cluster, source: str, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Ask, then move the stack to the configured backend."""
    again = f"state move {cluster.name}{f' --from {source}' if source else ''}"
    if not (yes or dry_run):
        refuse_unasked(again, see=dry_run_of(again), as_json=as_json)
    planned = state_move.plan(cluster, source, note)
    if not (yes or dry_run):
        confirm(f"Move {_words(cluster, planned)}?", again)
    done = planned if dry_run else state_move.move(cluster, source, _holding(cluster, source), note)
    if as_json:
        print_json({"moved": not dry_run, **asdict(done), "copy": str(done.copy) if done.copy else None})
    elif dry_run:
        console.print(f"would move {_words(cluster, done)}; nothing was changed", markup=False)
    else:
        console.print(f"moved {_words(cluster, done)}; the state before the move is in {done.copy}", markup=False)


def _holding(cluster: Cluster, source: str) -> state_move.Hold:
    about = f"--from {source}" if source else ""
    return lambda access: hold(cluster, access, "state move", options=about, repeatable=True)


def _words(cluster: Cluster, move: state_move.StackMove) -> str:
    return f"the state of {cluster.name} ({move.resources} resources) from {move.source} to {move.target}"
