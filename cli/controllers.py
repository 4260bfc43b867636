"""`controllers`: the image, and what runs in the cluster. What they print is in `cli.controllers_view`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.asking import confirm, dry_run_of
from cli.holding import hold, holds
from cli.options import ClusterArg, DryOpt, JsonOpt, OnlyOpt, OutputOpt, YesOpt, examples, folder_of, words
from cli.specs import checked
from cli.status import Asked, Look, Looked
from cluster.project import ROOT

if TYPE_CHECKING:
    from clients.access import Access
    from cluster.spec import Cluster
    from controllers.apply import Controllers
    from controllers.kinds import Kind
    from controllers.manifests import Wanted

READY_S = 600


@examples(
    ("controllers image --output image", "a folder in OCI's layout"),
    ("controllers image --push registry.example.org/menagerie:1", ""),
)
def image(
    output: OutputOpt = None,
    push: Annotated[
        str | None, typer.Option("--push", metavar="REFERENCE", help="Push it: registry/repository:tag.")
    ] = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Build the image of the controllers. Needs neither Docker nor root.

    It has Debian's Python and what the program imports. The build is reproducible
    from the same checkout and the same packages. Debian's packages are the newest of
    this machine's apt sources: build the image again for security updates.
    --output keeps it in a folder. Pushing uses the logins of Docker's configuration file.
    """
    import tempfile

    from cli import controllers_view
    from controllers.image import build, refuse
    from controllers.image import push as pushed

    if not (output or push):
        raise typer.BadParameter("where to? add --output FOLDER, or --push REFERENCE")
    to = folder_of(output) if output else None
    with tempfile.TemporaryDirectory() as elsewhere:
        folder = to or Path(elsewhere) / "image"
        if dry_run:
            refuse(folder)
            controllers_view.would_make(to, push, as_json=as_json)
            return
        digest = build(folder, controllers_view.progress(quiet=as_json))
        reference = pushed(folder, push, controllers_view.progress(quiet=as_json)) if push else ""
        controllers_view.made(to, digest, reference, as_json=as_json)


@examples(
    ("controllers apply jaguar --image REFERENCE --dry-run", "only look"),
    ("controllers apply jaguar --image REFERENCE", "asks; waits"),
    ("controllers apply jaguar", "after a change of the spec"),
)
@holds()
def apply(
    cluster: ClusterArg,
    image: Annotated[
        str | None,
        typer.Option(
            "--image", metavar="REFERENCE", help="As `controllers image --push` printed it. Default: the running one."
        ),
    ] = None,
    only: OnlyOpt = None,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Run the controllers in the cluster, with this spec, its files and the directory's password.

    Each has two pods on separate hosts: one leads, the other takes over if it fails.
    Their rights cover what a round needs, in namespaces of people and teams.
    After a change of the spec or of the directory's file, run this again: the pods
    roll one by one. Idempotent: a second run changes nothing.
    Exit code 1 if they are not ready within ten minutes, with the reason.
    """
    one = checked(cluster)
    from cli import controllers_view
    from clients.waiting import wait_until

    named = _named(words(only))
    work = _Work(one)
    wanted = work.wanted(cluster, image, named)
    changes = work.controllers.look(wanted)
    view = controllers_view.View(work.cluster, quiet=as_json)
    view.show(changes)
    if dry_run:
        view.conclude(wanted, changes, made=False)
        return
    if changes and not (yes or as_json):
        again = f"controllers apply {cluster}" + (f" --image {image}" if image else "")
        confirm(f"Make {len(changes)} changes in {work.cluster.name}?", again, see=dry_run_of(again))
    with hold(work.cluster, work.access, "controllers apply", repeatable=True):
        # Before their pods go by a label, nodes have it: what runs stays until there is a place for what follows.
        work.place(wanted.pool, lambda lacking: wait_until(lacking, READY_S, view.wait))
        work.controllers.apply(wanted, changes, view.tell)
        wait_until(lambda: work.controllers.missing(wanted.kinds), READY_S, view.wait)
    view.conclude(wanted, changes, made=True)


def section(cluster: str, asked: Asked) -> Look:
    """The controllers that run: image, pods, who acts, and what keeps pods from being ready."""
    one = checked(cluster)
    from cli import controllers_view

    work = _Work(one)

    def look() -> Looked:
        states = list(work.controllers.states())
        document = controllers_view.document(work.cluster, states)
        return Looked(controllers_view.code(states), document, lambda: controllers_view.listed(work.cluster, states))

    return look


@examples(
    ("controllers remove jaguar --dry-run", "what would be deleted"),
    ("controllers remove jaguar", "asks; namespaces stay"),
    ("controllers remove jaguar --only tenancy-capacity", "one of them"),
)
@holds()
def remove(
    cluster: ClusterArg, only: OnlyOpt = None, dry_run: DryOpt = False, yes: YesOpt = False, as_json: JsonOpt = False
) -> None:
    """Remove the controllers and their rights from the cluster. Nobody reconciles what they made any more.

    Namespaces, hosts' teams and admission policies of tenancy stay. Idempotent.
    """
    one = checked(cluster)
    from cli import controllers_view
    from controllers.kinds import KINDS

    named = _named(words(only)) or tuple(KINDS.values())
    work = _Work(one)
    changes = work.controllers.to_remove(named)
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
        """Have a node for them. TimeoutError where there is none in time."""
        from operations import node_labels

        api = self.access.api()
        node_labels.publish(self.cluster, api)
        if pool:
            wait(lambda: node_labels.missing(api, pool))

    def wanted(self, given: str, image: str | None, named: tuple[Kind, ...]) -> Wanted:
        """What the spec asks for, or those of the kinds that are named. RefusedError where none runs and none is named."""
        from cluster.controllers import home
        from cluster.load import find_cluster
        from cluster.tenancy import secret_names
        from controllers.gather import files_of, image_of
        from controllers.kinds import wanted
        from controllers.manifests import Wanted
        from controllers.tenancy.directory.choose import settings_of
        from operations.stack import secret_of

        settings = settings_of(self.cluster)
        kinds = named or wanted(settings)
        chosen = image or image_of(state.image for state in self.controllers.states())
        files = files_of(self.cluster.spec, find_cluster(given, ROOT))
        names = secret_names(settings) if any(kind.directory for kind in kinds) else ()
        secrets = {name: secret_of(self.cluster, name) for name in names}
        pool = home(self.cluster) or ""
        taints = self.cluster.spec.pools[pool].taints if pool else ()
        return Wanted(chosen, files, settings, kinds, pool, taints, secrets)


def _named(only: tuple[str, ...]) -> tuple[Kind, ...]:
    from cluster.fields import unknown
    from controllers.kinds import KINDS

    if told := unknown("controller", only, KINDS):
        raise typer.BadParameter(told, param_hint="--only")
    return tuple(kind for name, kind in KINDS.items() if name in only)
