"""`tenancy sync`, and `status CLUSTER tenancy`: their arguments and rounds. `cli.tenancy_view` prints.

Rounds for hosts are in `cli.tenancy_capacity`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from rich.text import Text

from cli import exits
from cli.holding import hold, holds
from cli.options import ClusterArg, DryOpt, JsonOpt, WatchOpt, YesOpt, examples
from cli.output import errors
from cli.rounds import without_end
from cli.specs import checked
from cli.status import Look, Options, Report
from cli.tenancy_capacity import Hosts, capacity_of
from cluster.project import ROOT

if TYPE_CHECKING:
    from cli.tenancy_view import View
    from clients.access import Access
    from clients.lease import Lease
    from cluster.spec import Cluster
    from cluster.tenancy import Tenancy
    from controllers.tenancy.capacity.run import CapacityReview as HostsFound
    from controllers.tenancy.directory import Directory
    from controllers.tenancy.sync.run import Applied, Sync, SyncReview


class _Rounds(Protocol):
    def lease(self) -> Lease | None: ...

    def round(self, *, accept_loss: bool = False) -> int: ...


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
    asks_nobody = yes or as_json
    work: _Rounds = (
        Hosts(cluster, dry_run=dry_run, evict=evict, yes=asks_nobody, as_json=as_json)
        if hosts
        else _Work(checked(cluster), cluster, dry_run=dry_run, yes=asks_nobody, as_json=as_json)
    )
    if watch:
        without_end(work.round, watch, work.lease())
    raise typer.Exit(work.round(accept_loss=accept_loss))


def section(cluster: str, options: Options) -> Look:
    """Show namespaces of people and teams: members, which are frozen; with allocations, also each team's hosts."""
    loaded = checked(cluster)
    from cli import tenancy_view

    work = _Work(loaded, cluster, dry_run=True, yes=True, as_json=False)

    def look() -> Report:
        result, hosts = work.sync.look(accept_loss=True), work.hosts()
        arguments = (work.cluster, work.directory.name, result, hosts)
        return Report(exits.DONE, tenancy_view.document(*arguments), lambda: tenancy_view.listed(*arguments))

    return look


class _Work:
    """One cluster's directory, in one round or many."""

    def __init__(self, cluster: Cluster, name: str, *, dry_run: bool, yes: bool, as_json: bool) -> None:
        from functools import partial

        from controllers.tenancy.directory.choose import directory_of, settings_of
        from controllers.tenancy.sync.run import Sync
        from operations import stack

        self.cluster = cluster
        self._dry_run, self._yes, self._as_json = dry_run, yes, as_json
        self._access: Access = stack.access_to(cluster)
        self._settings: Tenancy = settings_of(cluster)
        self.directory: Directory = directory_of(cluster, _folder(name), partial(stack.secret_of, cluster))
        self.sync: Sync = Sync(self._access, self.directory, self._settings)

    def lease(self) -> Lease | None:
        """Return the Lease of a service; None for a dry run."""
        from clients.lease import Lease, this_process
        from controllers.tenancy.sync.run import LEASE

        return None if self._dry_run else Lease(self._access.api(), LEASE, this_process())

    def hosts(self) -> HostsFound | None:
        """Return each team's hosts; None if the spec has no allocations."""
        if not self._settings.allocations:
            return None
        from controllers.tenancy.directory.model import NoPoliciesError

        try:
            return capacity_of(self.cluster, self._access).look(accept_loss=True)
        except NoPoliciesError as error:
            errors.print(Text(str(error), style="yellow"))
            return None

    def round(self, *, accept_loss: bool = False) -> int:
        """Look, change what may change, and return an exit code."""
        from cli import tenancy_view
        from controllers.tenancy.sync.run import Applied

        view = tenancy_view.View(self.cluster, self.directory.name, quiet=self._as_json)
        result = self.sync.look(accept_loss=accept_loss)
        view.show(result, accept_loss=accept_loss)
        applied = Applied()
        if not result.refused and not self._dry_run:
            if result.plan.changes and not self._yes:
                view.confirm(result)
            applied = self._apply(result, view, accept_loss=accept_loss)
        return view.conclude(result, applied, dry_run=self._dry_run)

    def _apply(self, result: SyncReview, view: View, *, accept_loss: bool) -> Applied:
        about = "--accept-loss" if accept_loss else ""
        if not result.plan.changes:
            return self.sync.apply(result)  # records sizes at most
        with hold(self.cluster, self._access, "tenancy sync", about, repeatable=True):
            return self.sync.apply(result, view.tell)


def _folder(name: str) -> Path:
    from cluster.load import find_cluster

    return find_cluster(name, ROOT).parent
