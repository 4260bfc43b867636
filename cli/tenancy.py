"""`tenancy sync`, and `status CLUSTER tenancy`: what they take, and their rounds. What they print is in `cli.tenancy_view`.

Rounds over hosts are in `cli.tenancy_capacity`.
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
from cli.status import Asked, Look, Looked
from cli.tenancy_capacity import Hosts, capacity_of
from cluster.project import ROOT

if TYPE_CHECKING:
    from cli.tenancy_view import View
    from clients.access import Access
    from clients.lease import Lease
    from cluster.spec import Cluster
    from cluster.tenancy import Tenancy
    from controllers.tenancy.capacity.run import Found as HostsFound
    from controllers.tenancy.directory import Directory
    from controllers.tenancy.sync.run import Applied, Found, Sync


class _Rounds(Protocol):
    def lease(self) -> Lease | None: ...

    def round(self, *, accept_loss: bool = False) -> int: ...


@examples(
    ("tenancy sync jaguar --dry-run", "who joins, who leaves"),
    ("tenancy sync jaguar", "make the changes; asks"),
    ("tenancy sync jaguar --accept-loss", "a site was closed"),
    ("tenancy sync jaguar --watch 60 --yes", "as a service"),
    ("tenancy sync jaguar --hosts --dry-run", "which hosts move, and why"),
    ("tenancy sync jaguar --hosts --evict", "also end what moves wait for"),
    ("tenancy sync jaguar --hosts --watch 30 --yes", "as a service"),
)
@holds()
def sync(
    cluster: ClusterArg,
    hosts: Annotated[
        bool, typer.Option("--hosts", help="Assign hosts as tenancy.allocations says, in place of namespaces.")
    ] = False,
    evict: Annotated[
        bool, typer.Option("--evict", help="With --hosts: evict the pods that moves wait for, as their budgets allow.")
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Continue although tenancy.refuse_loss or more would be lost.")
    ] = False,
    watch: WatchOpt = None,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Sync namespaces, rights and quotas with the directory in the spec; with --hosts, hosts with teams.

    Each person and each team has a namespace. Somebody who left is frozen: no rights,
    no new pods, nothing deleted. Somebody who returns finds everything as it was.
    What others added to namespaces stays. A directory that does not answer, is
    empty, or lost much at once is not trusted, and nothing changes.

    --hosts: a team's host has the label and taint openai.com/team. The API server gives
    pods the toleration of their namespace's team, and rejects that of another. Idle
    hosts move first. A busy host is closed to others and moves when its pods end;
    nothing is evicted without --evict. Does not read the directory: sync it first.

    Idempotent: a second run changes nothing. --watch is a service on this machine, needs
    --yes, and exits with 3 if another watches; `controllers apply` runs it in the cluster.
    Exit code 1 if it was refused, or somebody has to decide about an allocation.
    """
    if watch and not (yes or as_json or dry_run):
        raise typer.BadParameter("--watch asks nobody: add --yes")
    if watch and accept_loss:
        raise typer.BadParameter("--accept-loss is for one run: without --watch")
    if evict and not hosts:
        raise typer.BadParameter("--evict is for --hosts")
    asks_nobody = yes or as_json
    work: _Rounds = (
        Hosts(cluster, dry_run=dry_run, evict=evict, yes=asks_nobody, as_json=as_json)
        if hosts
        else _Work(checked(cluster), cluster, dry_run=dry_run, yes=asks_nobody, as_json=as_json)
    )
    if watch:
        without_end(work.round, watch, work.lease())
    raise typer.Exit(work.round(accept_loss=accept_loss))


def section(cluster: str, asked: Asked) -> Look:
    """People's and teams' namespaces: who is in them, which are frozen; with allocations also who has which hosts."""
    one = checked(cluster)
    from cli import tenancy_view

    work = _Work(one, cluster, dry_run=True, yes=True, as_json=False)

    def look() -> Looked:
        found, hosts = work.sync.look(accept_loss=True), work.hosts()
        seen = (work.cluster, work.directory.name, found, hosts)
        return Looked(exits.DONE, tenancy_view.document(*seen), lambda: tenancy_view.listed(*seen))

    return look


class _Work:
    """One cluster's directory, as often as it is asked for."""

    def __init__(self, cluster: Cluster, given: str, *, dry_run: bool, yes: bool, as_json: bool) -> None:
        from functools import partial

        from controllers.tenancy.directory.choose import directory_of, settings_of
        from controllers.tenancy.sync.run import Sync
        from operations import stack

        self.cluster = cluster
        self._dry_run, self._yes, self._as_json = dry_run, yes, as_json
        self._access: Access = stack.access_to(cluster)
        self._settings: Tenancy = settings_of(cluster)
        self.directory: Directory = directory_of(self._settings, _folder(given), partial(stack.secret_of, cluster))
        self.sync: Sync = Sync(self._access, self.directory, self._settings)

    def lease(self) -> Lease | None:
        """Of whoever does this again and again; None of a dry run."""
        from clients.lease import Lease, this_process
        from controllers.tenancy.sync.run import LEASE

        return None if self._dry_run else Lease(self._access.api(), LEASE, this_process())

    def hosts(self) -> HostsFound | None:
        """Whose hosts are whose; None where the spec allocates none."""
        if not self._settings.allocations:
            return None
        from controllers.tenancy.directory.model import NoPoliciesError

        try:
            return capacity_of(self.cluster, self._access).look(accept_loss=True)
        except NoPoliciesError as error:
            errors.print(Text(str(error), style="yellow"))
            return None

    def round(self, *, accept_loss: bool = False) -> int:
        """Look, and change what may be changed; an exit code."""
        from cli import tenancy_view
        from controllers.tenancy.sync.run import Applied

        view = tenancy_view.View(self.cluster, self.directory.name, quiet=self._as_json)
        found = self.sync.look(accept_loss=accept_loss)
        view.show(found, accept_loss=accept_loss)
        applied = Applied()
        if not found.refused and not self._dry_run:
            if found.plan.changes and not self._yes:
                view.confirm(found)
            applied = self._apply(found, view, accept_loss=accept_loss)
        return view.conclude(found, applied, dry_run=self._dry_run)

    def _apply(self, found: Found, view: View, *, accept_loss: bool) -> Applied:
        about = "--accept-loss" if accept_loss else ""
        if not found.plan.changes:
            return self.sync.apply(found)  # at most the sizes are written down
        with hold(self.cluster, self._access, "tenancy sync", about, repeatable=True):
            return self.sync.apply(found, view.tell)


def _folder(name: str) -> Path:
    from cluster.load import find_cluster

    return find_cluster(name, ROOT).parent
