"""`controllers image`, `apply` and `remove`, and `status CLUSTER controllers`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import typer

from cli.actions.holding import hold
from cli.asking import confirm, dry_run_of
from cli.sections import Look, Options, Report
from cli.views import controllers as views
from clients.waiting import wait_until
from cluster.controllers import home
from cluster.fields import unknown
from cluster.load import find_cluster
from cluster.project import ROOT
from cluster.provisioning import reader_secrets
from cluster.spec import Cluster
from cluster.tenancy import secret_names
from controllers.apply import Controllers
from controllers.bookkeeping.bucket import delivered
from controllers.bookkeeping.power import logins
from controllers.gather import files_of, image_of
from controllers.image import build, push, refuse
from controllers.kinds import KINDS, ControllerKind, needed_kinds
from controllers.manifests import Desired
from controllers.tenancy.directory.choose import settings_of
from operations import node_labels, stack

READY_S = 600


def image(to: Path | None, reference: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Build the image, keep it in a folder if one is given, and push it if a reference is given."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = to or Path(temporary) / "image"
        if dry_run:
            refuse(folder)
            views.would_build(to, reference, as_json=as_json)
            return
        digest = build(folder, views.progress(quiet=as_json))
        pushed = push(folder, reference, views.progress(quiet=as_json)) if reference else ""
        views.image_built(to, digest, pushed, as_json=as_json)


def apply(
    cluster: Cluster,
    name: str,
    image: str | None,
    only: tuple[str, ...],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Run the controllers, and wait until they are ready. name: the cluster, as on the command line."""
    kinds = _kinds(only)
    work = _Work(cluster)
    desired = work.desired(name, image, kinds)
    changes = work.controllers.look(desired)
    view = views.View(cluster, quiet=as_json)
    view.show(changes)
    if dry_run:
        view.conclude(desired, changes, made=False)
        return
    if changes and not yes:
        again = f"controllers apply {name}" + (f" --image {image}" if image else "")
        confirm(f"Make {len(changes)} changes in {cluster.name}?", again, see=dry_run_of(again))
    with hold(cluster, work.access, "controllers apply", repeatable=True):
        # Label nodes before pods select the label: what runs stays until its successor has a place.
        work.place(desired.pool, lambda lacking: wait_until(lacking, READY_S, view.wait))
        work.controllers.apply(desired, changes, view.tell)
        wait_until(lambda: work.controllers.missing(desired.kinds), READY_S, view.wait)
    view.conclude(desired, changes, made=True)


def remove(cluster: Cluster, name: str, only: tuple[str, ...], *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete the controllers and their rights. name: the cluster, as on the command line."""
    kinds = _kinds(only) or tuple(KINDS.values())
    work = _Work(cluster)
    changes = work.controllers.to_remove(kinds)
    view = views.View(cluster, quiet=as_json)
    view.show(changes)
    if changes and not dry_run:
        if not yes:
            again = f"controllers remove {name}" + (f" --only {','.join(only)}" if only else "")
            confirm(f"Delete {len(changes)} objects of {cluster.name}?", again, see=dry_run_of(again))
        with hold(cluster, work.access, "controllers remove", repeatable=True):
            work.controllers.remove(changes, view.tell)
    view.removed(changes, made=not dry_run)


def section(cluster: Cluster, folder: Path, options: Options) -> Look:
    """Show the running controllers: image, pods, leader, and what keeps pods from being ready."""
    work = _Work(cluster)

    def look() -> Report:
        states = list(work.controllers.states())
        return Report(views.code(states), views.document(cluster, states), lambda: views.listed(cluster, states))

    return look


class _Work:
    """One cluster's controllers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.access = stack.access_to(cluster)
        self.controllers = Controllers(self.access.api())

    def place(self, pool: str, wait: Callable[[Callable[[], str]], None]) -> None:
        """Label nodes and wait until one is there for the controllers. Errors: raises TimeoutError if none appears in time."""
        api = self.access.api()
        node_labels.publish(self.cluster, api)
        if pool:
            wait(lambda: node_labels.missing(api, pool))

    def desired(self, name: str, image: str | None, named: tuple[ControllerKind, ...]) -> Desired:
        """Return the controllers that the spec wants, or of the named kinds.

        Errors: raises RefusedError if no image is named and no controller runs that has one.
        """
        settings = settings_of(self.cluster)
        ledger = self.cluster.spec.metering
        kinds = named or needed_kinds(settings, metering=ledger is not None)
        chosen = image or image_of(state.image for state in self.controllers.states())
        files = files_of(self.cluster.spec, find_cluster(name, ROOT))
        names = secret_names(settings) if any(kind.directory for kind in kinds) else ()
        secrets = {secret: stack.secret_of(self.cluster, secret) for secret in names}
        bucket = self._bucket() if any(kind.bucket for kind in kinds) else {}
        pool = home(self.cluster) or ""
        taints = self.cluster.spec.pools[pool].taints if pool else ()
        return Desired(chosen, files, settings, kinds, pool, taints, secrets, bucket)

    def _bucket(self) -> Mapping[str, str]:
        """Return the ledger's bucket with its key, and the logins that read machines' power, as pods get them."""
        ledger = self.cluster.spec.metering
        key = stack.secret_of(self.cluster, ledger.key.secret) if ledger and ledger.key else ""
        readers = logins(reader_secrets(self.cluster.spec.sites), lambda name: stack.secret_of(self.cluster, name))
        return {**delivered(self.access, key), **readers}


def _kinds(only: tuple[str, ...]) -> tuple[ControllerKind, ...]:
    if problem := unknown("controller", only, KINDS):
        raise typer.BadParameter(problem, param_hint="--only")
    return tuple(kind for name, kind in KINDS.items() if name in only)
