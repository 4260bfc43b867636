"""`tenancy sync` and `tenancy show`: what they take, and their rounds. What they print is in `cli.tenancy_view`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli.options import ClusterArg, JsonOpt, examples
from cli.output import errors, note
from cli.rounds import without_end
from cli.specs import checked
from cli.tenancy_capacity import EPILOG, capacity, capacity_of
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

app = typer.Typer(
    help="People and teams: a namespace for each, in step with a directory. docs/how-to/teams.md explains it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog=examples(
        ("tenancy sync jaguar --dry-run", "who comes, who goes, every change and why"),
        ("tenancy sync jaguar", "make the changes; asks"),
        ("tenancy sync jaguar --accept-loss", "a site was closed: they have left"),
        ("tenancy sync jaguar --watch 60 --yes", "as a service"),
    )
)
def sync(
    cluster: ClusterArg,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look, say what would change, change nothing.")] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Believe the directory although tenancy.refuse_loss or more of it has gone."
        ),
    ] = False,
    watch: Annotated[
        int | None, typer.Option("--watch", metavar="SECONDS", min=1, help="Again and again, with so long between.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask; for scripts, and needed with --watch. --json does not ask.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Keep namespaces, rights and quotas in step with the directory of the spec.

    Each person and each team has a namespace. Who has left is frozen: no rights,
    no new pods, nothing deleted; who returns finds everything as it was. What
    others added to namespaces stays. A directory that does not answer, holds
    nobody or has lost much at once is not believed, and nothing is changed.
    Safe to interrupt: run it again. A second run changes nothing.
    --watch is a service on this machine; controllers apply runs one in the cluster.
    Exit 1 when it was refused, or a namespace could not be kept in step; with
    --watch, 3 when another watches.
    """
    if watch and not (yes or as_json or dry_run):
        raise typer.BadParameter("--watch asks nobody: add --yes")
    if watch and accept_loss:
        raise typer.BadParameter("--accept-loss is for one run: without --watch")
    work = _Work(checked(cluster), cluster, dry_run=dry_run, yes=yes or as_json, as_json=as_json)
    if watch:
        without_end(work.round, watch, work.lease())
    raise typer.Exit(work.round(accept_loss=accept_loss))


@app.command(
    epilog=examples(
        ("tenancy show jaguar", "whose namespaces there are"), ("tenancy show jaguar --json", "for a program")
    )
)
def show(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """List people's and teams' namespaces: who is in them, which are frozen and since when. Changes nothing.

    With allocations also who has which hosts, which change hands, and who borrows.
    """
    from cli import tenancy_view

    work = _Work(checked(cluster), cluster, dry_run=True, yes=True, as_json=as_json)
    found = work.sync.look(accept_loss=True)
    tenancy_view.listed(work.cluster, work.directory.name, found, work.hosts(), as_json=as_json)


app.command(epilog=EPILOG)(capacity)


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
        from operations.record import one_operation

        about = "--accept-loss" if accept_loss else ""
        if not found.plan.changes:
            return self.sync.apply(found)  # at most the sizes are written down
        with one_operation(self.cluster, self._access, "tenancy sync", about, repeatable=True, report=note):
            return self.sync.apply(found, view.tell)


def _folder(name: str) -> Path:
    from cluster.load import find_cluster

    return find_cluster(name, ROOT).parent
