"""`vpn request` and `vpn configure`: their arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.options import ClusterArg, DiffOpt, DryOpt, JsonOpt, YesOpt, words
from cli.specs import checked


@examples(
    ("vpn request jaguar --dry-run", "show which have a key"),
    ("vpn request jaguar", "all its routers"),
    ("vpn request jaguar --router sjc1/edge-1", "one router"),
)
def request(
    cluster: ClusterArg,
    router: Annotated[
        list[str] | None,
        typer.Option("--router", metavar="SITE/ROUTER", help="Only these routers; separated by commas, or repeated."),
    ] = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Create edge routers' keys on the routers, and requests for their certificates.

    Existing keys are kept, so the same command renews a certificate. The request
    is written next to the certificate as <file>.csr. Keys never leave their
    routers.
    """
    loaded = checked(cluster)
    from cli.actions import vpn

    vpn.request(loaded, words(router), dry_run=dry_run, as_json=as_json)


@examples(
    ("vpn configure jaguar --dry-run --diff", "show what would change"),
    ("vpn configure jaguar", "all its routers; asks first"),
    ("vpn configure jaguar --without ibis", "if ibis is not built"),
)
def configure(
    cluster: ClusterArg,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without", metavar="CLUSTER", help="Leave out this cluster's tunnels; separated by commas, or repeated."
        ),
    ] = None,
    diff: DiffOpt = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Configure as edge routers the Debian machines that the spec names as `host`.

    A router gets its tunnels to every cluster that it joins. Rolls one router at
    a time. A second run changes nothing, and unchanged tunnels stay up. --diff
    never shows keys.
    """
    loaded = checked(cluster)
    from cli.actions import vpn

    vpn.configure(loaded, words(without), diff=diff, dry_run=dry_run, yes=yes or as_json, as_json=as_json)
