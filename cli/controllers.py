"""`controllers`: their image, and what runs in the cluster. `cli.controllers_view` prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.asking import confirm, dry_run_of
from cli.holding import hold, holds
from cli.options import ClusterArg, DryOpt, JsonOpt, OnlyOpt, OutputOpt, YesOpt, examples, folder_of, words
from cli.specs import checked
from cli.status import Look, Options, Report
from cluster.project import ROOT

if TYPE_CHECKING:
    from clients.access import Access
    from cluster.spec import Cluster
    from controllers.apply import Controllers
    from controllers.kinds import ControllerKind
    from controllers.manifests import Desired

READY_S = 600


@examples(
    ("controllers image --output image", "write an OCI image layout"),
    ("controllers image --push registry.example.org/menagerie:1", ""),
)
def image(
    output: OutputOpt = None,
    push: Annotated[
        str | None, typer.Option("--push", metavar="REFERENCE", help="Push the image to registry/repository:tag.")
    ] = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Build the image of the controllers. Needs neither Docker nor root.

    The image has Debian's Python and what the controllers import. The build is
    reproducible from the same checkout and packages. Debian's packages are the
    newest in this machine's apt sources: build again for security updates.
    --output keeps the image in a folder. --push uses the logins in Docker's
    configuration file.
    """
    import tempfile

    from cli import controllers_view
    from controllers.image import build, refuse
    from controllers.image import push as pushed

    if not (output or push):
        raise typer.BadParameter("give --output FOLDER or --push REFERENCE")
    to = folder_of(output) if output else None
    with tempfile.TemporaryDirectory() as temporary:
        folder = to or Path(temporary) / "image"
        if dry_run:
            refuse(folder)
            controllers_view.would_build(to, push, as_json=as_json)
            return
        digest = build(folder, controllers_view.progress(quiet=as_json))
        reference = pushed(folder, push, controllers_view.progress(quiet=as_json)) if push else ""
        controllers_view.image_built(to, digest, reference, as_json=as_json)


@examples(
    ("controllers apply jaguar --image REFERENCE --dry-run", "only show"),
    ("controllers apply jaguar --image REFERENCE", "ask, apply, wait"),
    ("controllers apply jaguar", "after a change of the spec"),
)
@holds()
def apply(
    cluster: ClusterArg,
    image: Annotated[
        str | None,
        typer.Option(
            "--image", metavar="REFERENCE", help="As printed by `controllers image --push`. Default: the running one."
        ),
    ] = None,
    only: OnlyOpt = None,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Run the controllers in the cluster, with the spec, its files and the directory's password.

    Each controller has two pods on separate hosts: one leads, the other takes
    over if it fails. Their rights cover only what a round needs, in namespaces of
    people and teams. After a change of the spec or of the directory's file, run
    this again: the pods roll one by one.

    Idempotent: a second run changes nothing. Exit code 1, with the reason, if
    they are not ready within ten minutes.
    """
    loaded = checked(cluster)
    from cli import controllers_view
    from clients.waiting import wait_until

    kinds = _named(words(only))
    work = _Work(loaded)
    desired = work.desired(cluster, image, kinds)
    changes = work.controllers.look(desired)
    view = controllers_view.View(work.cluster, quiet=as_json)
    view.show(changes)
    if dry_run:
        view.conclude(desired, changes, made=False)
        return
    if changes and not (yes or as_json):
        again = f"controllers apply {cluster}" + (f" --image {image}" if image else "")
        confirm(f"Make {len(changes)} changes in {work.cluster.name}?", again, see=dry_run_of(again))
    with hold(work.cluster, work.access, "controllers apply", repeatable=True):
        # Label nodes before pods select the label: what runs stays until its successor has a place.
        work.place(desired.pool, lambda lacking: wait_until(lacking, READY_S, view.wait))
        work.controllers.apply(desired, changes, view.tell)
        wait_until(lambda: work.controllers.missing(desired.kinds), READY_S, view.wait)
    view.conclude(desired, changes, made=True)


def section(cluster: str, options: Options) -> Look:
    """Show the running controllers: image, pods, leader, and what keeps pods from being ready."""
    loaded = checked(cluster)
    from cli import controllers_view

    work = _Work(loaded)

    def look() -> Report:
        states = list(work.controllers.states())
        document = controllers_view.document(work.cluster, states)
        return Report(controllers_view.code(states), document, lambda: controllers_view.listed(work.cluster, states))

    return look


@examples(
    ("controllers remove jaguar --dry-run", "show what would be deleted"),
    ("controllers remove jaguar", "asks first; namespaces stay"),
    ("controllers remove jaguar --only tenancy-capacity", "only one"),
)
@holds()
def remove(
    cluster: ClusterArg, only: OnlyOpt = None, dry_run: DryOpt = False, yes: YesOpt = False, as_json: JsonOpt = False
) -> None:
    """Remove the controllers and their rights from the cluster.

    Namespaces, hosts' teams and tenancy's admission policies stay, but nothing
    reconciles them any longer. Idempotent.
    """
    loaded = checked(cluster)
    from cli import controllers_view
    from controllers.kinds import KINDS

    kinds = _named(words(only)) or tuple(KINDS.values())
    work = _Work(loaded)
    changes = work.controllers.to_remove(kinds)
    view = controllers_view.View(work.cluster, quiet=as_json)
    view.show(changes)
    if changes and not dry_run:
        if not (yes or as_json):
            again = f"controllers remove {cluster}" + (f" --only {','.join(words(only))}" if only else "")
            confirm(f"Delete {len(changes)} objects of {work.cluster.name}?", again, see=dry_run_of(again))
        with hold(work.cluster, work.access, "controllers remove", repeatable=True):
            work.controllers.remove(changes, view.tell)
    view.removed(changes, made=not dry_run)


class _Work:
    """One cluster's controllers."""

    def __init__(self, cluster: Cluster) -> None:
        from controllers.apply import Controllers
        from operations import stack

        self.cluster = cluster
        self.access: Access = stack.access_to(cluster)
        self.controllers: Controllers = Controllers(self.access.api())

    def place(self, pool: str, wait: Callable[[Callable[[], str]], None]) -> None:
        """Label nodes and wait until one is there for the controllers. Errors: raises TimeoutError if none appears in time."""
        from operations import node_labels

        api = self.access.api()
        node_labels.publish(self.cluster, api)
        if pool:
            wait(lambda: node_labels.missing(api, pool))

    def desired(self, name: str, image: str | None, named: tuple[ControllerKind, ...]) -> Desired:
        """Return the controllers that the spec wants, or of the named kinds.

        Errors: raises RefusedError if no image is named and no controller runs that has one.
        """
        from cluster.controllers import home
        from cluster.load import find_cluster
        from cluster.tenancy import secret_names
        from controllers.gather import files_of, image_of
        from controllers.kinds import needed_kinds
        from controllers.manifests import Desired
        from controllers.tenancy.directory.choose import settings_of
        from operations.stack import secret_of

        settings = settings_of(self.cluster)
        kinds = named or needed_kinds(settings)
        chosen = image or image_of(state.image for state in self.controllers.states())
        files = files_of(self.cluster.spec, find_cluster(name, ROOT))
        names = secret_names(settings) if any(kind.directory for kind in kinds) else ()
        secrets = {secret: secret_of(self.cluster, secret) for secret in names}
        pool = home(self.cluster) or ""
        taints = self.cluster.spec.pools[pool].taints if pool else ()
        return Desired(chosen, files, settings, kinds, pool, taints, secrets)


def _named(only: tuple[str, ...]) -> tuple[ControllerKind, ...]:
    from cluster.fields import unknown
    from controllers.kinds import KINDS

    if problem := unknown("controller", only, KINDS):
        raise typer.BadParameter(problem, param_hint="--only")
    return tuple(kind for name, kind in KINDS.items() if name in only)
