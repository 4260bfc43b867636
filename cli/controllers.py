"""`controllers`: the image, and what runs in the cluster. What they print is in `cli.controllers_view`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.asking import confirm, dry_run_of
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples, words
from cli.output import note
from cli.specs import checked
from cluster.project import ROOT

if TYPE_CHECKING:
    from clients.access import Access
    from cluster.spec import Cluster
    from controllers.apply import Controllers
    from controllers.kinds import Kind
    from controllers.manifests import Wanted

READY_S = 600

app = typer.Typer(
    help="Menagerie's own controllers, which run in the cluster. docs/how-to/controllers.md explains them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

OnlyOpt = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAMES", help="tenancy-sync, tenancy-capacity; with commas, or given again."),
]


@app.command(
    epilog=examples(
        ("controllers image --to image", "a folder in OCI's layout"),
        ("controllers image --push registry.example.org/menagerie:1", "prints what to apply"),
    )
)
def image(
    to: Annotated[Path | None, typer.Option("--to", metavar="FOLDER", help="Keep the image there.")] = None,
    push: Annotated[
        str | None, typer.Option("--push", metavar="REFERENCE", help="Push it: registry/repository:tag.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Make the controllers' image: Debian's Python, what the program imports, no more. Needs neither Docker nor root.

    The same checkout and the same packages make the same bytes. Packages of Debian
    are the newest of this machine's apt sources: make it anew for security updates.
    Pushing uses the logins of Docker's configuration file.
    """
    import tempfile

    from cli import controllers_view
    from controllers.image import build
    from controllers.image import push as pushed

    if not (to or push):
        raise typer.BadParameter("where to? add --to FOLDER, or --push REFERENCE")
    with tempfile.TemporaryDirectory() as elsewhere:
        folder = to or Path(elsewhere) / "image"
        digest = build(folder, controllers_view.progress(quiet=as_json))
        reference = pushed(folder, push, controllers_view.progress(quiet=as_json)) if push else ""
        controllers_view.made(to, digest, reference, as_json=as_json)


@app.command(
    epilog=examples(
        ("controllers apply jaguar --image REFERENCE --dry-run", "what would change"),
        ("controllers apply jaguar --image REFERENCE", "asks; waits until all are ready"),
        ("controllers apply jaguar", "the image that runs: after a change of the spec"),
    )
)
def apply(
    cluster: ClusterArg,
    image: Annotated[
        str | None,
        typer.Option(
            "--image", metavar="REFERENCE", help="What `controllers image --push` printed. Default: what runs."
        ),
    ] = None,
    only: OnlyOpt = None,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Run the controllers in the cluster, with this spec, its files and the directory's password.

    Two pods each on hosts of their own; one acts, the other takes over when it
    dies. Their rights are what a round needs, in namespaces of people and teams.
    After a change of the spec or the directory's file run it again: the pods
    follow one by one. Safe to interrupt: run it again. A second run changes nothing.
    Exit 1 when they are not ready within ten minutes; the reason is told.
    """
    from cli import controllers_view
    from clients.waiting import wait_until
    from operations.record import one_operation

    named = _named(words(only))
    work = _Work(checked(cluster))
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
    with one_operation(work.cluster, work.access, "controllers apply", repeatable=True, report=note):
        # Before their pods go by a label, nodes have it: what runs stays until there is a place for what follows.
        work.place(wanted.pool, lambda lacking: wait_until(lacking, READY_S, view.wait))
        work.controllers.apply(wanted, changes, view.tell)
        wait_until(lambda: work.controllers.missing(wanted.kinds), READY_S, view.wait)
    view.conclude(wanted, changes, made=True)


@app.command(epilog=examples(("controllers show jaguar", ""), ("controllers show jaguar --json", "for a program")))
def show(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """List the controllers that run: image, pods, who acts, and what keeps pods from being ready. Changes nothing.

    Exit 1 when one is not as it should be.
    """
    from cli import controllers_view

    work = _Work(checked(cluster))
    raise typer.Exit(controllers_view.listed(work.cluster, work.controllers.states(), as_json=as_json))


@app.command(
    epilog=examples(
        ("controllers remove jaguar --dry-run", "what would go"),
        ("controllers remove jaguar", "asks; people's and teams' namespaces stay as they are"),
        ("controllers remove jaguar --only tenancy-capacity", ""),
    )
)
def remove(
    cluster: ClusterArg, only: OnlyOpt = None, dry_run: DryOpt = False, yes: YesOpt = False, as_json: JsonOpt = False
) -> None:
    """Take the controllers out of the cluster, with their rights. What they made stays, and nobody keeps it in step.

    Namespaces, hosts' teams and admission policies of tenancy stay. Safe to interrupt.
    """
    from cli import controllers_view
    from controllers.kinds import KINDS
    from operations.record import one_operation

    named = _named(words(only)) or tuple(KINDS.values())
    work = _Work(checked(cluster))
    changes = work.controllers.to_remove(named)
    view = controllers_view.View(work.cluster, quiet=as_json)
    view.show(changes)
    if changes and not dry_run:
        if not (yes or as_json):
            again = f"controllers remove {cluster}" + (f" --only {','.join(words(only))}" if only else "")
            confirm(f"Delete {len(changes)} objects of {work.cluster.name}?", again, see=dry_run_of(again))
        with one_operation(work.cluster, work.access, "controllers remove", repeatable=True, report=note):
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
