"""`bundle`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import DryOpt, JsonOpt, OutputOpt, known_clusters, words
from cli.specs import checked, cluster_folder


@examples(
    ("bundle horus --fetch -o horus.bundle", "from the projects' own sites"),
    ("bundle horus ibis --mirror /srv/mirror -o all.bundle", ""),
    ("bundle horus --fetch -o horus.bundle --dry-run", "what is in it"),
)
def bundle(
    clusters: Annotated[
        list[str],
        typer.Argument(
            metavar="CLUSTER...",
            help="Names of clusters in inventories/, or paths of cluster.yaml files.",
            autocompletion=known_clusters,
        ),
    ],
    output: OutputOpt = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Also read the checksums that the projects publish, and compare them.")
    ] = False,
    place: Annotated[
        str,
        typer.Option(
            "--mirror",
            metavar="PLACE",
            help="Folder or URL with the layout of the download sites. With --fetch, the default is these sites.",
        ),
    ] = "",
    registry: Annotated[
        str,
        typer.Option(
            "--registry", metavar="HOST:PORT", help="Take images from this mirror. Default: from their own registries."
        ),
    ] = "",
    own_builds: Annotated[
        bool,
        typer.Option("--own-builds", help="Accept files that differ from upstream's, and list them as own builds."),
    ] = False,
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            metavar="SYSTEMS",
            help="Operators' machines, for provider plugins, such as darwin-arm64. Default: like this one.",
        ),
    ] = None,
    secret_key: Annotated[
        Path, typer.Option("--secret-key", metavar="FILE", help="Secret key of minisign that signs the bundle.")
    ] = Path("~/.config/menagerie/bundle.key"),
    new_key: Annotated[
        bool,
        typer.Option("--new-key", help="Create the secret key, and add its public half to inventories/bundle.pub."),
    ] = False,
    debian: Annotated[
        bool,
        typer.Option(
            "--debian/--no-debian",
            help="With the Debian packages that machines at sites with provisioning install, or without.",
        ),
    ] = True,
    site_release: Annotated[
        list[str] | None,
        typer.Option(
            "--site-release",
            metavar="RELEASES",
            help="Debian of machines at sites without provisioning, such as trixie: their packages too.",
        ),
    ] = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Write everything that clusters download into one signed file.

    That is their programs, images and provider plugins at the pinned versions,
    and the Debian packages of machines at sites, with a bill of materials. Every
    file is verified: against this checkout's checksums, with --fetch against the
    projects' own lists, and packages against Debian's signature. The checksums
    also go to artefacts.lock next to each cluster.yaml. Commit it: `check` and
    `up` read it, so nobody writes checksums by hand.

    The password of the secret key is asked for, or is in the variable
    MENAGERIE_BUNDLE_PASSWORD. A lab's programs are built here. Idempotent: if interrupted, run it again.
    """
    if output is None:
        raise typer.BadParameter("give --output FILE, the bundle to write")
    if output.is_dir():
        raise typer.BadParameter(f"--output: {output} is a folder; name a file")
    loaded = [checked(name) for name in clusters]
    if not (fetch or place or all(cluster.is_lab for cluster in loaded)):
        raise typer.BadParameter("give --fetch to use the projects' own sites, or --mirror with a folder or a URL")
    if fetch and own_builds:
        raise typer.BadParameter(
            "--fetch compares files with upstream's checksums, from which --own-builds differ; give one"
        )
    if site_release and not debian:
        raise typer.BadParameter("--no-debian leaves out the packages that --site-release adds; give one")
    folders = {cluster.name: cluster_folder(name) for cluster, name in zip(loaded, clusters, strict=True)}
    from cli.actions import bundle as actions

    how = actions.How(
        output,
        place,
        registry,
        words(system),
        secret_key.expanduser(),
        fetch,
        own_builds,
        new_key,
        debian,
        words(site_release),
    )
    actions.bundle(loaded, folders, how, dry_run=dry_run, as_json=as_json)
