"""`tenancy sync`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, WatchOpt, YesOpt
from cli.specs import checked, cluster_folder


@examples(
    ("tenancy sync jaguar --dry-run", "show who joins and leaves"),
    ("tenancy sync jaguar", "ask, then make the changes"),
    ("tenancy sync jaguar --accept-loss", "many people really left"),
    ("tenancy sync jaguar --watch 60 --yes", "as a service"),
    ("tenancy sync jaguar --hosts --dry-run", "which hosts move, and why"),
    ("tenancy sync jaguar --hosts --evict", "evict pods in the way"),
    ("tenancy sync jaguar --hosts --watch 30 --yes", "as a service"),
)
@holds()
def sync(
    cluster: ClusterArg,
    hosts: Annotated[
        bool,
        typer.Option(
            "--hosts", help="Assign hosts to teams, as in tenancy.allocations, instead of syncing namespaces."
        ),
    ] = False,
    evict: Annotated[
        bool,
        typer.Option("--evict", help="With --hosts: evict the pods that moves wait for, within disruption budgets."),
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Continue even if tenancy.refuse_loss or more would be lost.")
    ] = False,
    watch: WatchOpt = None,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Sync namespaces, rights and quotas with the directory in the spec; with --hosts, hosts with teams.

    Each person and each team has a namespace. A namespace is frozen when its
    owner leaves: no rights, no new pods, nothing deleted. Its owner finds it
    unchanged after a return. What others added to namespaces stays. A directory
    that does not answer, is empty, or lost many entries at once is not trusted,
    and nothing changes.

    --hosts: a team's host has the label and taint openai.com/team. The API server
    gives pods the toleration of their namespace's team, and rejects other teams'
    tolerations. Idle hosts move first. A busy host is closed to others and moves
    when its pods end; nothing is evicted without --evict. Does not read the
    directory: sync it first.

    Idempotent: a second run changes nothing. --watch is a service on this
    machine, needs --yes, and exits with 3 if another watches; `controllers apply`
    runs it in the cluster.

    Exit code 1 if it was refused, or somebody has to decide about an allocation.
    """
    if watch and not (yes or as_json or dry_run):
        raise typer.BadParameter("--watch cannot ask: add --yes")
    if watch and accept_loss:
        raise typer.BadParameter("--accept-loss is for a single run: remove --watch")
    if evict and not hosts:
        raise typer.BadParameter("--evict needs --hosts")
    loaded = checked(cluster)
    from cli.actions import tenancy, tenancy_capacity

    if hosts:
        tenancy_capacity.sync(
            loaded,
            cluster,
            watch,
            accept_loss=accept_loss,
            evict=evict,
            dry_run=dry_run,
            yes=yes or as_json,
            as_json=as_json,
        )
    else:
        tenancy.sync(
            loaded,
            cluster_folder(cluster),
            watch,
            accept_loss=accept_loss,
            dry_run=dry_run,
            yes=yes or as_json,
            as_json=as_json,
        )
