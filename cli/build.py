"""`up`, `preview` and `destroy`: what they print."""

from __future__ import annotations

import typer
from rich.table import Table

from cli.output import Steps, console, print_json
from cluster.spec import Cluster
from operations import build
from operations.build import Built
from operations.status import Status, read_status


def up(cluster: Cluster, *, yes: bool, as_json: bool) -> None:
    """Run `up`, after showing what is built where."""
    if not yes:
        _introduce(cluster)
        typer.confirm("Go on?", abort=True)
    steps = Steps(build.STEPS, quiet=as_json)
    built = build.up(cluster, steps)
    assert built.access is not None
    status = read_status(cluster, built.access)
    if as_json:
        print_json({**built.to_json(), "seconds": steps.seconds, "status": status.to_json()})
        return
    console.print(f"\n[bold]{cluster.name}[/] is up: {_changes(built)}\n")
    print_status(status)
    kubectl = f'kubectl --kubeconfig "$(./menagerie kubeconfig {cluster.name})"'
    console.print(
        f"\nTry next:\n  ./menagerie verify {cluster.name}     prove that it works, by traffic and by faults\n"
        f"  ./menagerie status {cluster.name}     how it is\n"
        f"  {kubectl} get nodes\n"
        f"  ./menagerie destroy {cluster.name}    take it down",
        markup=False,
    )


def preview(cluster: Cluster, *, as_json: bool) -> None:
    """Run `preview` and say what would change."""
    built = build.preview(cluster, Steps(build.PREVIEW_STEPS, quiet=as_json))
    if as_json:
        print_json(built.to_json())
        return
    console.print(f"{cluster.name}: {_changes(built)}; nothing was touched")
    if built.workers is None:
        console.print("workers: the cluster is not built yet, so there is nothing to compare them with")


def destroy(cluster: Cluster, *, yes: bool, as_json: bool) -> None:
    """Ask for the cluster's name, then delete it."""
    if not yes:
        console.print(f"This deletes the cluster [bold]{cluster.name}[/] with all its data.")
        if typer.prompt("Its name, to go on") != cluster.name:
            raise typer.Abort
    summary = build.destroy(cluster, Steps(build.DESTROY_STEPS, quiet=as_json))
    if as_json:
        print_json({"changes": summary.changes})
    else:
        console.print(f"{cluster.name} is gone: {sum(summary.changes.values())} resources deleted")


def print_status(status: Status) -> None:
    """The status as a table, the endpoint last."""
    table = Table(box=None, show_header=False, pad_edge=False)
    group = ""
    for item in status.items:
        mark = "[green]ok[/]" if item.ok else "[red]not ok[/]"
        table.add_row("" if item.group == group else f"[bold]{item.group}[/]", item.name, mark, item.detail)
        group = item.group
    console.print(table)
    console.print(f"[bold]endpoint[/]  {status.endpoint}")


def _introduce(cluster: Cluster) -> None:
    spec = cluster.spec
    place = f"{spec.control_plane.cloud.value}, region {spec.control_plane.region}"
    console.print(
        f"[bold]{cluster.name}[/]: Kubernetes {spec.kubernetes.version} in {place}; "
        f"{spec.control_plane.api_servers} API-server hosts, etcd main with {spec.etcd.main.members} members, "
        f"events with {spec.etcd.events.members}; {len(cluster.host_list())} machines at sites"
    )


def _changes(built: Built) -> str:
    if not built.changed:
        return "nothing to change"
    stack = ", ".join(f"{count} {name}" for name, count in sorted(built.stack.changes.items()))
    workers = f"; workers: {built.workers.changed} changed tasks" if built.workers else ""
    return f"resources: {stack}{workers}"
