"""`controllers image`, `apply` and `remove`: their arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, OnlyOpt, OutputOpt, YesOpt, folder_of, words
from cli.specs import checked


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
    if not (output or push):
        raise typer.BadParameter("give --output FOLDER or --push REFERENCE")
    folder = folder_of(output) if output else None
    from cli.actions import controllers

    controllers.image(folder, push, dry_run=dry_run, as_json=as_json)


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
    from cli.actions import controllers

    controllers.apply(loaded, cluster, image, words(only), dry_run=dry_run, yes=yes or as_json, as_json=as_json)


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
    from cli.actions import controllers

    controllers.remove(loaded, cluster, words(only), dry_run=dry_run, yes=yes or as_json, as_json=as_json)
